/** Edit a saved narrative: its words, when they were said, and what was drawn. Nothing is lost until it is saved. */

import * as api from "./api.js";
import { button, clock, counted, h } from "./dom.js";
import * as edits from "./edits.js";
import { LanguageField } from "./languages.js";
import { doubtful, strokes } from "./narrative.js";
import { announce, busy, problem, toast } from "./notices.js";
import { delayed, joined, redrawn, retimed, reworded, said, shifted, spread, without } from "./revise.js";
import { LiveLine } from "./stage.js";
import { Timeline } from "./timeline.js";

const HOW = "move with the arrow keys, Shift for longer steps; Space puts the pen down and lifts it";
const control = (event) => event.ctrlKey || event.metaKey;

export class Edit {
  /**
   * done(saved): called in the end, with the narrative as it is now, or null if nothing was changed. kept: where it is;
   * picture: what people draw on; frames: those of a video.
   */
  constructor(app, player, narrative, done, { kept = api, picture = "photo", frames = null } = {}) {
    Object.assign(this, { app, player, narrative, done, kept, picture, frames });
    this.audio = narrative.audio ? kept.audioAddress(narrative.id) : "";
    const places = this.places(narrative);
    const words = narrative.words.map((word, i) => ({ ...word, heard: word, box: places?.[i] ?? null }));
    this.state = { text: narrative.text, words, lines: this.drawn(narrative), timed_by: narrative.timed_by, language: narrative.language ?? "" };
    [this.past, this.future, this.chosen, this.tool, this.last] = [[], [], null, "", ""];
    this.lines = app.stage.layer("editing");
    this.timeline = new Timeline({
      choose: (chosen) => this.choose(chosen),
      time: (i, start, end, done) => this.time(i, start, end, done),
      delay: (i, start, done) => this.delay(i, start, done),
    });
    this.build();
  }

  /** Its strokes, as they are edited. */
  drawn(narrative) { return strokes(narrative.trace); }

  /** Boxes of words that are not simply where the pointer was. */
  places(narrative) { return narrative.boxes; }

  build() {
    this.text = h("textarea", { id: "edited", rows: 5, spellcheck: "true", dir: "auto", oninput: () => this.retype() });
    this.text.value = this.state.text;
    this.language = new LanguageField("edited-language", this.state.language, [this.text], null, () => this.change({ ...this.state, language: this.language.tag }, "language"));
    this.details = h("div", { class: "details" });
    this.undoButton = button("", { kind: "icon", icon: "undo", label: "Undo", "aria-keyshortcuts": "Control+Z", onclick: () => this.undo() });
    this.redoButton = button("", { kind: "icon", icon: "redo", label: "Redo", "aria-keyshortcuts": "Control+Shift+Z", onclick: () => this.redo() });
    this.saveButton = button("Save", { kind: "primary", "aria-keyshortcuts": "Control+S", onclick: () => this.save() });
    this.aside = h("div", {});
    this.facts = h("p", { class: "hint" });
    this.parts = [
      h("h2", {}, "Edit"),
      h("p", { class: "lead" }, "Correct the words, drag them to when they were said, draw strokes anew. Earlier versions stay."),
      h("div", { class: "fields" }, h("label", { for: "edited" }, "Transcript"), this.text, this.language.element),
      this.details, this.facts,
      h("div", { class: "row" }, this.saveButton, button("Close", { kind: "quiet", onclick: () => this.done(null) }), this.undoButton, this.redoButton),
      this.aside,
    ];
    this.dock = [this.timeline.element, this.player.bar];
  }

  /** Go on with changes that were never saved, if there are some. */
  async begin() {
    this.show();
    this.player.watch = (time, end) => this.timeline.at(time, end);
    const found = await edits.kept(this.narrative.id).catch(() => undefined);
    if (!found || this.past.length) return;
    this.change({ ...this.state, ...found.state }, ""); // What an earlier page did not know stays as it is.
    this.fill();
    const stale = found.version !== this.narrative.version;
    toast("Your changes are back.", { hint: stale ? "The narrative was changed since; saving puts yours on top." : "They had not been saved.", action: ["Drop them", () => this.undo()] });
  }

  /** What was changed and not saved stays in the browser. */
  close() {
    if (this.changed) toast("Your changes are not saved.", { hint: "They come back when you edit this narrative again." });
    this.player.watch = null;
    this.app.stage.setHand(null);
    this.lines.remove();
  }

  get changed() {
    return this.past.length > 0;
  }

  // Changes.

  /** kind: changes of one kind in a row, such as keys of one text, are one step back; "" is always one. */
  change(state, kind) {
    if (!kind || kind !== this.last) this.past.push(this.state);
    this.last = kind;
    this.future = [];
    this.state = state;
    this.show();
    this.keep();
  }

  undo() { this.step(this.past, this.future); }

  redo() { this.step(this.future, this.past); }

  step(from, to) {
    if (!from.length) return;
    to.push(this.state);
    this.state = from.pop();
    this.last = "";
    this.fill();
    this.show();
    this.keep();
  }

  fill() {
    this.text.value = this.state.text;
    this.language.set(this.state.language);
  }

  async keep() {
    try {
      if (this.changed) await edits.keep({ id: this.narrative.id, version: this.narrative.version, state: this.state });
      else await edits.forget(this.narrative.id);
    } catch (error) {
      toast("This browser cannot keep your changes.", { kind: "problem", hint: `Save them now. (${error.message})` });
      this.keep = async () => {};
    }
  }

  retype() {
    this.change({ ...this.state, text: this.text.value, words: reworded(this.state.words, this.text.value) }, "text");
  }

  /** Words without times lie over the whole narrative, to be dragged to where they are. */
  spreadWords() {
    this.change({ ...this.state, words: spread(this.state.text, ...this.player.span), timed_by: "even" }, "");
    this.timeline.wordMarks[0].focus();
  }

  time(i, start, end, done) {
    if (!done) { this.player.light(i); return; }
    this.change({ ...this.state, words: retimed(this.state.words, i, start, end), timed_by: "hand" }, "");
    this.choose({ kind: "word", i });
  }

  delay(i, start, done) {
    if (done) this.change({ ...this.state, lines: delayed(this.state.lines, i, start) }, "");
  }

  // What is chosen, and what can be done with it.

  choose(chosen) {
    this.chosen = chosen;
    this.tool = "";
    this.show();
    const [from] = this.window;
    this.player.seek(from);
    this.player.showWhole();
    this.timeline.reveal(from);
  }

  /** First and last moment of what is chosen. */
  get window() {
    const { kind, i } = this.chosen;
    if (kind === "word") return [this.state.words[i].start_s, this.state.words[i].end_s];
    const line = this.state.lines[i];
    return [line[0][2], line[line.length - 1][2]];
  }

  show() {
    const { lines } = this.state, words = said(this.state.words), unsure = words.filter(doubtful).length;
    if (this.chosen && !(this.chosen.kind === "word" ? words : lines)[this.chosen.i]) this.chosen = null;
    const time = this.player.time ?? 0;
    this.player.load(this.shown(), { audio: this.audio });
    this.player.time = Math.min(time, this.player.span[1]);
    this.timeline.show({ words, lines, end: this.player.span[1], chosen: this.chosen });
    this.player.tell();
    this.undoButton.disabled = !this.past.length;
    this.redoButton.disabled = !this.future.length;
    this.facts.textContent = [counted(words.length, "timed word"), counted(lines.length, "stroke"), unsure ? `${unsure} of doubtful time, dotted` : "", this.changed ? "not saved" : ""].filter(Boolean).join(" · ");
    this.detail();
    if (this.chosen?.kind === "word") this.player.light(this.chosen.i);
    this.mark();
    this.setHand();
  }

  /** What is replayed. */
  shown() {
    const { text, language, lines, words } = this.state;
    return { text, language, words: said(words), trace: joined(lines), boxes: this.boxes() };
  }

  detail() {
    this.details.replaceChildren(...(this.chosen ? this.about() : this.unchosen()));
  }

  /** The chosen stroke stands out. */
  mark() {
    this.lines.replaceChildren();
    if (this.chosen?.kind !== "stroke") return;
    const line = new LiveLine(this.app.stage, this.lines);
    for (const [x, y] of this.state.lines[this.chosen.i]) line.add([x, y]);
  }

  unchosen() {
    if (this.state.words.length || !this.state.text.trim()) return [h("p", { class: "hint" }, `Choose a word or a stroke below the ${this.picture}.`)];
    return [h("p", { class: "hint" }, "The words have no times. Spread them evenly to begin with, then drag each to when it was said."), h("div", { class: "row" }, button("Spread the words", { kind: "quiet small", onclick: () => this.spreadWords() }))];
  }

  boxes() {
    return this.state.words.some(({ box }) => box) ? this.state.words.map(({ box }) => box) : null;
  }

  about() {
    const { kind, i } = this.chosen, [from, to] = this.window;
    const word = kind === "word";
    const field = (id, label, value, set, fixed = false) => {
      const input = h("input", { id, type: "number", step: "0.05", min: "0", value: value.toFixed(3), disabled: fixed, onchange: () => { if (input.value !== "" && Number.isFinite(input.valueAsNumber)) set(input.valueAsNumber); else input.value = value.toFixed(3); } });
      return h("div", {}, h("label", { for: id }, label), input);
    };
    const times = word
      ? [field("from", "From, s", from, (value) => this.time(i, value, Math.max(value, to), true)), field("to", "To, s", to, (value) => this.time(i, from, value, true))]
      : [field("from", "From, s", from, (value) => this.delay(i, value, true)), field("to", "To, s", to, () => {}, true)];
    return [
      h("h3", {}, word ? `“${this.state.words[i].text}”` : `Stroke ${i + 1}`),
      h("div", { class: "times" }, times),
      word && doubtful(said(this.state.words)[i]) ? h("p", { class: "hint" }, "The time of this word is doubtful: hear it, and move it if it is wrong.") : null,
      h("div", { class: "row" }, this.tools()),
      this.tool ? h("p", { class: "hint" }, this.tool === "draw" ? `Draw on the ${this.picture}. It takes the place of what was drawn from ${clock(from)} to ${clock(to)}.` : `Drag on the ${this.picture}.`) : null,
    ].filter(Boolean);
  }

  /** What can be done with what is chosen. */
  tools() {
    const word = this.chosen.kind === "word";
    const tool = (name, text) => button(text, { kind: "quiet small", "aria-pressed": String(this.tool === name), onclick: () => this.take(name) });
    return [tool("draw", word ? "Draw where it is" : "Draw it anew"), word ? null : tool("move", "Move it"), button(word ? "No stroke here" : "Delete stroke", { kind: "quiet small", onclick: () => this.erase() })];
  }

  /** A point that the hand draws. */
  point(x, y, t) { return [x, y, t]; }

  take(tool) {
    this.tool = this.tool === tool ? "" : tool;
    this.show();
    if (this.tool) this.app.stage.element.scrollIntoView({ block: "nearest" }); // On a phone it may be far above.
    if (this.tool && this.app.stage.pad.matches(":focus-visible")) this.app.stage.showCursor();
    announce(this.tool ? `Draw on the ${this.picture}` : "");
  }

  erase() {
    const [from, to] = this.window;
    this.change({ ...this.state, lines: without(this.state.lines, from, to) }, "");
  }

  setHand() {
    const { stage } = this.app;
    if (!this.tool) { stage.setHand(null); return; }
    let drawn = [], live = null;
    const add = (x, y, t) => { live?.add([x, y]); drawn.push(this.point(x, y, t)); };
    stage.setHand({
      name: this.tool === "draw" ? "Drawing" : "Moving", how: HOW,
      down: (x, y, t) => { drawn = []; if (this.tool === "draw") live = new LiveLine(stage, this.lines); add(x, y, t); },
      move: add,
      up: (x, y, t) => { add(x, y, t); this.drew(drawn); },
      cancel: () => { live?.remove(); live = null; drawn = []; },
    });
  }

  drew(drawn) {
    const { lines } = this.state, [from, to] = this.window;
    const [a, b] = [drawn[0], drawn[drawn.length - 1]];
    if (this.tool === "draw") this.change({ ...this.state, lines: redrawn(lines, from, to, drawn) }, "");
    else this.change({ ...this.state, lines: shifted(lines, this.chosen.i, b[0] - a[0], b[1] - a[1]) }, "");
  }

  // In the end.

  asNarrative(version) {
    return { ...this.told(version), photo: this.narrative.photo, boxes: this.boxes() };
  }

  /** All that it says, whatever it is about. */
  told(version) {
    const { id, annotator, keys, typed, origin, created, source } = this.narrative;
    const { text, words, lines, timed_by, language } = this.state;
    return { id, annotator, keys, typed: typed ?? null, origin, created, text, language: language || null, source: source ?? null, words: said(words), trace: joined(lines), timed_by: words.length ? timed_by : null, version };
  }

  /** over: save even if somebody else changed it meanwhile; what they wrote is an earlier version then. */
  async save(over = false) {
    if (this.saveButton.disabled) return;
    this.saveButton.disabled = true;
    this.aside.replaceChildren(busy("Saving …"));
    try {
      const saved = await this.kept.putNarrative(this.asNarrative(over ? null : this.narrative.version));
      await edits.forget(this.narrative.id).catch(() => {});
      announce("Saved");
      this.past = [];
      this.done(saved);
    } catch (error) {
      if (!(error instanceof api.Refused)) throw error;
      this.saveButton.disabled = false;
      const meanwhile = error.code === "changed_meanwhile";
      const hint = meanwhile ? "Your changes are safe here. Saved on top, theirs become an earlier version." : [error.hint, "Your changes are safe in this browser."].filter(Boolean).join(" ");
      this.aside.replaceChildren(problem({ message: error.message, hint }, meanwhile ? null : () => this.save(over)));
      if (meanwhile) this.aside.append(h("div", { class: "row" }, button("Save mine on top", { kind: "quiet", onclick: () => this.save(true) })));
    }
  }

  whileTyping(event) {
    return control(event) && event.key.toLowerCase() === "s";
  }

  key(event) {
    const key = event.key.toLowerCase();
    const acts = control(event) ? { s: () => this.save(), z: () => (event.shiftKey ? this.redo() : this.undo()), y: () => this.redo() } : { k: () => this.player.toggle() };
    acts[key]?.();
    return key in acts;
  }
}
