/** Changes to saved narratives that are not saved yet, in the browser's own storage: a crash loses none. */

const NAME = "saywhere-edits", STORE = "edits";
let opening = null;

function opened() {
  opening ??= new Promise((resolve, reject) => {
    const request = indexedDB.open(NAME, 1);
    request.onupgradeneeded = () => request.result.createObjectStore(STORE, { keyPath: "id" });
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
  return opening;
}

async function within(mode, work) {
  const base = await opened();
  return new Promise((resolve, reject) => {
    const transaction = base.transaction(STORE, mode);
    const request = work(transaction.objectStore(STORE));
    transaction.oncomplete = () => resolve(request.result);
    transaction.onerror = transaction.onabort = () => reject(transaction.error);
  });
}

/** edit: {id of the narrative, version it was made from, state}. */
export const keep = (edit) => within("readwrite", (store) => store.put(edit));
export const kept = (id) => within("readonly", (store) => store.get(id));
export const forget = (id) => within("readwrite", (store) => store.delete(id));
