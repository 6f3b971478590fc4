/** The search box over the photo strip: by a text, by an example drawn on the photo, by what people said. */

import * as api from "./api.js";
import { button, counted, h, icon, s, sentence } from "./dom.js";
import { whereabouts } from "./narrative.js";
import { announce, busy, problem, toastProblem } from "./notices.js";
import { drawingHand, placeOf, shapes, toolButtons } from "./regions.js";

const POLL_MS = 700;

export class Search {
  constructor(form, app) {
    this.app = app;
    this.form = form;
    this.facts = null;
    this.hits = null; // What was found; null while all photos are shown.
    this.query = null;
    this.lit = null; // The hit that is on the stage.
    this.layer = app.stage.layer("hits");
    this.sketch = app.stage.layer("sketch");
    this.list = app.shelf.found;
    this.build();
    this.list.addEventListener("keydown", (event) => this.listKey(event));
  }

  get able() {
    return Boolean(this.facts?.has);
  }

  build() {
    this.input = h("input", { id: "seek", maxlength: 500, autocomplete: "off", enterkeyhint: "search", "aria-keyshortcuts": "/", onfocus: () => this.wake(), onkeydown: (event) => this.inputKey(event) });
    this.where = h("select", { "aria-label": "Where to search", onchange: () => { if (this.input.value.trim()) this.send(); } },
      h("option", { value: "seen" }, "in the photos"), h("option", { value: "said" }, "in what was said"));
    this.example = button("Like …", { kind: "quiet", icon: "box", label: "Like an example: draw it on the photo", "aria-pressed": "false", onclick: () => (this.before === undefined ? this.draw() : this.dropHand()) });
    this.all = button("All photos", { kind: "quiet all", icon: "close", label: "All photos", hidden: true, onclick: () => this.clear() });
    this.says = h("div", { class: "says" });
    this.form.addEventListener("submit", (event) => { event.preventDefault(); this.send(); });
    this.form.append(
      h("label", { for: "seek", class: "unseen" }, "Search all photos"), h("div", { class: "field" }, icon("search"), this.input),
      this.all, this.where, button("Search", { kind: "primary", type: "submit" }), this.example, this.says);
  }

  /** Ask what can be searched, and again while photos are looked at. */
  async watch() {
    clearTimeout(this.timer);
    const before = this.facts;
    try {
      this.facts = await api.library();
    } catch (error) {
      if (!(error instanceof api.Refused)) throw error;
      return; // The status says that the server is away.
    }
    const { has, doing, folder, photos } = this.facts;
    this.form.hidden = !has;
    document.body.classList.toggle("searchable", has);
    this.input.placeholder = folder ? `Search ${photos ? photos.toLocaleString("en") : "the"} photos of ${folder}` : "Search all photos: a dog with a frisbee";
    this.app.status.search = this.facts;
    this.app.status.render();
    if (doing) this.timer = setTimeout(() => this.watch(), POLL_MS);
    // What came meanwhile is found, too; but nothing moves beneath a finger.
    if (before?.doing && !doing && this.query && !this.list.contains(document.activeElement)) this.run(this.query);
    else this.tell();
  }

  /** Somebody wants to search: photos that are new are looked at now. */
  async wake() {
    if (this.awake) return;
    this.awake = true;
    try {
      await api.refreshLibrary();
    } catch (error) {
      if (!(error instanceof api.Refused)) throw error;
      this.awake = false;
      toastProblem(error, "The photos were not looked at");
    }
    this.watch();
  }

  focus() {
    this.input.focus();
    this.input.select();
  }

  send() {
    const text = this.input.value.trim();
    if (!text) { this.input.focus(); announce("Write what to search for first"); return; }
    this.run({ text, said: this.where.value === "said" });
  }

  /** What is like a region of the photo on the stage. */
  like(region) {
    this.input.value = "";
    this.wake();
    this.run({ photo: this.app.photo.id, region });
  }

  async run(query) {
    this.query = query;
    this.asking?.abort();
    const asking = this.asking = new AbortController();
    this.says.replaceChildren(busy("Searching …"));
    try {
      const hits = await api.search(query, asking.signal);
      if (this.asking === asking) this.show(hits);
    } catch (error) {
      if (error.name === "AbortError") return;
      if (!(error instanceof api.Refused)) throw error;
      if (this.asking === asking) this.says.replaceChildren(problem(error, () => this.run(query)));
    }
  }

  show(hits) {
    this.hits = hits;
    this.app.shelf.list.hidden = true;
    this.list.hidden = this.all.hidden = false;
    this.list.replaceChildren(...hits.map((hit, i) => this.item(hit, i)));
    this.list.scrollTop = 0;
    this.mark(this.app.photo);
    this.tell();
    announce(this.summary());
  }

  summary() {
    const { hits, query, facts } = this;
    if (hits.length) return `${query.said ? `Said about ${counted(hits.length, "photo")}` : `${counted(hits.length, "photo")}${query.photo ? ` with something like your ${placeOf(query.region).split(",")[0]}` : ""}`}, best first.`;
    if (facts?.doing) return "Nothing yet: the photos are still looked at.";
    return query.said ? "Nobody has said anything about these photos yet." : "There is no photo to search.";
  }

  /** The line below the box: how far the photos are looked at, what was found, and what is lit. */
  tell() {
    const { doing, done, total, error } = this.facts ?? {};
    const parts = [];
    if (this.hits) parts.push(h("p", {}, this.summary()));
    if (this.lit) parts.push(h("p", { class: "lit", dir: "auto" }, this.words(this.lit)));
    if (doing) parts.push(h("p", { class: "under-way" }, total ? h("progress", { max: total, value: done, "aria-label": "Photos looked at" }) : h("span", { class: "spinner", "aria-hidden": "true" }), `${sentence(doing).replace(/\.$/, "")}${total ? `: ${done.toLocaleString("en")} of ${total.toLocaleString("en")}` : " …"}`));
    else if (error) parts.push(h("p", { class: "hint" }, sentence(error)));
    if (this.before === undefined) this.says.replaceChildren(...parts);
  }

  words({ name, what, box, said, who, start_s: start, score }) {
    const where = box ? whereabouts(box) : "no place";
    if (!said) return `${name}: ${what ? `${what}, ` : ""}${where} (${score.toFixed(2)})`;
    return `“${said}”, ${who || "somebody"} at ${start.toFixed(1)} s, ${box ? `pointing ${where}` : where}: ${name}`;
  }

  item(hit, i) {
    const image = h("img", { src: hit.url, alt: "", loading: "lazy", decoding: "async" });
    const thumb = h("button", { type: "button", class: "thumb", "aria-pressed": "false", "aria-label": `${i + 1} of ${this.hits.length}: ${this.words(hit)}`, title: this.words(hit), onclick: () => this.open(hit) }, image);
    // The picture is cut to a square; the drawing over it is cut in the same way.
    if (hit.box) image.addEventListener("load", () => { thumb.querySelector("svg")?.remove(); thumb.append(lamp(hit.box, image.naturalWidth, image.naturalHeight)); });
    return h("li", {}, thumb);
  }

  /** Show what was found: its photo on the stage, its place lit. One that is not on the shelf is put there. */
  async open(hit) {
    if (!hit.photo) {
      try {
        const photo = await api.takePhoto(hit.name);
        hit.photo = photo.id;
        this.app.shelf.put(photo);
      } catch (error) {
        if (!(error instanceof api.Refused)) throw error;
        toastProblem(error);
        return;
      }
    }
    const photo = this.app.shelf.shown.find(({ id }) => id === hit.photo);
    if (!photo) { announce(`${hit.name} is gone`); return; }
    if (photo !== this.app.photo) this.app.showPhoto(photo); else this.mark(photo);
    announce(this.words(hit));
  }

  /** Light what was found in the photo on the stage. */
  mark(photo) {
    this.lit = photo && this.hits?.find((hit) => hit.photo === photo.id) || null;
    this.hits?.forEach((hit, i) => {
      const here = hit === this.lit, item = this.list.children[i];
      item.classList.toggle("chosen", here);
      item.firstChild.setAttribute("aria-pressed", String(here));
      if (here) item.scrollIntoView({ block: "nearest", inline: "nearest" });
    });
    const region = this.lit?.box && { kind: "box", xyxy: this.lit.box };
    this.layer.replaceChildren(...(region ? [s("g", { class: "region told chosen" }, shapes(this.app.stage, region))] : []));
    if (this.hits) this.tell();
  }

  clear() {
    this.asking?.abort();
    this.hits = this.query = null;
    this.input.value = "";
    this.list.hidden = this.all.hidden = true;
    this.app.shelf.list.hidden = false;
    this.list.replaceChildren();
    this.mark(this.app.photo);
    this.tell();
    this.input.focus();
    announce("All photos");
  }

  /** The next thing drawn on the photo is the example. */
  draw() {
    if (!this.app.photo) { announce("Add a photo first"); return; }
    this.before = this.app.stage.hand;
    this.example.setAttribute("aria-pressed", "true");
    const tools = toolButtons((id) => choose(id));
    const choose = (id) => {
      for (const tool of tools) tool.setAttribute("aria-pressed", String(tool.dataset.tool === id));
      this.app.stage.setHand(drawingHand(this.app.stage, this.sketch, id, (region) => { this.dropHand(); this.like(region); }));
    };
    this.says.replaceChildren(h("p", {}, "Draw over what you want to find more of."), h("div", { class: "tools", role: "toolbar", "aria-label": "How to draw the example" }, tools));
    choose("box");
    this.app.stage.pad.focus();
    announce("Draw over what you want to find more of");
  }

  /** No example after all, or it is drawn: the stage belongs to the mode again. */
  dropHand() {
    if (this.before === undefined) return;
    this.app.stage.setHand(this.before);
    this.before = undefined;
    this.example.setAttribute("aria-pressed", "false");
    this.tell();
  }

  inputKey(event) {
    if (event.key === "Escape" && (this.hits || this.input.value)) this.clear();
    else if (event.key === "ArrowDown" && this.hits?.length) this.list.firstChild.firstChild.focus();
    else return;
    event.preventDefault();
  }

  listKey(event) {
    const thumbs = [...this.list.querySelectorAll(".thumb")], at = thumbs.indexOf(event.target);
    const goes = { ArrowDown: at + 1, ArrowRight: at + 1, ArrowUp: at - 1, ArrowLeft: at - 1, Home: 0, End: thumbs.length - 1 };
    if (event.key === "Escape" || (event.key in goes && goes[event.key] < 0)) this.focus();
    else if (event.key in goes) thumbs[Math.min(goes[event.key], thumbs.length - 1)].focus();
    else return;
    event.preventDefault();
  }
}

/** Everything but a place of a picture, dimmed. */
function lamp([x1, y1, x2, y2], width, height) {
  const [left, top, right, bottom] = [x1 * width, y1 * height, x2 * width, y2 * height];
  const thick = Math.min(width, height) / 24;
  return s("svg", { class: "lamp-lit", viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "xMidYMid slice", "aria-hidden": "true" },
    s("path", { class: "dim", "fill-rule": "evenodd", d: `M0 0H${width}V${height}H0ZM${left} ${top}V${bottom}H${right}V${top}Z` }),
    s("rect", { x: left, y: top, width: right - left, height: bottom - top, rx: thick / 2, "stroke-width": thick }));
}
