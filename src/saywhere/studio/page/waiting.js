/** Recordings that no server has acknowledged: listed, opened again, or thrown away with a way back. */

import * as drafts from "./drafts.js";
import { button, clock, h } from "./dom.js";
import { problem, undoable } from "./notices.js";

/** What to show of them, newest first. open: called with a draft. wanted: which ones are shown. */
export async function waitingList(open, wanted = () => true) {
  let waiting;
  try {
    waiting = (await drafts.waiting()).filter(wanted);
  } catch (error) {
    return [problem({ message: "This browser cannot keep recordings for you.", hint: `Save before you close the page. (${error.message})` })];
  }
  return waiting.length ? [h("h3", {}, "Not saved yet"), h("ul", { class: "list" }, waiting.map((draft) => waitingItem(draft, open)))] : [];
}

function waitingItem(draft, open) {
  const item = h("li", {},
    h("p", {}, h("strong", {}, draft.photoName), h("small", {}, `${clock(draft.duration_s)} · ${new Date(draft.created).toLocaleString()}`)),
    button("Open", { kind: "quiet", onclick: () => open(draft) }),
    button("", { kind: "icon small", icon: "bin", label: `Discard the recording on ${draft.photoName}`, onclick: () => { item.hidden = true; discard(draft, () => { item.hidden = false; }); } }));
  return item;
}

/** Marked at once, so that leaving the page does not bring it back; gone when it cannot be undone any more. */
export async function discard(draft, back) {
  const release = drafts.hold(draft.id);
  await drafts.keep({ ...draft, discarded: true });
  undoable("Recording discarded.", {
    act: async () => { await drafts.forget(draft.id); release(); },
    undo: async () => { await drafts.keep(draft); release(); back(); },
  });
}
