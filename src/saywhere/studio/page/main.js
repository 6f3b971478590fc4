/** The Studio: joins the shelf, the stage, the modes and the model. */

import * as api from "./api.js";
import { Ask } from "./ask.js";
import * as drafts from "./drafts.js";
import { h, isTyping, relabel } from "./dom.js";
import { Describe } from "./describe.js";
import { Explore } from "./explore.js";
import { toast } from "./notices.js";
import { Find, Narrate } from "./pointing.js";
import { Queue } from "./queue.js";
import { Record } from "./record.js";
import { Replay } from "./replay.js";
import { Search } from "./search.js";
import { remember } from "./settings.js";
import { Shelf } from "./shelf.js";
import { Stage } from "./stage.js";
import { Status } from "./status.js";
import { Zoom } from "./zoom.js";

const one = (selector) => document.querySelector(selector);

class App {
  constructor() {
    this.photo = null;
    this.locked = false;
    this.ready = false;
    this.status = new Status(() => this.statusChanged());
    this.stage = new Stage(one(".stage"), Zoom);
    this.shelf = new Shelf(one(".shelf"), this, (photo) => this.showPhoto(photo));
    this.queue = new Queue(this);
    this.search = new Search(one(".seek"), this);
    this.modes = [Record, Describe, Ask, Find, Narrate, Explore, Replay].map((Mode) => new Mode(this));
    this.stage.empty.append(this.shelf.invitation());
    this.seams = h("div", {});
    this.buildTabs();
    this.buildTheme();
    this.listen();
  }

  async start() {
    await this.status.watch();
    await this.addVideos();
    const [name, photo] = this.address();
    this.setMode(this.modes.find((mode) => mode.name === name) ?? this.modes[0]);
    await this.loadPhotos(photo);
    await this.restore();
    this.ready = true;
  }

  /** What the address asks for: a mode and a photo, either of which may be missing. */
  address() {
    return location.hash.slice(1).split("/");
  }

  /** Somebody changed the address. While a recording runs, or for what is not there, it is put right again. */
  follow() {
    const [name, id] = this.address();
    const photo = this.shelf.shown.find((one) => one.id === id);
    if (photo && photo !== this.photo) this.showPhoto(photo);
    const mode = this.modes.find((one) => one.name === name);
    if (mode) this.setMode(mode);
    this.note();
  }

  async loadPhotos(id) {
    try {
      await this.shelf.load();
      await this.queue.load();
      this.stage.empty.replaceChildren(this.shelf.invitation());
    } catch (error) {
      if (!(error instanceof api.Refused)) throw error;
      this.stage.empty.replaceChildren(this.shelf.trouble(error, () => this.loadPhotos(id)));
      return;
    }
    this.showPhoto(this.shelf.photos.find((photo) => photo.id === id) ?? this.shelf.photos[0] ?? null);
  }

  /** A recording that was never saved comes back by itself. */
  async restore() {
    let waiting;
    try {
      waiting = await drafts.waiting();
    } catch (error) {
      console.info("No storage for recordings:", error); // Record says so where it matters.
      return;
    }
    const draft = waiting.find(({ photo }) => this.hasPhoto(photo));
    if (!draft) return;
    await this.modes[0].open(draft);
    toast("Your recording is back.", { hint: "It had not been saved when the page was closed." });
  }

  hasPhoto(id) {
    return this.shelf.shown.some((photo) => photo.id === id);
  }

  /** Videos have much of their own, which comes after what all need. */
  async addVideos() {
    const { Video } = await import("./video.js");
    this.modes.push(new Video(this));
    this.buildTabs();
  }

  buildTabs() {
    this.tabs = this.modes.map((mode) =>
      h("button", { type: "button", role: "tab", id: `tab-${mode.name}`, "aria-controls": "panel", "aria-selected": "false", tabindex: "-1", onclick: () => this.setMode(mode), onkeydown: (event) => this.tabKey(event) }, mode.title));
    one(".modes").replaceChildren(...this.tabs);
  }

  tabKey(event) {
    const at = this.tabs.indexOf(event.target);
    const goes = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: this.tabs.length - 1 };
    if (!(event.key in goes)) return;
    event.preventDefault();
    const next = (goes[event.key] + this.tabs.length) % this.tabs.length;
    this.setMode(this.modes[next]);
    this.tabs[next].focus();
  }

  buildTheme() {
    const dark = () => (document.documentElement.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
    const show = () => relabel(one("#theme"), dark() ? { icon: "sun", label: "Use light colours" } : { icon: "moon", label: "Use dark colours" });
    one("#theme").addEventListener("click", () => {
      document.documentElement.dataset.theme = dark() ? "light" : "dark";
      remember("theme", document.documentElement.dataset.theme);
      show();
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
    show();
  }

  setMode(mode) {
    if (this.locked || mode === this.mode) return;
    this.search.dropHand();
    this.mode?.leave();
    this.mode = mode;
    this.modes.forEach((each, i) => {
      const here = each === mode;
      this.tabs[i].setAttribute("aria-selected", String(here));
      this.tabs[i].tabIndex = here ? 0 : -1;
    });
    one(".panel").setAttribute("aria-labelledby", `tab-${mode.name}`);
    one(".panel").removeAttribute("aria-label");
    document.body.dataset.mode = mode.name;
    one(".dock").replaceChildren(mode.dock);
    one(".panel").replaceChildren(mode.panel, this.seams);
    one(".panel").scrollTop = 0;
    mode.enter(this.photo);
    this.note();
  }

  /** Another photo on the stage, or none. */
  showPhoto(photo) {
    if (this.locked) return;
    this.search.dropHand();
    this.photo = photo;
    this.stage.show(photo);
    this.shelf.mark(photo);
    this.search.mark(photo);
    document.body.classList.toggle("bare", photo === null);
    this.mode?.enter(photo);
    this.note();
  }

  async go(name, photoId = this.photo?.id) {
    if (photoId !== this.photo?.id) this.showPhoto(this.shelf.shown.find(({ id }) => id === photoId) ?? this.photo);
    this.setMode(this.modes.find((mode) => mode.name === name));
  }

  /** While a recording runs, nothing else may take the stage. */
  lock(on) {
    this.locked = on;
    for (const part of [".modes", ".corner", ".skip", ".seek"]) one(part).inert = on;
    one(".shelf").inert = on;
    document.body.classList.toggle("locked", on);
  }

  /** Photos may have come by another way: from a folder, or from another window. */
  async refresh() {
    if (this.locked || !this.ready) return;
    try {
      await this.shelf.load();
      await this.queue.load();
    } catch (error) {
      if (!(error instanceof api.Refused)) throw error;
      return; // The status says that the server is away.
    }
    if (this.photo === null && this.shelf.shown.length) this.showPhoto(this.shelf.shown[0]);
  }

  statusChanged() {
    this.refresh();
    this.search.watch();
    this.seams.replaceChildren(...[this.status.seams()].filter(Boolean));
    if (this.mode && !["record", "replay", "video"].includes(this.mode.name)) this.mode.enter(this.photo);
  }

  note() {
    if (this.mode) history.replaceState(null, "", `#${this.mode.name}${this.photo ? `/${this.photo.id}` : ""}`);
  }

  listen() {
    addEventListener("keydown", (event) => {
      if (event.defaultPrevented || (isTyping(event) && event.key !== "Escape" && !this.mode?.whileTyping?.(event))) return;
      if (event.key === "/" && this.search.able && !this.locked) { event.preventDefault(); this.search.focus(); return; }
      if (this.mode?.key(event)) event.preventDefault();
    });
    addEventListener("hashchange", () => this.follow());
    addEventListener("visibilitychange", () => { if (document.visibilityState === "visible") this.refresh(); });
    addEventListener("beforeunload", (event) => { if (this.locked) event.preventDefault(); });
  }
}

await new App().start();
document.documentElement.dataset.started = "yes";
