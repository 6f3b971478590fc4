/**
 * Recordings that the server has not acknowledged yet, in the browser's own storage.
 *
 * A draft is what is known of a recording; its pieces are what was drawn and heard, a second each, so that a crash
 * loses a second at most.
 */

const NAME = "saywhere-studio", VERSION = 1;
let opening = null;

function opened() {
  opening ??= new Promise((resolve, reject) => {
    const request = indexedDB.open(NAME, VERSION);
    request.onupgradeneeded = () => {
      request.result.createObjectStore("drafts", { keyPath: "id" });
      request.result.createObjectStore("pieces", { keyPath: ["draft", "n"] });
    };
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
  return opening;
}

/** Run `work` on both stores and give what its request found, once all is written. */
async function within(mode, work) {
  const base = await opened();
  return new Promise((resolve, reject) => {
    const transaction = base.transaction(["drafts", "pieces"], mode);
    const request = work(transaction.objectStore("drafts"), transaction.objectStore("pieces"));
    transaction.oncomplete = () => resolve(request?.result);
    transaction.onerror = transaction.onabort = () => reject(transaction.error);
  });
}

const pieceRange = (id) => IDBKeyRange.bound([id, 0], [id, Infinity]);

/** A name that no other draft has. */
export const newId = () => [...crypto.getRandomValues(new Uint8Array(8))].map((byte) => byte.toString(16).padStart(2, "0")).join("");

/** Write a draft, and with it one more piece if there is one: {n, points: [[x, y, t]], sound: Int16Array[]}. */
export const keep = (draft, piece = null) =>
  within("readwrite", (drafts, pieces) => {
    if (piece) pieces.put({ draft: draft.id, ...piece });
    return drafts.put(draft);
  });

/** Write a draft anew, with one piece in place of all that it had. */
export const rewrite = (draft, { points, sound }) =>
  within("readwrite", (drafts, pieces) => {
    pieces.delete(pieceRange(draft.id));
    pieces.put({ draft: draft.id, n: 0, points, sound });
    return drafts.put(draft);
  });

export const forget = (id) =>
  within("readwrite", (drafts, pieces) => {
    pieces.delete(pieceRange(id));
    return drafts.delete(id);
  });

/** Everything of a draft: its pieces joined. */
export async function whole(draft) {
  const pieces = await within("readonly", (_, store) => store.getAll(pieceRange(draft.id)));
  return { ...draft, points: pieces.flatMap((piece) => piece.points), sound: pieces.flatMap((piece) => piece.sound) };
}

/** Drafts that no window works on, newest first. Those that were discarded are swept out. */
export async function waiting() {
  const all = await within("readonly", (drafts) => drafts.getAll());
  const held = navigator.locks ? (await navigator.locks.query()).held.map((lock) => lock.name) : [];
  const free = all.filter((draft) => !held.includes(lockName(draft.id)));
  for (const draft of free) if (draft.discarded) await forget(draft.id);
  return free.filter((draft) => !draft.discarded).sort((a, b) => b.created.localeCompare(a.created));
}

const lockName = (id) => `draft-${id}`;

/** Show other windows that this one works on a draft. Returns what lets go of it. */
export function hold(id) {
  if (!navigator.locks) return () => {};
  let release;
  const held = new Promise((resolve) => { release = resolve; });
  navigator.locks.request(lockName(id), () => held);
  return release;
}
