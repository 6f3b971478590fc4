/** Replay what somebody told about a video: key frames, trace and voice together. */

import * as api from "./api.js";
import { clock, counted, h } from "./dom.js";
import { announce, busy, problem } from "./notices.js";
import { Player } from "./player.js";

/** A player whose strokes lie on several frames; the one that was pointed at last is in sight. */
class FilmPlayer extends Player {
  /** show: called with the number of a frame when that comes into sight. */
  constructor(stage, show) {
    super(stage);
    this.show = show;
  }

  clear() {
    super.clear();
    this.inView = null;
  }

  load(actor, how) {
    super.load(actor, how);
    this.look(this.frameAt(this.time));
  }

  frameAt(time) {
    const begun = this.lines.filter((line) => line[0][2] <= time).length;
    return this.narrative.stroke_frames[Math.max(0, begun - 1)] ?? 0;
  }

  inSight() { return this.lines.filter((_, i) => this.narrative.stroke_frames[i] === this.inView); }

  /** Bring a frame into sight, with what was drawn on it. */
  look(frame) {
    if (frame === this.inView) return;
    this.inView = frame;
    const { stroke_frames: strokes, word_frames: words } = this.narrative;
    this.ghosts.forEach((path, i) => path.classList.toggle("elsewhere", strokes[i] !== frame));
    for (const { path, stroke } of this.pieces) path.classList.toggle("elsewhere", strokes[stroke] !== frame);
    this.rects.forEach((rect, i) => rect?.classList.toggle("elsewhere", words[i] !== frame));
    this.show(frame);
  }

  light(index) {
    const frame = index === null ? null : this.narrative.word_frames[index];
    if (frame !== null && this.frame === null) this.look(frame);
    super.light(index);
  }

  at(time) {
    super.at(time);
    this.look(this.frameAt(this.time));
  }

  /** One frame with all that was drawn on it, at the moment when it was first pointed at. */
  choose(frame) {
    this.pause();
    const first = this.lines.find((_, i) => this.narrative.stroke_frames[i] === frame);
    if (first) this.seek(first[0][2]);
    this.showWhole();
    this.look(frame);
  }
}

export class Video {
  constructor(app) {
    this.app = app;
    this.name = "video";
    this.title = "Video";
    this.player = new FilmPlayer(app.stage, (frame) => this.showFrame(frame));
    this.dock = h("div", { class: "docked" }, this.player.bar);
    this.state = h("div", {});
    this.strip = h("ol", { class: "strip", "aria-label": "Key frames" });
    this.notes = h("div", { class: "result" });
    this.list = h("ul", { class: "list narratives" });
    this.panel = h("div", { class: "paper" }, h("h2", {}, "Replay a video"), this.state, this.player.text, this.notes, this.strip, this.list);
    this.video = this.actor = null;
  }

  async enter() {
    document.body.classList.remove("bare");
    this.player.layer.removeAttribute("visibility");
    if (this.video) { this.stageVideo(); return; }
    this.state.replaceChildren(busy("Fetching videos …"));
    try {
      const { videos, skipped } = await api.videos();
      this.videos = videos;
      const left = skipped ? ` ${counted(skipped, "record")} of the file could not be read.` : "";
      this.state.replaceChildren(h("p", { class: "lead" }, `Words light up as they are said, and the trace goes from frame to frame.${left}`));
      if (videos.length) await this.choose(0, 0, false);
    } catch (error) {
      if (!(error instanceof api.Refused)) throw error;
      this.state.replaceChildren(problem(error, () => this.enter()));
    }
  }

  leave() {
    this.player.pause();
    this.player.layer.setAttribute("visibility", "hidden");
    document.body.classList.toggle("bare", this.app.photo === null);
    this.app.stage.show(this.app.photo);
  }

  async choose(number, actor, play) {
    const wanted = (this.wanted = {}); // Who chooses again meanwhile, means that.
    const video = this.video?.id === number ? this.video : await api.video(number);
    if (this.wanted !== wanted) return;
    Object.assign(this, { video, actor });
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
    const told = this.video.actors[this.actor];
    this.strip.style.setProperty("--ratio", String(this.video.width / this.video.height));
    this.strip.replaceChildren(...this.video.frames.map((frame, i) => this.thumb(frame, i)));
    this.player.load(told, { audio: told.audio ?? "", play });
    const missing = this.video.frames.filter(({ url }) => url === null).map(({ name }) => name);
    this.notes.replaceChildren(...[
      told.words.length ? "" : "The words have no times.",
      told.audio ? "" : "The voice is not here; the words are lit without it.",
      missing.length ? `Missing key frames: ${missing.join(", ")}. The replay goes on without them.` : "",
    ].filter(Boolean).map((note) => h("p", { class: "hint" }, note)));
  }

  thumb({ name, url, missing }, i) {
    const told = this.video.actors[this.actor];
    const stroke = told.stroke_frames.indexOf(i);
    const when = stroke < 0 ? "nobody pointed at it" : `pointed at from ${clock(told.trace.points[told.trace.starts[stroke]][2])}`;
    const label = `Key frame ${i + 1} of ${this.video.frames.length}, ${name}, ${url ? "" : `missing: ${missing}, `}${when}`;
    return h("li", {}, h("button", { type: "button", class: stroke < 0 ? "bare" : "", "aria-label": label, title: name, onclick: () => this.player.choose(i) },
      url ? h("img", { src: url, alt: "" }) : "missing"));
  }

  showFrame(index) {
    if (this.app.mode !== this) return;
    const frame = this.video.frames[index];
    this.app.stage.flip(frame?.url ?? null, `${this.video.video}, ${frame?.name ?? "no frame"}`, frame?.url ? "" : `${frame?.name ?? "The key frame"} is missing: ${frame?.missing ?? "there is none"}`);
    [...this.strip.children].forEach((item, i) => {
      if (i === index) item.firstChild.setAttribute("aria-current", "true"); else item.firstChild.removeAttribute("aria-current");
    });
  }

  render() {
    const focused = document.activeElement?.dataset?.focus;
    this.list.replaceChildren(...this.videos.flatMap((video) => video.actors.map((name, actor) => this.item(video, name, actor))));
    if (focused) this.list.querySelector(`[data-focus="${focused}"]`)?.focus();
  }

  item(video, name, actor) {
    const here = video.id === this.video.id && actor === this.actor;
    return h("li", { class: here ? "chosen" : "" }, h("button", { type: "button", class: "pick", "aria-pressed": String(here), "data-focus": `video-${video.id}-${actor}`, onclick: () => this.pick(video, name, actor) },
      h("strong", { dir: "auto" }, name), h("small", {}, `${video.video} · ${counted(video.frames, "key frame")}${video.annotator ? ` · annotator ${video.annotator}` : ""}`)));
  }

  async pick(video, name, actor) {
    try {
      await this.choose(video.id, actor, true);
      announce(`${name}, ${clock(this.player.span[1])}`);
    } catch (error) {
      if (!(error instanceof api.Refused)) throw error;
      this.notes.replaceChildren(problem(error, () => this.pick(video, name, actor)));
    }
  }

  key(event) {
    if (event.key === "k" && this.player.narrative) { this.player.toggle(); return true; }
    return false;
  }
}
