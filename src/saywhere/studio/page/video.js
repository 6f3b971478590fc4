/** Videos: what was told about them is replayed, key frames, trace and voice together; and they can be told about. */

import * as api from "./api.js";
import { button, clock, counted, h, icon } from "./dom.js";
import { FilmPlayer } from "./film.js";
import { bring, FootageView } from "./footage.js";
import { canBeTimed } from "./languages.js";
import { announce, busy, problem, toastProblem, undoable } from "./notices.js";
import { Telling } from "./telling.js";
import { earlierVersions } from "./versions.js";
import { waitingList } from "./waiting.js";

/** What was told of one actor: {key, name, about, fetch, actor, own, footage}; fetch gives the video, own what was recorded here. */
const given = (video) => video.actors.map((name, actor) => ({
  key: `given-${video.id}-${actor}`, name, actor, own: null, fetch: () => api.video(video.id),
  about: `${video.video} · ${counted(video.frames, "key frame")}${video.annotator ? ` · annotator ${video.annotator}` : ""}`,
}));

function recorded(footage, own) {
  const frames = own.frames.map((name) => ({ url: null, missing: "it has no file", ...footage.frames.find((one) => one.name === name), name }));
  const video = { video: footage.name, width: footage.width, height: footage.height, frames, actors: [{ ...own, name: own.actor, audio: own.audio ? api.filmed.audioAddress(own.id) : null }] };
  return { key: `own-${own.id}`, name: own.actor, actor: 0, own, footage, fetch: async () => video, about: `${footage.name} · ${counted(frames.length, "key frame")}${own.annotator ? ` · ${own.annotator}` : ""}` };
}

export class Video {
  constructor(app) {
    this.app = app;
    this.name = "video";
    this.title = "Video";
    this.player = new FilmPlayer(app.stage, (frame) => this.showFrame(frame));
    this.telling = new Telling(app, () => this.home());
    this.dock = h("div", { class: "docked" }, this.player.bar);
    this.state = h("div", {});
    this.strip = h("ol", { class: "strip", "aria-label": "Key frames" });
    this.notes = h("div", { class: "result" });
    this.tools = h("div", {});
    this.list = h("ul", { class: "list narratives" });
    this.toTell = h("section", { class: "footage", "aria-label": "Tell about a video" });
    this.input = h("input", { type: "file", accept: "video/*,image/png,image/jpeg,image/webp", multiple: true, class: "unseen", tabindex: "-1", "aria-label": "A video file, or its frames", onchange: () => { this.bring([...this.input.files]); this.input.value = ""; } });
    this.paper = h("div", { class: "paper" }, h("h2", {}, "Videos"), this.state, this.player.text, this.notes, this.tools, this.strip, this.list, this.toTell, this.input);
    this.panel = h("div", {}, this.paper);
    this.files = new Map(); // Footage id → a video that was picked in this browser.
    this.video = this.entry = this.editing = null;
    this.whileTyping = (event) => (this.editing ? this.editing.whileTyping(event) : this.view !== null && this.telling.whileTyping(event));
  }

  get view() { return this.telling.view; }

  async enter() {
    document.body.classList.remove("bare");
    if (this.view) { await this.tell(this.view); return; }
    if (this.editing) { this.stageVideo(); this.editing.show(); return; }
    await this.home();
  }

  leave() {
    this.stopEditing();
    this.player.pause();
    this.player.layer.setAttribute("visibility", "hidden");
    this.telling.leave();
    this.view?.close();
    document.body.classList.toggle("bare", this.app.photo === null);
    this.app.stage.show(this.app.photo);
  }

  /** All videos: what was told, and what can be told about. */
  async home() {
    if (this.view) this.telling.close();
    this.dock.replaceChildren(this.player.bar);
    this.panel.replaceChildren(this.paper);
    this.player.layer.removeAttribute("visibility");
    this.state.replaceChildren(busy("Fetching videos …"));
    try {
      await this.fetch();
    } catch (error) {
      if (!(error instanceof api.Refused)) throw error;
      this.state.replaceChildren(problem(error, () => this.home()));
      return;
    }
    const still = this.entries.find(({ key }) => key === this.entry?.key) ?? this.entries[0];
    if (still) await this.choose(still, false);
    else this.bare();
  }

  async fetch() {
    const [{ videos, skipped }, footage, told] = await Promise.all([api.videos(), api.footage(), api.filmedNarratives()]);
    const byId = new Map(footage.map((one) => [one.id, one]));
    this.entries = [...told.filter((one) => byId.has(one.footage)).map((one) => recorded(byId.get(one.footage), one)).reverse(), ...videos.flatMap(given)];
    const left = skipped ? ` ${counted(skipped, "record")} of the file could not be read.` : "";
    const lead = this.entries.length ? "Words light up as they are said, and the trace goes from frame to frame." : "Nothing was told about a video yet. Choose one below, and be the first.";
    this.state.replaceChildren(h("p", { class: "lead" }, lead + left));
    await this.offer(footage);
  }

  /** The videos that can be told about, and recordings that wait to be saved. */
  async offer(footage) {
    const rows = footage.map((one) => h("li", {}, h("button", { type: "button", class: "pick", onclick: () => this.begin(one) },
      h("strong", { dir: "auto" }, one.name), h("small", {}, [one.file || this.files.has(one.id) ? "video" : "", counted(one.frames.length, "frame"), one.told ? `${one.told} told` : ""].filter(Boolean).join(" · ")))));
    const waiting = await waitingList((draft) => this.resume(draft, footage), ({ frames }) => frames);
    this.toTell.replaceChildren(h("h3", {}, "Tell about a video"), ...waiting,
      ...(rows.length ? [h("ul", { class: "list narratives" }, rows)] : []),
      h("div", { class: "row" }, button("Open a video or frames …", { kind: "quiet", icon: "add", onclick: () => this.input.click() })),
      h("p", { class: "hint" }, "A video file stays in this browser; only the frames that you keep are stored."));
  }

  async bring(files) {
    if (!files.length) return;
    const tell = (text) => this.notes.replaceChildren(busy(text));
    tell("Opening …");
    try {
      const { footage, file } = await bring(files, tell);
      if (file) this.files.set(footage.id, file);
      this.notes.replaceChildren();
      await this.begin(footage);
    } catch (error) {
      if (!(error instanceof api.Refused)) throw error;
      this.notes.replaceChildren(problem(error, () => this.bring(files)));
    }
  }

  async begin(footage) {
    await this.tell(new FootageView(this.app.stage, footage, this.files.get(footage.id) ?? footage.file ?? ""));
  }

  async resume(draft, footage) {
    const one = footage.find(({ id }) => id === draft.photo);
    if (!one) { toastProblem({ message: `The video of this recording, ${draft.photoName}, is not here any more.`, hint: "Open it again, and then the recording." }); return; }
    await this.begin(one);
    await this.telling.resume(draft);
  }

  /** The recorder in place of the list. */
  async tell(view) {
    this.player.pause();
    this.player.layer.setAttribute("visibility", "hidden");
    document.body.classList.remove("bare");
    this.dock.replaceChildren(this.telling.dock);
    this.panel.replaceChildren(this.telling.panel);
    await this.telling.takeStage(view);
  }

  /** Nothing to replay. */
  bare() {
    this.player.clear();
    this.video = this.entry = null;
    for (const part of [this.notes, this.tools, this.strip, this.list]) part.replaceChildren();
    this.app.stage.show(this.app.photo);
  }

  async choose(entry, play) {
    const wanted = (this.wanted = {}); // Who chooses again meanwhile, means that.
    const video = await entry.fetch();
    if (this.wanted !== wanted || this.view) return;
    Object.assign(this, { video, entry });
    this.stageVideo();
    this.load(play);
    this.render();
  }

  /** The stage takes the shape of the video. */
  stageVideo() {
    if (this.app.mode !== this) return;
    const { video, width, height, frames } = this.video;
    const first = frames.find(({ url }) => url)?.url ?? null;
    this.app.stage.show({ name: video, width, height, url: first ?? "data:," });
    if (first === null) this.app.stage.pad.classList.remove("loading");
    if (this.player.inView !== null) this.showFrame(this.player.inView);
  }

  load(play) {
    const told = this.video.actors[this.entry.actor];
    this.strip.style.setProperty("--ratio", String(this.video.width / this.video.height));
    this.strip.replaceChildren(...this.video.frames.map((frame, i) => this.thumb(frame, i)));
    this.player.load(told, { audio: told.audio ?? "", play });
    const missing = this.video.frames.filter(({ url }) => url === null).map(({ name }) => name);
    this.notes.replaceChildren(...[
      told.words.length ? "" : "The words have no times.",
      told.audio ? "" : "The voice is not here; the words are lit without it.",
      missing.length ? `Missing key frames: ${missing.join(", ")}. The replay goes on without them.` : "",
    ].filter(Boolean).map((note) => h("p", { class: "hint" }, note)));
    this.offerTools();
  }

  // What was told here can be changed; a file is only read.

  offerTools() {
    const { own } = this.entry;
    this.tools.replaceChildren();
    if (!own) return;
    const untimed = own.text.trim() && !own.words.length && canBeTimed(own);
    this.tools.append(h("div", { class: "row" }, button("Edit", { kind: "quiet", "aria-keyshortcuts": "e", onclick: () => this.edit() }),
      untimed ? button("Align words", { kind: "quiet", onclick: () => this.align(own) }) : null));
    if (own.version > 1) this.tools.append(earlierVersions(own, (one) => this.see(one), (one) => this.replaced(one), "video-narratives"));
  }

  async align(own) {
    try {
      await this.replaced(await api.filmed.align(own.id));
    } catch (error) {
      if (!(error instanceof api.Refused)) throw error;
      this.notes.append(problem(error));
    }
  }

  /** A version as it was; the button shows the newest again. */
  async see(version) {
    const { entry } = this;
    this.video = await recorded(entry.footage, version).fetch();
    this.load(false);
    const back = button("Show the newest", { kind: "quiet small", onclick: () => this.choose(entry, false) });
    this.notes.prepend(h("p", { class: "gentle" }, `This is version ${version.version}, as it was. `, back));
    back.focus();
  }

  /** A narrative in place of the one of its id. */
  async replaced(own) {
    const entry = recorded(this.entry.footage, own);
    this.entries = this.entries.map((one) => (one.key === entry.key ? entry : one));
    await this.choose(entry, false);
  }

  async edit() {
    const { entry, video } = this;
    const { FilmEdit } = await import("./edit_film.js");
    if (this.entry !== entry || this.editing || this.view || this.app.mode !== this) return;
    this.player.pause();
    this.editing = new FilmEdit(this.app, this.player, entry.own, video.frames, (saved) => this.edited(saved));
    this.panel.replaceChildren(h("div", { class: "paper" }, this.editing.parts));
    this.dock.replaceChildren(...this.editing.dock);
    await this.editing.begin();
  }

  async edited(saved) {
    this.stopEditing();
    await this.replaced(saved ?? this.entry.own);
    this.tools.querySelector("[aria-keyshortcuts=e]").focus();
  }

  stopEditing() {
    if (!this.editing) return;
    this.editing.close();
    this.editing = null;
    this.panel.replaceChildren(this.paper);
    this.dock.replaceChildren(this.player.bar);
  }

  thumb({ name, url, missing }, i) {
    const told = this.video.actors[this.entry.actor];
    const stroke = told.stroke_frames.indexOf(i);
    const when = stroke < 0 ? "nobody pointed at it" : `pointed at from ${clock(told.trace.points[told.trace.starts[stroke]][2])}`;
    const label = `Key frame ${i + 1} of ${this.video.frames.length}, ${name}, ${url ? "" : `missing: ${missing}, `}${when}`;
    return h("li", {}, h("button", { type: "button", class: stroke < 0 ? "bare" : "", "aria-label": label, title: name, onclick: () => this.player.choose(i) },
      url ? h("img", { src: url, alt: "" }) : "missing"));
  }

  showFrame(index) {
    if (this.app.mode !== this || this.view) return;
    const frame = this.video.frames[index];
    this.app.stage.flip(frame?.url ?? null, `${this.video.video}, ${frame?.name ?? "no frame"}`, frame?.url ? "" : `${frame?.name ?? "The key frame"} is missing: ${frame?.missing ?? "there is none"}`);
    [...this.strip.children].forEach((item, i) => {
      if (i === index) item.firstChild.setAttribute("aria-current", "true"); else item.firstChild.removeAttribute("aria-current");
    });
    this.editing?.sees(index);
  }

  render() {
    const focused = document.activeElement?.dataset?.focus;
    this.list.replaceChildren(...this.entries.map((entry) => this.item(entry)));
    if (focused) this.list.querySelector(`[data-focus="${focused}"]`)?.focus();
  }

  item(entry) {
    const here = entry.key === this.entry.key;
    return h("li", { class: here ? "chosen" : "" },
      h("button", { type: "button", class: "pick", "aria-pressed": String(here), "data-focus": entry.key, onclick: () => this.pick(entry) }, h("strong", { dir: "auto" }, entry.name), h("small", {}, entry.about)),
      ...(entry.own ? [
        h("a", { class: "button icon small", href: api.footageExport(entry.own.footage), download: "video-narratives.jsonl", "aria-label": `Export what was told about this video as Video Localized Narratives, ${entry.name} among it`, title: "Video Localized Narratives" }, icon("down")),
        button("", { kind: "icon small", icon: "bin", label: `Delete what was told of ${entry.name}`, onclick: () => this.remove(entry) }),
      ] : []));
  }

  async pick(entry) {
    try {
      await this.choose(entry, true);
      announce(`${entry.name}, ${clock(this.player.span[1])}`);
    } catch (error) {
      if (!(error instanceof api.Refused)) throw error;
      this.notes.replaceChildren(problem(error, () => this.pick(entry)));
    }
  }

  async remove(entry) {
    const before = this.entries;
    this.entries = before.filter((one) => one !== entry);
    const back = async () => { this.entries = before; if (this.app.mode === this && !this.view) await this.choose(entry, false); };
    undoable(`What was told of ${entry.name} is deleted.`, {
      act: () => api.filmed.removeNarrative(entry.own.id).catch((error) => { back(); toastProblem(error, "It is still there"); }),
      undo: back,
    });
    if (this.entries.length) await this.choose(this.entry === entry ? this.entries[0] : this.entry, false);
    else this.bare();
  }

  key(event) {
    if (this.view) return this.telling.key(event);
    if (this.editing) return this.editing.key(event);
    if (event.key === "e" && this.entry?.own && !event.ctrlKey && !event.metaKey && !event.altKey) { this.edit(); return true; }
    if (event.key === "k" && this.player.narrative) { this.player.toggle(); return true; }
    return false;
  }
}
