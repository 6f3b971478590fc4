/** Edit what was told about a video: the editor, with frames in place of the photo. Each stroke lies on one of them. */

import { filmed } from "./api.js";
import { button, h } from "./dom.js";
import { Edit } from "./edit.js";
import { between, bounds, strokes } from "./narrative.js";
import { announce, problem } from "./notices.js";

const TURNS = { PageDown: 1, PageUp: -1 };

/** Strokes whose points have the place of their frame behind the time, so that it goes wherever they go. */
const framed = ({ trace, stroke_frames: frames }) => strokes(trace).map((line, i) => line.map((point) => [...point, frames[i]]));
const frameOf = (line) => line[0][3];

/** Of each word the frame that most of its pointing lies on, and where on it. What is saved is found by the server. */
export function wordPlaces(words, lines) {
  const frames = [...new Set(lines.map(frameOf))];
  const found = words.map(({ start_s, end_s }) => {
    const parts = frames.map((frame) => {
      const here = lines.filter((line) => frameOf(line) === frame);
      return { frame, points: here.flat().filter(([, , t]) => start_s <= t && t < end_s).length, box: bounds(between(here, start_s, end_s).flat()) };
    });
    return parts.filter(({ box }) => box).reduce((best, one) => (best === null || one.points > best.points ? one : best), null);
  });
  return { word_frames: found.map((one) => one?.frame ?? null), boxes: found.map((one) => one?.box ?? null) };
}

export class FilmEdit extends Edit {
  /** frames: those that were chosen, [{name, url}], in the order in which strokes name them. */
  constructor(app, player, narrative, frames, done) {
    super(app, player, narrative, done, { kept: filmed, picture: "frame", frames });
    this.state.actor = narrative.actor;
  }

  drawn(narrative) { return framed(narrative); }

  places() { return null; }

  build() {
    super.build();
    this.actor = h("input", { id: "edited-actor", autocomplete: "off", maxlength: 200, required: true, oninput: () => this.change({ ...this.state, actor: this.actor.value }, "actor") });
    this.strip = h("ol", { class: "strip", "aria-label": "Frames" }, this.frames.map(({ name, url }, i) => h("li", {},
      h("button", { type: "button", title: name, "aria-label": `Frame ${i + 1} of ${this.frames.length}, ${name}${url ? "" : ", missing"}`, onclick: () => this.turnTo(i) }, url ? h("img", { src: url, alt: "" }) : "missing"))));
    this.actor.value = this.narrative.actor;
    this.parts.splice(2, 0, h("div", { class: "fields" }, h("label", { for: "edited-actor" }, "Whom is it about?"), this.actor), this.strip,
      h("p", { class: "hint" }, "What you draw lies on the frame in sight. Press another one, or Page up and Page down."));
  }

  fill() {
    super.fill();
    this.actor.value = this.state.actor;
  }

  // Frames.

  /** Bring another frame into sight. A line that is being drawn ends where it is. */
  turnTo(frame) {
    this.app.stage.dropHand();
    this.player.pause();
    this.player.showWhole();
    this.player.look(frame);
    announce(`Frame ${frame + 1} of ${this.frames.length}`);
  }

  /** Called when a frame has come into sight. */
  sees(frame) {
    [...this.strip.children].forEach((item, i) => {
      if (i === frame) item.firstChild.setAttribute("aria-current", "true"); else item.firstChild.removeAttribute("aria-current");
    });
    if (!this.timeline.wordMarks) return; // Nothing is shown yet.
    this.mark();
    this.detail();
  }

  shown() {
    const { words, lines } = this.state;
    return { ...super.shown(), ...wordPlaces(words, lines), stroke_frames: lines.map(frameOf) };
  }

  /** What was in sight stays so. */
  show() {
    const frame = this.player.inView ?? 0;
    super.show();
    this.player.look(frame);
  }

  choose(chosen) {
    super.choose(chosen);
    const frame = chosen.kind === "stroke" ? frameOf(this.state.lines[chosen.i]) : this.player.narrative.word_frames[chosen.i];
    if (frame !== null) this.player.look(frame);
  }

  mark() {
    this.lines.replaceChildren();
    if (this.chosen?.kind === "stroke" && frameOf(this.state.lines[this.chosen.i]) === this.player.inView) super.mark();
  }

  point(x, y, t) { return [x, y, t, this.player.inView]; }

  take(tool) {
    if (tool === "move") this.player.look(frameOf(this.state.lines[this.chosen.i]));
    super.take(tool);
  }

  tools() {
    const { kind, i } = this.chosen;
    const here = kind === "word" || frameOf(this.state.lines[i]) === this.player.inView;
    return [...super.tools(), here ? null : button("Put it on this frame", { kind: "quiet small", onclick: () => this.put(i) })];
  }

  put(i) {
    const frame = this.player.inView;
    this.change({ ...this.state, lines: this.state.lines.map((line, k) => (k === i ? line.map(([x, y, t]) => [x, y, t, frame]) : line)) }, "");
  }

  // In the end.

  asNarrative(version) {
    const { footage, frames } = this.narrative;
    const { lines, actor } = this.state;
    return { ...this.told(version), footage, frames, actor: actor.trim(), stroke_frames: lines.map(frameOf) };
  }

  async save(over = false) {
    if (this.state.actor.trim()) { await super.save(over); return; }
    this.aside.replaceChildren(problem({ message: "Say whom it is about.", hint: "A word or two are enough; \"background\" is for all the rest." }));
    this.actor.focus();
  }

  whileTyping(event) { return super.whileTyping(event) || event.key in TURNS; }

  key(event) {
    if (!(event.key in TURNS)) return super.key(event);
    const frame = this.player.inView + TURNS[event.key];
    if (frame >= 0 && frame < this.frames.length) this.turnTo(frame);
    return true;
  }
}
