/** The photos: chosen, dropped or pasted; deleted with a way back. */

import * as api from "./api.js";
import { button, counted, h, icon } from "./dom.js";
import { announce, problem, toast, toastProblem, undoable } from "./notices.js";

const TYPES = ["image/png", "image/jpeg", "image/webp"];

export class Shelf {
  /** choose: called with a photo, or null when none is left. */
  constructor(element, app, choose) {
    this.element = element;
    this.app = app;
    this.choose = choose;
    this.photos = [];
    this.items = new Map(); // Photo id → what stands on the shelf for it.
    this.leaving = new Set();
    this.input = h("input", { type: "file", accept: TYPES.join(","), multiple: true, class: "unseen", tabindex: "-1", "aria-label": "Photo files", onchange: () => { this.add([...this.input.files]); this.input.value = ""; } });
    this.adder = button("Add", { kind: "adder", icon: "add", label: "Add photos", onclick: () => this.input.click() });
    this.list = h("ul", {});
    this.found = h("ul", { class: "found", "aria-label": "Found photos", hidden: true });
    element.append(this.input, this.adder, this.list, this.found);
    this.listen();
  }

  get shown() {
    return this.photos.filter(({ id }) => !this.leaving.has(id));
  }

  async load() {
    this.photos = await api.photos();
    this.render();
  }

  /** Which photo is on the stage. */
  mark(photo) {
    this.current = photo;
    for (const [id, item] of this.items) {
      const here = id === photo?.id;
      item.classList.toggle("chosen", here);
      item.firstChild.setAttribute("aria-pressed", String(here));
      if (here) item.scrollIntoView({ block: "nearest", inline: "nearest" });
    }
  }

  /** What is done or skipped, for eyes and screen readers. */
  markPlaces(queue) {
    for (const photo of this.shown) {
      const item = this.items.get(photo.id), { state } = queue.place(photo.id);
      if (!item) continue;
      item.dataset.state = state;
      item.firstChild.setAttribute("aria-label", state === "open" ? photo.name : `${photo.name}, ${state}`);
      item.querySelector(".mark")?.remove();
      if (state !== "open") item.append(h("span", { class: "mark", "aria-hidden": "true" }, icon(state === "done" ? "tick" : "skipped")));
    }
  }

  render() {
    this.items = new Map(this.shown.map((photo) => [photo.id, this.items.get(photo.id) ?? this.item(photo)]));
    this.list.replaceChildren(...this.items.values());
    this.app.queue?.changed();
    this.mark(this.current);
  }

  item(photo) {
    return h("li", {},
      h("button", { type: "button", class: "thumb", "aria-pressed": "false", "aria-label": photo.name, title: photo.name, onclick: () => this.choose(photo) }, h("img", { src: photo.thumbnail, alt: "", loading: "lazy", decoding: "async" })),
      button("", { kind: "icon small remove", icon: "close", label: `Delete ${photo.name}`, onclick: () => this.remove(photo) }));
  }

  /** A photo that came by another way. */
  put(photo) {
    this.leaving.delete(photo.id);
    if (!this.photos.some(({ id }) => id === photo.id)) this.photos.push(photo);
    this.render();
  }

  /** Bring files; the first that is taken goes on the stage. */
  async add(files) {
    let first = null;
    for (const file of files) {
      const photo = await this.addOne(file);
      if (photo && !first) { first = photo; this.choose(photo); }
    }
  }

  async addOne(file) {
    const most = this.app.status.limits.photo_bytes;
    if (most && file.size > most) {
      toast(`${file.name} is too large.`, { kind: "problem", hint: `Photos may have ${Math.floor(most / 1e6)} MB.` });
      return null;
    }
    const waiting = h("li", { class: "waiting", "aria-hidden": "true" }, h("span", { class: "spinner" }));
    this.list.append(waiting);
    waiting.scrollIntoView({ block: "nearest", inline: "nearest" });
    try {
      const photo = await api.addPhoto(file);
      this.put(photo);
      announce(`${photo.name} added`);
      return photo;
    } catch (error) {
      if (!(error instanceof api.Refused)) throw error;
      toastProblem(error, file.name);
      return null;
    } finally {
      waiting.remove();
    }
  }

  /** Take it off the shelf, with what was said about it; a notice says so and offers the way back. */
  async remove(photo) {
    let told;
    try {
      told = (await api.narratives(photo.id)).length;
    } catch (error) {
      if (!(error instanceof api.Refused)) throw error;
      toastProblem(error, `${photo.name} is still there`);
      return;
    }
    const at = this.shown.indexOf(photo);
    this.leaving.add(photo.id);
    this.render();
    if (this.current?.id === photo.id) this.choose(this.shown[Math.min(at, this.shown.length - 1)] ?? null);
    undoable(`${photo.name}${told ? ` and its ${counted(told, "narrative")}` : ""} deleted.`, {
      act: () => this.removeForGood(photo),
      undo: () => { this.leaving.delete(photo.id); this.render(); this.choose(photo); },
    });
  }

  async removeForGood(photo) {
    try {
      await api.removePhoto(photo.id);
      this.photos = this.photos.filter((one) => one !== photo);
    } catch (error) {
      if (!(error instanceof api.Refused)) throw error;
      toastProblem(error, `${photo.name} is still there`);
    }
    this.leaving.delete(photo.id);
    this.render();
  }

  listen() {
    const hasFiles = (event) => event.dataTransfer?.types.includes("Files") && !this.app.locked;
    const hover = (on) => document.body.classList.toggle("dropping", on);
    addEventListener("dragover", (event) => { if (hasFiles(event)) { event.preventDefault(); hover(true); } });
    addEventListener("dragleave", (event) => { if (event.relatedTarget === null) hover(false); });
    addEventListener("drop", (event) => {
      hover(false);
      if (!hasFiles(event)) return;
      event.preventDefault();
      this.add([...event.dataTransfer.files]);
    });
    addEventListener("paste", (event) => {
      const files = [...(event.clipboardData?.files ?? [])].filter((file) => file.type.startsWith("image/"));
      if (files.length && !this.app.locked) { event.preventDefault(); this.add(files); }
    });
  }

  /** What the stage shows when there is no photo. */
  invitation() {
    return h("div", { class: "invitation" }, icon("photo"),
      h("p", { class: "big" }, "Drop a photo here"),
      h("p", { class: "hint" }, "or paste one, or"),
      button("Choose photos", { kind: "primary", onclick: () => this.input.click() }),
      h("p", { class: "hint" }, "PNG, JPEG or WebP. They stay on this computer."));
  }

  trouble(error, again) {
    return h("div", { class: "invitation" }, problem(error, again));
  }
}
