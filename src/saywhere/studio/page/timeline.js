/** Words and strokes over time: chosen, dragged, and dragged at their ends. */

import { clock, h } from "./dom.js";
import { doubtful } from "./narrative.js";

const SCALE = 140; // Pixels of a second.
const EDGE = 7; // Pixels at either end of a word that move that end alone.
const STEP_S = 0.05;

export class Timeline {
  /** choose({kind, i}); time(i, start, end, done): a word's, done once it is let go; delay(i, start, done): a stroke's. */
  constructor({ choose, time, delay }) {
    Object.assign(this, { choose, time, delay });
    this.head = h("i", { class: "playhead", "aria-hidden": "true" });
    this.track = h("div", { class: "track" });
    this.element = h("div", { class: "timeline", role: "group", "aria-label": "Words and strokes over time" }, this.track);
  }

  /** words: [{text, start_s, end_s, confidence}]; lines: strokes; chosen: {kind, i} or null. */
  show({ words, lines, end, chosen }) {
    const focused = this.track.contains(document.activeElement);
    this.words = words;
    const marks = Array.from({ length: Math.floor(end) + 1 }, (_, s) => placed(h("small", { "aria-hidden": "true" }, String(s)), s, s));
    this.wordMarks = words.map((word, i) => this.mark("word", i, word.text, word.start_s, word.end_s, chosen, doubtful(word)));
    this.strokeMarks = lines.map((line, i) => this.mark("stroke", i, "", line[0][2], line[line.length - 1][2], chosen));
    this.track.replaceChildren(...marks, ...this.wordMarks, ...this.strokeMarks, this.head);
    const here = chosen && this.of(chosen);
    if (!here && this.wordMarks.length + this.strokeMarks.length) (this.wordMarks[0] ?? this.strokeMarks[0]).tabIndex = 0;
    if (here && focused) here.focus();
  }

  of({ kind, i }) {
    return (kind === "word" ? this.wordMarks : this.strokeMarks)[i];
  }

  mark(kind, i, text, start, end, chosen, doubt = false) {
    const here = chosen?.kind === kind && chosen.i === i;
    const name = `${kind === "word" ? text : `Stroke ${i + 1}`}, ${clock(start)} to ${clock(end)}${doubt ? ", time doubtful" : ""}`;
    const element = h("button", {
      type: "button", class: `mark-${kind}${doubt ? " doubtful" : ""}`, "aria-pressed": String(here), "aria-label": name, title: name, tabindex: here ? "0" : "-1",
      onclick: () => this.choose({ kind, i }), onkeydown: (event) => this.key(event, kind, i, start, end),
    }, text);
    element.addEventListener("pointerdown", (event) => this.grasp(event, element, kind, i, start, end));
    return placed(element, start, end);
  }

  /** Shift and arrows move it in time; arrows alone go to its neighbours, up and down between words and strokes. */
  key(event, kind, i, start, end) {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (by === undefined && event.key !== "ArrowUp" && event.key !== "ArrowDown") return;
    event.preventDefault();
    event.stopPropagation();
    if (by && event.shiftKey) this.move(kind, i, start + by * STEP_S, end + by * STEP_S, true);
    else this.go(kind, i, by ?? 0);
  }

  go(kind, i, by) {
    const row = by ? kind : kind === "word" ? "stroke" : "word";
    const marks = row === "word" ? this.wordMarks : this.strokeMarks;
    const next = Math.min(marks.length - 1, Math.max(0, i + by));
    if (!marks.length) return;
    marks[next].focus();
    this.choose({ kind: row, i: next });
  }

  move(kind, i, start, end, done) {
    if (kind === "word") this.time(i, start, end, done); else this.delay(i, start, done);
  }

  grasp(event, element, kind, i, start, end) {
    if (event.button !== 0) return;
    const area = element.getBoundingClientRect(), x = event.clientX - area.left;
    const part = kind === "word" && x < EDGE ? "start" : kind === "word" && x > area.width - EDGE ? "end" : "both";
    let [a, b] = [start, end], moved = false;
    const drag = (now) => {
      const by = (now.clientX - event.clientX) / SCALE;
      if (!moved && Math.abs(now.clientX - event.clientX) < 3) return;
      moved = true;
      [a, b] = [part === "end" ? start : start + by, part === "start" ? end : end + by];
      if (part === "start") a = Math.min(a, end);
      placed(element, Math.max(0, a), Math.max(a, b));
      this.move(kind, i, a, b, false);
    };
    const ended = (now) => {
      element.removeEventListener("pointermove", drag);
      element.removeEventListener("pointerup", ended);
      element.removeEventListener("pointercancel", ended);
      if (moved) this.move(kind, i, now.type === "pointercancel" ? start : a, now.type === "pointercancel" ? end : b, true);
    };
    element.setPointerCapture(event.pointerId);
    element.addEventListener("pointermove", drag);
    element.addEventListener("pointerup", ended);
    element.addEventListener("pointercancel", ended);
  }

  /** Where the replay is, and how long it lasts. */
  at(time, end) {
    this.head.style.left = `${time * SCALE}px`;
    this.track.style.width = `${Math.ceil((end + 1) * SCALE)}px`;
  }

  /** Bring a time into sight. */
  reveal(time) {
    const { scrollLeft, clientWidth } = this.element;
    if (time * SCALE < scrollLeft || time * SCALE > scrollLeft + clientWidth - 40) this.element.scrollLeft = Math.max(0, time * SCALE - clientWidth / 3);
  }
}

function placed(element, start, end) {
  element.style.left = `${start * SCALE}px`;
  if (end > start) element.style.width = `${Math.max(4, (end - start) * SCALE)}px`;
  return element;
}
