/** The queue of photos to be told: how far it is, what is next, and what is passed over and why. */

import * as api from "./api.js";
import { button, counted, h } from "./dom.js";
import { announce, problem, toastProblem } from "./notices.js";

const OPEN = { state: "open", reason: "" };
const REASONS = ["Blurred", "Upsetting", "Somebody can be recognised"];

export class Queue {
  constructor(app) {
    this.app = app;
    this.places = new Map(); // Photo id → {state, reason}.
    this.error = null;
    this.asking = false;
    this.element = h("section", { class: "queue", "aria-label": "Queue" });
  }

  async load() {
    try {
      this.places = new Map((await api.queue()).map(({ photo, state, reason }) => [photo, { state, reason }]));
      this.error = null;
    } catch (error) {
      if (!(error instanceof api.Refused)) throw error;
      this.error = error;
    }
    this.changed();
  }

  changed() {
    this.app.shelf.markPlaces(this);
    this.render();
  }

  place(id) {
    return this.places.get(id) ?? OPEN;
  }

  count(state) {
    return this.app.shelf.shown.filter(({ id }) => this.place(id).state === state).length;
  }

  /** The first open photo after this one, from the start again at the end; null if there is none. */
  next() {
    const { shown } = this.app.shelf;
    const at = shown.findIndex(({ id }) => id === this.app.photo?.id);
    return [...shown.slice(at + 1), ...shown.slice(0, at)].find(({ id }) => this.place(id).state === "open") ?? null;
  }

  /** Show the next open photo; false if there is none. */
  go() {
    const photo = this.next();
    if (photo) this.app.showPhoto(photo);
    announce(photo ? `${photo.name}, ${this.where()}` : "No other photo is open");
    return photo !== null;
  }

  told(id) {
    this.places.set(id, { state: "done", reason: "" });
    this.changed();
  }

  async skip(reason) {
    const { photo } = this.app;
    if (!photo || !reason.trim()) return;
    if (!(await this.tried(() => api.skip(photo.id, reason.trim()), "The photo is not skipped"))) return;
    this.places.set(photo.id, { state: "skipped", reason: reason.trim() });
    this.asking = false;
    this.changed();
    this.go();
    this.app.mode.focusStart?.();
  }

  async takeBack() {
    const { photo } = this.app;
    if (!(await this.tried(() => api.takeBack(photo.id), "The photo is still skipped"))) return;
    this.places.set(photo.id, OPEN);
    this.changed();
    this.app.mode.focusStart?.();
  }

  async tried(ask, trouble) {
    try {
      await ask();
      return true;
    } catch (error) {
      if (!(error instanceof api.Refused)) throw error;
      toastProblem(error, trouble);
      return false;
    }
  }

  /** "12 of 50". */
  where() {
    const { shown } = this.app.shelf;
    return `${shown.findIndex(({ id }) => id === this.app.photo?.id) + 1} of ${shown.length}`;
  }

  /** idle: whether another photo may be chosen here. */
  show(idle) {
    this.idle = idle;
    this.asking = false;
    this.render();
    return this.element;
  }

  render() {
    this.element.hidden = !this.app.photo;
    if (!this.app.photo) return;
    if (this.error) { this.element.replaceChildren(problem(this.error, () => this.load())); return; }
    const done = this.count("done"), skipped = this.count("skipped"), all = this.app.shelf.shown.length;
    const words = [`${done} done`, skipped ? `${skipped} skipped` : "", `${all - done - skipped} to go`].filter(Boolean).join(" · ");
    const bar = h("progress", { max: all, value: done + skipped, "aria-label": `${counted(all, "photo")}, ${words}` });
    this.element.replaceChildren(h("p", {}, h("strong", {}, this.where()), " ", h("small", {}, words)), bar, ...(this.idle ? this.controls() : []));
  }

  controls() {
    const { state, reason } = this.place(this.app.photo.id);
    if (this.asking) return [this.question()];
    const said = { done: "This photo is done. You can tell it once more.", skipped: `Skipped: ${reason}`, open: "" }[state];
    const first = state === "skipped" ? button("Take it back", { kind: "quiet small", onclick: () => this.takeBack() })
      : state === "open" ? button("Skip …", { kind: "quiet small", "aria-keyshortcuts": "x", onclick: () => this.ask() }) : null;
    const next = button("Next open photo", { kind: "quiet small", "aria-keyshortcuts": "n", disabled: !this.next(), onclick: () => this.go() });
    return [said ? h("p", { class: "hint", dir: "auto" }, said) : null, h("div", { class: "row" }, first, next)].filter(Boolean);
  }

  /** Why is this photo skipped? */
  ask() {
    if (!this.idle || !this.app.photo || this.place(this.app.photo.id).state !== "open") return;
    this.asking = true;
    this.render();
    this.element.querySelector("input").focus();
  }

  question() {
    const reason = h("input", { id: "reason", autocomplete: "off", maxlength: 200, required: true });
    const close = () => { this.asking = false; this.render(); this.app.mode.focusStart?.(); };
    return h("form", { class: "fields", onsubmit: (event) => { event.preventDefault(); this.skip(reason.value); }, onkeydown: (event) => { if (event.key === "Escape") { event.stopPropagation(); close(); } } },
      h("label", { for: "reason" }, "Why skip this photo?"), reason,
      h("div", { class: "chips" }, REASONS.map((text) => button(text, { kind: "chip", onclick: () => this.skip(text) }))),
      h("div", { class: "row" }, button("Skip", { kind: "primary", type: "submit" }), button("Do not skip", { kind: "quiet", onclick: close })));
  }
}
