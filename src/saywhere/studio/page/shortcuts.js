/** The keys of the recorder: what each does before, during and after a recording. */

import { redoStroke, undoStroke } from "./take.js";

export const KEYS = [
  [["R"], "record"], [["N"], "next open photo"], [["X"], "skip this one"], [["Tab"], "to the photo while you record"],
  [["←", "↑", "→", "↓"], "move the pointer, with Shift farther"], [["Space"], "pen down, pen up"], [["Esc"], "stop; then play and pause"],
  [["Ctrl", "S"], "save"], [["Ctrl", "Enter"], "save and next"], [["Ctrl", "Z"], "take a stroke back, with Shift put it back"],
  [["+", "−", "0"], "closer, farther, the whole photo"], [["Ctrl", "→"], "move a photo that is close"],
];

const control = (event) => event.ctrlKey || event.metaKey;

/** Keys that count although somebody types. */
export const whileTyping = (event) => event.key === "Tab" || (control(event) && ["Enter", "s"].includes(event.key));

/** What a key does now, as a function, or nothing. */
export function shortcut(record, event) {
  return BY_STATE[record.state]?.(record, event, event.key.toLowerCase());
}

const BY_STATE = {
  idle(record, event, key) {
    if (control(event) || event.altKey) return null;
    return { r: () => record.begin(), n: () => record.nextPhoto(), x: () => record.app.queue.ask() }[key];
  },

  recording(record, event, key) {
    if (key === "escape") return () => record.finish();
    const [from, to] = event.shiftKey ? record.ring : [...record.ring].reverse();
    return key === "tab" && document.activeElement === from ? () => to.focus() : null;
  },

  review(record, event, key) {
    if (key === "escape") return () => record.player.toggle();
    if (!control(event)) return null;
    const undo = () => record.changeStrokes(undoStroke, "Removed"), redo = () => record.changeStrokes(redoStroke, "Put back");
    return { enter: () => record.store(true), s: () => record.store(false), z: event.shiftKey ? redo : undo, y: redo }[key];
  },

  saved(record, event, key) {
    if (key === "escape") return () => record.player.toggle();
    if (control(event) || event.altKey) return null;
    return { n: () => record.nextPhoto(), r: () => record.again() }[key];
  },
};
