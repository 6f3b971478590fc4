/** Tell about a video: the recorder, with the chosen frames to point at one after the other. */

import { filmed } from "./api.js";
import * as drafts from "./drafts.js";
import { button, h } from "./dom.js";
import { FilmPlayer } from "./film.js";
import { announce, problem } from "./notices.js";
import { Record } from "./record.js";
import { remembered } from "./settings.js";
import { KEYS, whileTyping } from "./shortcuts.js";
import { Take } from "./take.js";
import { waitingList } from "./waiting.js";

const NO_QUEUE = { show: () => "", next: () => null, told() {} };
const TURNS = { PageDown: 1, PageUp: -1 };
const OF_QUEUES = ["n", "x"]; // Keys that lead from photo to photo.
const FILM_KEYS = [...KEYS.filter(([keys]) => !["N", "X"].includes(keys[0]) && !keys.includes("Enter")), [["Page down", "Page up"], "next frame, frame before"]];

/** A take whose strokes each lie on one frame. */
class FilmTake extends Take {
  /** view: of the footage. actor: whom it tells of. */
  constructor(view, actor, ...how) {
    super(view.footage, ...how);
    this.frame = 0;
    Object.assign(this.draft, { actor, frames: view.frames.map(({ name }) => name), stroke_frames: [] });
  }

  down(x, y, moment) {
    this.draft.stroke_frames.push(this.frame);
    super.down(x, y, moment);
  }

  retract() {
    const gone = super.retract();
    if (gone) this.draft.stroke_frames.pop();
    return gone;
  }
}

export class Telling extends Record {
  /** goHome: called when somebody goes back to all videos. */
  constructor(app, goHome) {
    const desk = { stage: app.stage, status: app.status, queue: NO_QUEUE, lock: (on) => app.lock(on), get photo() { return telling.view?.footage ?? null; } };
    super(desk, new FilmPlayer(app.stage, (frame) => telling.showFrame(frame)), filmed);
    const telling = this;
    Object.assign(this, { goHome, view: null, keys: FILM_KEYS });
    this.whileTyping = (event) => whileTyping(event) || (this.state === "recording" && event.key in TURNS);
  }

  /** Take the stage for a video. */
  async takeStage(view) {
    if (view !== this.view) { this.view?.close(); this.putAway(); }
    this.view = view;
    await view.open();
    if (this.recording) this.review(); else await this.rest();
  }

  close() {
    super.leave();
    this.putAway();
    this.lines.replaceChildren();
    this.view?.close();
    this.view = null;
  }

  // Before.

  introduction() {
    this.actor = h("input", { id: "actor", autocomplete: "off", maxlength: 200, placeholder: "Cat, or background", required: true });
    return [
      button("All videos", { kind: "quiet small back", icon: "back", onclick: () => this.goHome() }),
      h("h2", { dir: "auto" }, this.view.footage.name),
      h("p", { class: "lead" }, this.view.file ? "Watch it, and keep the frames that show it best." : "Watch it, and choose the frames that show it best.", " Then tell about one actor after the other: point at frame after frame while you speak."),
      this.view.element,
      h("div", { class: "fields" }, h("label", { for: "actor" }, "Whom do you tell about?"), this.actor),
    ];
  }

  async listWaiting() {
    const found = await waitingList((draft) => this.resume(draft), ({ frames, photo }) => frames && photo === this.view.footage.id);
    if (this.state === "idle") this.aside.replaceChildren(...found);
  }

  /** Go on with a recording that was not saved. */
  async resume(draft) {
    const whole = await drafts.whole(draft);
    this.putAway();
    this.recording = { ...whole, release: drafts.hold(draft.id) };
    this.review();
  }

  async begin() {
    const lacks = !this.view.frames.length ? ["No frame is chosen.", "Press those in the strip that you want to point at.", this.view.strip.querySelector("button") ?? this.view.keep]
      : !this.actor.value.trim() ? ["Say first whom you tell about.", "A word or two are enough; \"background\" is for all the rest.", this.actor] : null;
    if (!lacks) { await super.begin(); return; }
    this.aside.replaceChildren(problem({ message: lacks[0], hint: lacks[1] }));
    lacks[2].focus();
  }

  // Meanwhile.

  newTake(microphone, onTrouble) {
    this.view.stop();
    return new FilmTake(this.view, this.actor.value.trim(), remembered("annotator", ""), microphone, onTrouble);
  }

  record() {
    super.record();
    const { frames } = this.view;
    this.strip = h("ol", { class: "strip", "aria-label": "Frames to point at" }, frames.map(({ name, url }, i) => h("li", {},
      h("button", { type: "button", title: name, "aria-label": `Frame ${i + 1} of ${frames.length}, ${name}`, onclick: () => this.turnTo(i) }, h("img", { src: url, alt: "" })))));
    this.strip.style.setProperty("--ratio", String(this.app.stage.photo.width / this.app.stage.photo.height));
    this.panel.querySelector(".lead").after(this.strip, h("p", { class: "hint" }, "Press a frame to point at it, or Page up and Page down."));
    this.ring = [this.app.stage.pad, this.panel.querySelector("#typed")];
    this.turnTo(0);
  }

  /** Another of the chosen frames to point at. A line that is being drawn ends where it is. */
  turnTo(frame) {
    this.app.stage.dropHand();
    for (const path of this.lines.children) {
      path.dataset.frame ??= String(this.take.frame);
      path.classList.toggle("elsewhere", path.dataset.frame !== String(frame));
    }
    this.take.frame = frame;
    this.showFrame(frame);
    announce(`Frame ${frame + 1} of ${this.take.draft.frames.length}`);
  }

  /** A frame, by its place among those that this is told about. */
  showFrame(frame) {
    if (!this.view) return;
    const told = this.take?.draft.frames ?? this.player.narrative?.frames ?? [];
    if (told[frame] === undefined) return;
    this.view.see(told[frame]);
    [...(this.strip?.children ?? [])].forEach((item, i) => {
      if (i === frame) item.firstChild.setAttribute("aria-current", "true"); else item.firstChild.removeAttribute("aria-current");
    });
  }

  // Afterwards.

  asNarrative() {
    const { photo, ...told } = super.asNarrative();
    const { actor, frames, stroke_frames: lie, starts } = this.recording;
    return { ...told, footage: photo, actor, frames, stroke_frames: lie.slice(0, starts.length), word_frames: [] };
  }

  async store() { await super.store(false); }

  onward() {
    return [button("Tell about another actor", { kind: "primary", "aria-keyshortcuts": "r", onclick: () => this.again() }), button("All videos", { kind: "quiet", onclick: () => this.goHome() })];
  }

  again() {
    this.rest();
    this.actor.focus();
  }

  key(event) {
    if (this.state === "recording" && event.key in TURNS) {
      const frame = this.take.frame + TURNS[event.key];
      if (frame >= 0 && frame < this.take.draft.frames.length) this.turnTo(frame);
      return true;
    }
    return !OF_QUEUES.includes(event.key.toLowerCase()) && super.key(event);
  }
}
