/** Record: draw while speaking or typing, then write down what was said, save, and line words up with the voice. */

import * as api from "./api.js";
import * as drafts from "./drafts.js";
import { button, clock, counted, h, keyHelp, relabel } from "./dom.js";
import { canBeTimed, LanguageField, spoken } from "./languages.js";
import { Microphone, whyNot, withoutVoice } from "./microphone.js";
import { announce, busy, problem, toast, toastProblem } from "./notices.js";
import { Player } from "./player.js";
import { remembered, remember } from "./settings.js";
import { Saved } from "./saved.js";
import { KEYS, shortcut, whileTyping } from "./shortcuts.js";
import { LiveLine } from "./stage.js";
import { redoStroke, Take, undoStroke } from "./take.js";
import { discard, waitingList } from "./waiting.js";
import { wav } from "./wav.js";

const WARNED_S = 30; // Before a recording is as long as it may be.
const HOW = "move with the arrow keys, Shift for longer steps; Space puts the pen down and lifts it";
export class Record {
  /** kept: where narratives go. */
  constructor(app, player = new Player(app.stage), kept = api) {
    Object.assign(this, { app, player, kept });
    this.name = "record";
    this.title = "Record";
    this.dock = h("div", { class: "docked" });
    this.panel = h("div", { class: "paper" });
    this.lines = app.stage.layer("recording");
    this.state = "idle";
    this.sound = "";
    Object.assign(this, { whileTyping, keys: KEYS });
  }

  enter(photo) {
    if (this.recording && this.recording.photo !== photo?.id) this.putAway();
    if (this.recording) this.review(); else this.rest();
  }

  leave() {
    this.player.pause();
    this.player.layer.setAttribute("visibility", "hidden");
    this.app.stage.setHand(null);
  }

  /** Leave a recording that is not saved in the browser's storage, where the list shows it. */
  putAway() {
    this.transcribe?.cancel();
    this.transcribe = null;
    this.recording?.release?.();
    if (this.sound) URL.revokeObjectURL(this.sound);
    this.recording = null;
    this.sound = "";
    this.player.clear();
  }

  // Before.

  async rest() {
    this.state = "idle";
    this.putAway();
    this.lines.replaceChildren();
    this.app.stage.setHand(null);
    const why = whyNot();
    const useMic = !why && remembered("microphone", "on") === "on";
    this.mic = button("", { kind: "icon", icon: useMic ? "mic" : "muted", "aria-pressed": String(useMic), label: "Microphone", disabled: Boolean(why), onclick: () => this.switchMic() });
    this.start = button("Record", { kind: "primary record", "aria-keyshortcuts": "r", disabled: !this.app.photo, onclick: () => this.begin() });
    this.dock.replaceChildren(h("div", { class: "bar" }, this.start, this.mic));
    this.aside = h("div", {});
    this.panel.replaceChildren(
      ...this.introduction(),
      why ? h("p", { class: "hint" }, `${why} Typing works.`) : h("p", { class: "hint" }, this.micWords(useMic)),
      this.aside,
      keyHelp(this.keys),
    );
    await this.listWaiting();
  }

  introduction() {
    return [this.app.queue.show(true), h("h2", {}, "Say it while you point"),
      h("p", { class: "lead" }, "Press record, then tell what you see and draw over each thing while you speak of it. No microphone? Type instead.")];
  }

  micWords(on) { return on ? "The microphone is on. Sound stays on this computer." : "The microphone is off. The times of your key presses are kept instead."; }

  switchMic() {
    const on = this.mic.getAttribute("aria-pressed") !== "true";
    this.mic.setAttribute("aria-pressed", String(on));
    relabel(this.mic, { icon: on ? "mic" : "muted", label: "Microphone" });
    remember("microphone", on ? "on" : "off");
    this.panel.querySelector(".hint").textContent = this.micWords(on);
  }

  async listWaiting() {
    const found = await waitingList((draft) => this.open(draft), (draft) => !draft.frames); // Those with frames are of videos.
    if (this.state === "idle") this.aside.replaceChildren(...found);
  }

  /** Go on with a draft of the browser's storage. */
  async open(draft) {
    if (this.app.photo?.id !== draft.photo && !this.app.hasPhoto(draft.photo)) {
      toast(`The photo of this recording, ${draft.photoName}, is not here any more.`, { kind: "problem", hint: "Add it again, and open the recording then." });
      return;
    }
    const recording = { ...(await drafts.whole(draft)), release: drafts.hold(draft.id) };
    await this.app.go("record", draft.photo);
    this.recording = recording;
    this.review();
  }

  // Meanwhile.

  async begin() {
    if (!this.app.photo || this.start.disabled) return;
    const wanted = this.mic.getAttribute("aria-pressed") === "true" && !this.mic.disabled;
    this.start.disabled = true;
    this.app.lock(true);
    if (!wanted) { this.startTake(null); return; }
    this.aside.replaceChildren(busy("Opening the microphone …"));
    try {
      this.startTake(await Microphone.open());
    } catch (error) {
      this.app.lock(false);
      this.start.disabled = false;
      const question = withoutVoice(error, () => this.begin(), () => { this.app.lock(true); this.startTake(null); });
      this.aside.replaceChildren(question);
      question.querySelector("button").focus();
    }
  }

  startTake(microphone) {
    this.take = this.newTake(microphone, (error) =>
      toast("This browser cannot keep the recording.", { kind: "problem", hint: `Do not close the page before it is saved. (${error.message})` }));
    this.record();
  }

  newTake(microphone, onTrouble) { return new Take(this.app.photo, remembered("annotator", ""), microphone, onTrouble); }

  record() {
    this.state = "recording";
    const { take } = this;
    this.warned = false;
    this.timer = h("span", { class: "clock", role: "timer" }, "0.0 s");
    this.level = h("span", { class: "level", "aria-hidden": "true" }, h("i", {}));
    const stop = button("Stop", { kind: "primary stop", onclick: () => this.finish() });
    const cancel = button("Cancel", { kind: "quiet", onclick: () => this.abandon() });
    this.dock.replaceChildren(h("div", { class: "bar live" }, h("span", { class: "lamp on", "aria-hidden": "true" }), this.timer, take.microphone ? this.level : null, stop, cancel));
    const notes = h("textarea", {
      id: "typed", rows: 5, spellcheck: "true", "aria-describedby": "typed-how",
      oninput: (event) => take.typed(event.target.value, event.timeStamp),
    });
    spoken(notes, take.draft.language);
    this.panel.replaceChildren(
      h("h2", {}, "Recording"),
      h("p", { class: "lead" }, take.microphone ? "Speak, and draw over what you speak of." : "Type, and draw over what you write of."),
      h("div", { class: "fields" }, h("label", { for: "typed" }, take.microphone ? "Type along, if you like" : "What do you see?"), notes),
      h("p", { class: "hint", id: "typed-how" }, "The time of every key is kept. Escape stops the recording.", this.longest < Infinity ? ` It may last ${clock(this.longest)}.` : ""),
    );
    let line = null;
    this.app.stage.setHand({
      name: "Recording", how: HOW,
      down: (x, y, t) => { line = new LiveLine(this.app.stage, this.lines); line.add([x, y]); take.down(x, y, t); },
      move: (x, y, t) => { line.add([x, y]); take.add(x, y, t); },
      up: (x, y, t) => { line.add([x, y]); take.add(x, y, t); line = null; },
      cancel: () => { line = null; },
      retract: () => { if (take.retract()) line?.remove(); },
    });
    this.ring = [this.app.stage.pad, notes]; // Tab goes from the last to the first: the rest of the page is locked.
    if (take.microphone) this.app.stage.pad.focus(); else notes.focus();
    announce("Recording");
    take.start();
    this.tick();
  }

  /** Seconds of sound that the server takes. */
  get longest() {
    const { audio_bytes: bytes, audio_s: seconds } = this.app.status.limits;
    return bytes && this.take.microphone ? Math.min(bytes / (2 * this.take.microphone.rate), seconds) - 1 : Infinity;
  }

  tick() {
    if (this.state !== "recording") return;
    const seconds = this.take.since(performance.now());
    const left = this.longest - seconds;
    if (left < WARNED_S && !this.warned) { this.warned = true; toast(`The recording stops by itself in ${counted(Math.ceil(left), "second")}.`, { hint: "More can be said in another one." }); }
    if (left <= 0) { toast("The recording is as long as it may be.", { hint: "Save it, and go on with another." }); this.finish(); return; }
    this.timer.textContent = clock(seconds);
    if (this.take.microphone) this.level.firstChild.style.transform = `scaleX(${Math.min(1, 3 * Math.sqrt(this.take.microphone.level)).toFixed(3)})`;
    requestAnimationFrame(() => this.tick());
  }

  async finish() {
    if (await this.ended()) {
      this.review();
      this.text.focus();
      this.offering.then(() => this.transcribe?.offer());
      announce(`Recorded ${clock(this.recording.duration_s)}`);
    }
  }

  async abandon() { if (await this.ended()) this.drop(); }

  /** Stop recording; false if that is under way already. */
  async ended() {
    if (this.state !== "recording") return false;
    this.state = "stopping";
    this.app.stage.setHand(null);
    this.recording = await this.take.stop();
    this.take = null;
    this.app.lock(false);
    return true;
  }

  key(event) {
    const act = shortcut(this, event);
    act?.();
    return Boolean(act);
  }

  // Afterwards.

  review() {
    this.state = "review";
    const { recording } = this;
    this.lines.replaceChildren();
    this.player.layer.removeAttribute("visibility");
    this.sound = this.sound || (recording.sound.length ? URL.createObjectURL(wav(recording.sound, recording.rate)) : "");
    this.fields();
    this.facts = h("p", { class: "hint" });
    recording.undone ??= [];
    this.help = h("div", {});
    this.offering = this.offerTranscription(recording, this.help);
    this.undo = button("", { kind: "icon", icon: "undo", label: "Undo stroke", onclick: () => this.changeStrokes(undoStroke, "Removed") });
    this.redo = button("", { kind: "icon", icon: "redo", label: "Redo stroke", onclick: () => this.changeStrokes(redoStroke, "Put back") });
    const last = !this.app.queue.next();
    this.save = button("Save", { kind: last ? "primary" : "quiet", "aria-keyshortcuts": "Control+S", onclick: () => this.store(false) });
    this.saveNext = last ? null : button("Save and next", { kind: "primary", "aria-keyshortcuts": "Control+Enter", onclick: () => this.store(true) });
    this.aside = h("div", {});
    this.dock.replaceChildren(this.player.bar);
    this.panel.replaceChildren(
      this.app.queue.show(false),
      h("h2", {}, "What did you say?"),
      h("p", { class: "lead" }, "Write it down word for word, or correct what you typed. The words then get their times."),
      this.form, this.help, this.facts,
      h("div", { class: "row" }, this.saveNext, this.save, button("Discard", { kind: "quiet", onclick: () => this.drop() }), this.undo, this.redo),
      this.aside, this.player.text,
    );
    this.preview();
  }

  async offerTranscription(recording, place) {
    const facts = this.app.status.transcription;
    if (!recording.sound.length || !facts) return;
    const { Transcribe } = await import("./transcribe.js");
    if (this.recording !== recording) return;
    this.transcribe = new Transcribe(facts, () => wav(recording.sound, recording.rate), this.text, this.language, () => { if (this.recording === recording) this.edited(); });
    place.replaceChildren(this.transcribe.element);
  }

  fields() {
    const { recording } = this;
    this.text = h("textarea", { id: "transcript", rows: 6, spellcheck: "true", oninput: () => this.edited() });
    this.text.value = recording.text;
    this.language = new LanguageField("language", recording.language, [this.text], recording.sound.length > 0, () => { remember("language", this.language.tag); this.edited(); });
    this.who = h("input", { id: "annotator", autocomplete: "off", maxlength: 100, oninput: () => this.edited() });
    this.who.value = recording.annotator;
    this.form = h("div", { class: "fields" },
      h("label", { for: "transcript" }, "Transcript"), this.text, this.language.element,
      h("label", { for: "annotator" }, "Your name ", h("small", {}, "optional, goes into the export")), this.who);
  }

  preview() {
    const { recording } = this;
    this.player.load({ ...this.asNarrative(), text: "" }, { audio: this.sound });
    const parts = [clock(recording.duration_s), counted(recording.starts.length, "stroke"), counted(recording.points.length, "point")];
    parts.push(recording.sound.length ? "with sound" : recording.keys.length ? counted(recording.keys.length, "key press").replace("presss", "presses") : "no sound");
    this.facts.textContent = parts.join(" · ");
    this.undo.disabled = !recording.starts.length;
    this.redo.disabled = !recording.undone.length;
  }

  edited() {
    this.recording.text = this.text.value;
    this.recording.language = this.language.tag;
    this.recording.annotator = this.who.value.trim();
    remember("annotator", this.recording.annotator);
    this.keepDraft();
  }

  /** The draft without its pieces, which are kept already. */
  async keepDraft() {
    const { points, sound, release, ...draft } = this.recording;
    try {
      await drafts.keep(draft);
    } catch (error) {
      toast("This browser cannot keep the recording.", { kind: "problem", hint: `Save it now. (${error.message})` });
    }
  }

  /** change: undoStroke or redoStroke. */
  async changeStrokes(change, said) {
    const { recording } = this;
    const stroke = change(recording);
    if (!stroke) return;
    this.preview();
    announce(`${said} a stroke of ${counted(stroke.length, "point")}`);
    const { points, sound, release, ...draft } = recording;
    await drafts.rewrite(draft, { points, sound });
  }

  /** Throw the recording away, with a way back. */
  async drop() {
    const { recording } = this;
    const { points, sound, release, ...draft } = recording;
    release();
    await discard(draft, () => { this.recording = { ...recording, release: drafts.hold(recording.id) }; this.review(); });
    this.rest();
  }

  asNarrative() {
    const { id, photo, annotator, text, points, starts, keys, typed, language, created } = this.recording;
    return { id, photo, annotator, text, language: language || null, words: [], trace: { points, starts }, keys, typed, audio: false, origin: "human", created };
  }

  /** Give it to the server; only then the browser forgets its own copy. */
  async store(next) {
    const { recording } = this;
    if (this.save.disabled) return;
    this.transcribe?.cancel();
    this.save.disabled = true;
    if (this.saveNext) this.saveNext.disabled = true;
    this.aside.replaceChildren(busy("Saving …"));
    try {
      let saved = await this.kept.sendNarrative(this.asNarrative());
      if (recording.sound.length) {
        await this.kept.putAudio(saved.id, wav(recording.sound, recording.rate));
        saved = { ...saved, audio: true };
      }
      await drafts.forget(recording.id);
      recording.release();
      this.done(saved, next);
    } catch (error) {
      if (!(error instanceof api.Refused)) throw error;
      this.save.disabled = false;
      if (this.saveNext) this.saveNext.disabled = false;
      this.aside.replaceChildren(problem({ message: error.message, hint: [error.hint, "The recording is safe in this browser."].filter(Boolean).join(" ") }, () => this.store(next)));
    }
  }

  /** next: go on with the next open photo; the words of this one are timed meanwhile. */
  async done(saved, next) {
    this.state = "saved";
    this.recording = null;
    announce("Saved");
    this.app.queue.told(saved.photo);
    if (next && this.app.queue.next()) {
      if (saved.text.trim() && canBeTimed(saved)) this.alignLater(saved);
      this.nextPhoto();
      return;
    }
    if (next) toast("That was the last open photo.");
    const more = this.onward();
    const view = new Saved(this.player, saved, more, this.kept);
    this.dock.replaceChildren(this.player.bar);
    this.panel.replaceChildren(this.app.queue.show(false), ...view.parts);
    more.find((one) => !one.disabled).focus();
    await view.begin();
  }

  /** Buttons that lead on from a saved narrative. */
  onward() {
    return [button("Next open photo", { kind: "primary", "aria-keyshortcuts": "n", disabled: !this.app.queue.next(), onclick: () => this.nextPhoto() }),
      button("New recording", { kind: "quiet", "aria-keyshortcuts": "r", onclick: () => this.again() })];
  }

  async alignLater(saved) {
    try {
      await api.align(saved.id);
    } catch (error) {
      if (!(error instanceof api.Refused)) throw error;
      const name = this.app.shelf.photos.find(({ id }) => id === saved.photo)?.name ?? "the photo before";
      toastProblem(error, `The words of ${name} have no times`);
    }
  }

  nextPhoto() {
    if (this.app.queue.go()) this.focusStart();
  }

  again() {
    this.rest();
    this.focusStart();
  }

  /** Where a keyboard goes on before a recording. */
  focusStart() {
    if (this.state === "idle") this.start.focus();
  }
}
