/** Telling photos, for annotators with a code: the Studio's recorder, with the photos that were given to them. */

import * as api from "./api.js";
import * as drafts from "./drafts.js";
import { button, counted, h, icon } from "./dom.js";
import { announce, toast } from "./notices.js";
import { people, PeopleVisit, STATES } from "./people.js";
import { Queue } from "./queue.js";
import { Record } from "./record.js";
import { Saved } from "./saved.js";
import { remember } from "./settings.js";
import { waitingList } from "./waiting.js";

const TO_TELL = new Set(["open", "returned"]);
const MARKS = { waiting: "tick", accepted: "tick", rejected: "close", skipped: "skipped", returned: "undo" };

/** The photos of one annotator. */
class TaskShelf {
  constructor(element, choose) {
    this.photos = [];
    this.items = new Map(); // Photo id → what stands on the shelf for it.
    this.choose = choose;
    this.list = h("ul", {});
    element.setAttribute("aria-label", "Photos");
    element.replaceChildren(this.list);
  }

  get shown() { return this.photos; }

  render(photos) {
    this.photos = photos;
    this.items = new Map(photos.map((photo) => [photo.id, this.items.get(photo.id) ?? this.item(photo)]));
    this.list.replaceChildren(...this.items.values());
  }

  item(photo) {
    return h("li", {}, h("button", { type: "button", class: "thumb", "aria-pressed": "false", title: photo.name, onclick: () => this.choose(photo) },
      h("img", { src: photo.thumbnail, alt: "", loading: "lazy", decoding: "async" })));
  }

  mark(photo) {
    for (const [id, item] of this.items) {
      item.classList.toggle("chosen", id === photo?.id);
      item.firstChild.setAttribute("aria-pressed", String(id === photo?.id));
    }
    this.items.get(photo?.id)?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  markPlaces(queue) {
    for (const photo of this.photos) {
      const item = this.items.get(photo.id), { state } = queue.place(photo.id);
      item.dataset.state = state;
      item.firstChild.setAttribute("aria-label", state === "open" ? photo.name : `${photo.name}, ${STATES[state]}`);
      item.querySelector(".mark")?.remove();
      if (MARKS[state]) item.append(h("span", { class: "mark", "aria-hidden": "true" }, icon(MARKS[state])));
    }
  }
}

class TaskQueue extends Queue {
  async load() {
    try {
      const tasks = await people("GET", "tasks");
      this.app.took(tasks);
      this.places = new Map(tasks.photos.map((photo) => [photo.id, { state: photo.state, reason: photo.note, narrative: photo.narrative }]));
      this.error = null;
    } catch (error) {
      if (!(error instanceof api.Refused)) throw error;
      this.error = error;
    }
    this.changed();
  }

  next() {
    const { shown } = this.app.shelf;
    const at = shown.findIndex(({ id }) => id === this.app.photo?.id);
    return [...shown.slice(at + 1), ...shown.slice(0, Math.max(at, 0))].find(({ id }) => TO_TELL.has(this.place(id).state)) ?? null;
  }

  told(id) {
    this.places.set(id, { ...this.place(id), state: "waiting", reason: "" });
    this.changed();
    this.load();
  }

  async skip(reason) {
    const { photo } = this.app, why = reason.trim();
    if (!photo || !why) return;
    const put = () => api.reply("PUT", api.at("people", "tasks", photo.id, "skip"), { json: { reason: why } });
    if (!(await this.tried(put, "The photo is not skipped"))) return;
    await this.load();
    this.asking = false;
    this.changed();
    this.go();
    this.app.mode.focusStart?.();
  }

  async takeBack() {
    const { photo } = this.app;
    if (!(await this.tried(() => api.reply("DELETE", api.at("people", "tasks", photo.id, "skip")), "The photo is still skipped"))) return;
    await this.load();
    this.app.mode.focusStart?.();
  }

  ask() {
    if (this.place(this.app.photo?.id).state !== "returned") { super.ask(); return; }
    this.asking = true;
    this.render();
    this.element.querySelector("input").focus();
  }

  render() {
    super.render();
    if (!this.app.photo || this.error) return;
    const count = (...states) => this.app.shelf.shown.filter(({ id }) => states.includes(this.place(id).state)).length;
    const done = count("waiting", "accepted", "rejected"), returned = count("returned"), skipped = count("skipped"), open = count("open");
    const words = [`${done} done`, returned ? `${returned} returned` : "", skipped ? `${skipped} skipped` : "", `${open} to go`].filter(Boolean).join(" · ");
    this.element.querySelector("small").textContent = words;
    const bar = this.element.querySelector("progress");
    bar.value = done;
    bar.setAttribute("aria-label", `${counted(this.app.shelf.shown.length, "photo")}, ${words}`);
  }

  controls() {
    const { state, reason, narrative } = this.place(this.app.photo.id);
    if (this.asking) return [this.question()];
    const next = button("Next open photo", { kind: "quiet small", "aria-keyshortcuts": "n", disabled: !this.next(), onclick: () => this.go() });
    const skip = button("Skip …", { kind: "quiet small", "aria-keyshortcuts": "x", onclick: () => this.ask() });
    if (state === "returned")
      return [h("div", { class: "note" }, h("strong", {}, "The reviewer returned this"), h("p", { dir: "auto" }, reason)),
        h("div", { class: "row" }, button("Correct the words", { kind: "quiet small", onclick: () => this.app.mode.correct(narrative) }), skip, next)];
    const said = { waiting: "This photo is told and waits for review. You can tell it once more.", accepted: "The reviewer accepted what you told.", rejected: `The reviewer did not take it: ${reason}`, skipped: `Skipped: ${reason}`, open: "" }[state];
    const first = state === "skipped" ? button("Take it back", { kind: "quiet small", onclick: () => this.takeBack() }) : state === "open" ? skip : null;
    return [said ? h("p", { class: "hint", dir: "auto" }, said) : null, h("div", { class: "row" }, first, next)].filter(Boolean);
  }
}

/** The recorder without a name to type: the code is known. */
class CodedRecord extends Record {
  fields() {
    super.fields();
    for (const part of [...this.form.children].slice(-2)) part.remove();
  }

  startTake(microphone) {
    remember("annotator", this.app.annotatorCode);
    super.startTake(microphone);
  }

  async listWaiting() {
    const found = await waitingList((draft) => this.open(draft), (draft) => draft.annotator === this.app.annotatorCode);
    if (this.state === "idle") this.aside.replaceChildren(...found);
  }

  async done(saved, next) {
    const ended = super.done(saved, next);
    this.panel.querySelector(".export")?.remove(); // The lab exports.
    await ended;
    await this.app.queue.load(); // Its words have their times now.
  }

  async alignLater(saved) {
    await super.alignLater(saved);
    await this.app.queue.load();
  }

  /** Change the text of what was told. */
  async correct(id) {
    let narrative;
    try {
      narrative = await api.narrative(id);
    } catch (error) {
      if (!(error instanceof api.Refused)) throw error;
      toast(error.message, { kind: "problem", hint: error.hint });
      return;
    }
    this.state = "saved";
    const view = new Saved(this.player, narrative, [button("Back", { kind: "quiet", onclick: () => this.again() })]);
    const align = view.align.bind(view);
    view.align = async () => { await align(); await this.app.queue.load(); announce("Sent to the reviewer"); };
    view.alignButton.firstChild.textContent = "Send the correction";
    view.alignButton.className = "primary";
    view.parts[0].textContent = "Correct the words";
    this.dock.replaceChildren(this.player.bar);
    this.panel.replaceChildren(this.app.queue.show(false), ...view.parts);
    this.panel.querySelector(".export")?.remove();
    view.text.focus();
  }
}

class Annotate extends PeopleVisit {
  constructor() {
    super();
    this.role = "annotator";
    this.photo = null;
    this.status = { limits: {}, transcription: null };
    this.taskShelf = new TaskShelf(this.shelf, (photo) => this.showPhoto(photo));
    this.shelf = this.taskShelf;
    this.queue = new TaskQueue(this);
    this.mode = new CodedRecord(this);
    this.dock.replaceChildren(this.mode.dock);
    this.panel.replaceChildren(this.mode.panel);
    addEventListener("visibilitychange", () => { if (document.visibilityState === "visible" && this.working && !this.locked) this.queue.load(); });
    addEventListener("beforeunload", (event) => { if (this.locked) event.preventDefault(); });
  }

  async facts() {
    this.status = await api.status();
    return { title: "Tell these photos" };
  }

  async place(code) {
    const person = await this.come(code);
    const tasks = await people("GET", "tasks");
    return { ...tasks, annotator: person.code, next: tasks.photos.find(({ state }) => TO_TELL.has(state)) ?? null };
  }

  person({ annotator }) { return annotator; }

  totals({ done, total }) { return [done, total]; }

  get annotatorCode() { return this.at?.annotator ?? ""; }

  about() {
    return h("ul", { class: "rules" },
      h("li", {}, "You see photos one after the other. Tell what is in each, and draw over it while you speak of it."),
      h("li", {}, "Then write down what you said, or let it be written down, and save."),
      h("li", {}, "A reviewer looks at it. What is to be done otherwise comes back to you with a note."),
      h("li", {}, "Your code is kept, and what you record. Nothing else is known of you."));
  }

  /** What the server knows of the tasks now. */
  took(tasks) {
    this.taskShelf.render(tasks.photos);
    this.taskShelf.mark(this.photo);
    if (!this.at) return;
    Object.assign(this.at, tasks);
    this.showProgress();
  }

  async showNext() {
    this.showStudio();
    this.open = true;
    this.photo = null;
    await this.queue.load();
    this.showPhoto(this.at.next);
    const drawn = await this.draft();
    if (drawn) { await this.mode.open(drawn); toast("Your recording is back.", { hint: "It had not been saved when the page was closed." }); }
  }

  /** A recording of this annotator that was never saved. */
  async draft() {
    try {
      return (await drafts.waiting()).find(({ photo, annotator }) => annotator === this.annotatorCode && this.hasPhoto(photo));
    } catch (error) {
      console.info("No storage for recordings:", error); // The recorder says so where it matters.
      return null;
    }
  }

  showPhoto(photo) {
    if (this.locked) return;
    this.photo = photo;
    this.stage.show(photo);
    this.taskShelf.mark(photo);
    this.mode.enter(photo);
  }

  hasPhoto(id) { return this.taskShelf.photos.some((photo) => photo.id === id); }

  async go(place, id) {
    if (place !== "record") { super.go(place); return; }
    if (id !== this.photo?.id) this.showPhoto(this.taskShelf.photos.find((photo) => photo.id === id) ?? this.photo);
  }

  lock(on) {
    this.locked = on;
    this.studio[0].inert = on;
    document.querySelector(".corner").inert = on;
    document.body.classList.toggle("locked", on);
  }

  whileTyping(event) { return this.mode.whileTyping(event); }

  workKey(event) { return this.mode.key(event); }

  thanks() {
    const { done, total } = this.at;
    const heading = h("h1", { tabindex: "-1" }, total ? "Thank you" : "Nothing to tell yet");
    this.show(h("div", { class: "sheet-like done" }, heading,
      h("p", { class: "lead" }, total ? `${done} of ${counted(total, "photo")} told.` : "The lab has not given you any photos."),
      h("p", {}, total ? "If a reviewer returns one, it comes again here." : "Come back later with the same code."),
      h("div", { class: "row" }, button("Look again", { kind: "primary", onclick: () => this.enter(this.at.annotator) }), button("Next annotator", { kind: "quiet", onclick: () => this.next() }))));
    heading.focus();
  }
}

new Annotate().start().finally(() => { document.documentElement.dataset.started = ""; });
