/** What the page says: short notices, things that can be undone, and problems with their reason. */

import { button, h, sentence } from "./dom.js";

const STAY_MS = 7000;
const waiting = new Set();

/** Tell a screen reader, and nobody else. */
export function announce(text) {
  document.getElementById("says").textContent = text;
}

/** A notice at the edge of the page. action: [text, listener]. kind: "" or "problem". Returns what removes it. */
export function toast(text, { action = null, kind = "", hint = "", stay_ms = STAY_MS } = {}) {
  const element = h("div", { class: `toast ${kind}` }, h("p", {}, text, hint ? h("small", {}, hint) : null));
  const remove = () => { clearTimeout(timer); element.remove(); };
  if (action) element.append(button(action[0], { kind: "link", onclick: () => { remove(); action[1](); } }));
  element.append(button("", { icon: "close", kind: "icon small", label: "Close this notice", onclick: remove }));
  const timer = setTimeout(remove, stay_ms);
  document.querySelector(".toasts").append(element);
  return remove;
}

/** Do something a little later, unless it is undone in the meantime. Leaving the page does it at once. */
export function undoable(text, { act, undo }) {
  const finish = () => { if (waiting.delete(finish)) { clearTimeout(timer); remove(); act(); } };
  const timer = setTimeout(finish, STAY_MS);
  const remove = toast(text, {
    stay_ms: STAY_MS + 500,
    action: ["Undo", () => { waiting.delete(finish); clearTimeout(timer); undo(); }],
  });
  waiting.add(finish);
}

addEventListener("pagehide", () => [...waiting].forEach((finish) => finish()));

/** A problem, calmly: what happened, what helps, and perhaps another try. */
export function problem(error, again = null) {
  return h(
    "div",
    { class: "problem", role: "alert" },
    h("p", {}, sentence(error.message)),
    error.hint ? h("p", { class: "hint" }, sentence(error.hint)) : null,
    again ? button("Try again", { kind: "quiet", onclick: again }) : null,
  );
}

/** Something under way. */
export const busy = (text) => h("p", { class: "busy" }, h("span", { class: "spinner", "aria-hidden": "true" }), text);

/** The same problem as a notice. */
export function toastProblem(error, before = "") {
  toast(before ? `${before}: ${sentence(error.message)}` : sentence(error.message), { kind: "problem", hint: sentence(error.hint), stay_ms: 12000 });
}
