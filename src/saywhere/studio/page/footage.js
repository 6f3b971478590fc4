/** A video to tell about: watched on the stage, its frames in a strip, those to point at chosen among them. */

import * as api from "./api.js";
import { button, clock, counted, h } from "./dom.js";
import { announce, busy, problem } from "./notices.js";

const MOST_CHOSEN = 8; // At first; people choose more or fewer.
const STEP_MS = 200; // A frame of a folder stays so long when it is played.
const SHARP = 0.92; // The quality of frames that are kept as JPEG.

/** Of a long row, at most so many, evenly spread. */
const spread = (row, most) => (row.length <= most ? row : Array.from({ length: most }, (_, i) => row[Math.round((i * (row.length - 1)) / (most - 1))]));

export class FootageView {
  /** footage: as the server has it. file: where the video itself is, "" if there are only frames. */
  constructor(stage, footage, file) {
    Object.assign(this, { stage, footage, file });
    this.chosen = new Set(spread(footage.frames.map(({ name }) => name), MOST_CHOSEN));
    this.strip = h("ol", { class: "strip", "aria-label": "Frames" });
    this.note = h("div", { role: "status" });
    this.screen = h("video", { class: "screen", controls: true, playsinline: true, preload: "auto", "aria-label": footage.name, hidden: true });
    this.watch = button("Watch", { kind: "quiet", icon: "play", onclick: () => this.play() });
    this.keep = file ? button("Keep this frame", { kind: "quiet", icon: "add", onclick: () => this.keepFrame() }) : null;
    this.element = h("div", {}, h("div", { class: "row" }, this.watch, this.keep), this.note, this.strip);
    this.at = null; // The name of the frame in sight; null while the video is.
    this.timer = null;
  }

  get frames() { return this.footage.frames.filter(({ name }) => this.chosen.has(name)); }

  /** Take the stage: with the video, or its first frame. */
  async open() {
    const { footage, stage, screen, file } = this;
    stage.pad.append(screen);
    const shown = { name: footage.name, width: footage.width, height: footage.height, url: footage.frames[0]?.url ?? "data:," };
    if (file) {
      screen.src = file;
      await new Promise((resolve) => { screen.onloadedmetadata = screen.onerror = resolve; });
      if (screen.error) this.note.replaceChildren(problem({ message: "This browser cannot play the video.", hint: "MP4 with H.264 and WebM play nearly everywhere. Frames that were kept before are below." }));
      else Object.assign(shown, { width: screen.videoWidth, height: screen.videoHeight });
    }
    stage.show(shown);
    if (!footage.frames.length) stage.pad.classList.remove("loading");
    this.screen.hidden = !file || Boolean(screen.error);
    this.render();
    if (!file && footage.frames.length) this.see(footage.frames[0].name);
  }

  /** Leave the stage. */
  close() {
    this.stop();
    this.screen.remove();
  }

  /** A video plays itself; frames are shown one after the other. */
  play() {
    if (this.timer) { this.stop(); return; }
    if (this.file) {
      this.screen.hidden = false;
      this.mark(null);
      this.screen.play().catch((error) => this.note.replaceChildren(problem({ message: "The video cannot be played.", hint: error.message })));
      return;
    }
    const names = this.footage.frames.map(({ name }) => name);
    let next = 0;
    this.watch.querySelector("span").textContent = "Stop";
    this.timer = setInterval(() => { if (next < names.length) this.see(names[next++]); else this.stop(); }, STEP_MS);
  }

  stop() {
    clearInterval(this.timer);
    this.timer = null;
    this.watch.querySelector("span").textContent = "Watch";
    this.screen.pause();
  }

  /** Bring a frame into sight. */
  see(name) {
    const frame = this.footage.frames.find((one) => one.name === name);
    this.screen.pause();
    this.screen.hidden = true;
    this.stage.flip(frame.url, `${this.footage.name}, ${name}`);
    this.mark(name);
  }

  mark(name) {
    this.at = name;
    for (const thumb of this.strip.querySelectorAll("button"))
      if (thumb.title === name) thumb.setAttribute("aria-current", "true"); else thumb.removeAttribute("aria-current");
  }

  render() {
    const { frames } = this.footage;
    this.strip.style.setProperty("--ratio", String(this.stage.photo.width / this.stage.photo.height));
    this.strip.replaceChildren(...frames.map(({ name, url }, i) => h("li", {}, h("button", {
      type: "button", class: "choice", title: name, "aria-label": `Frame ${i + 1} of ${frames.length}, ${name}`, "aria-pressed": String(this.chosen.has(name)), onclick: () => this.toggle(name),
    }, h("img", { src: url, alt: "", loading: "lazy" })))));
    this.mark(this.at);
  }

  /** Choose a frame, or leave it out. One that is not in sight comes into sight first. */
  toggle(name) {
    this.stop();
    if (this.chosen.has(name) && this.at !== name) { this.see(name); return; }
    this.see(name);
    if (this.chosen.has(name)) this.chosen.delete(name); else this.chosen.add(name);
    this.render();
    this.strip.querySelector("[aria-current]").focus();
    announce(`${counted(this.chosen.size, "frame")} chosen`);
  }

  /** The picture of the video that is in sight, called by its time in milliseconds. */
  async keepFrame() {
    const { screen, footage } = this;
    screen.pause();
    const canvas = Object.assign(document.createElement("canvas"), { width: screen.videoWidth, height: screen.videoHeight });
    canvas.getContext("2d").drawImage(screen, 0, 0);
    const time = screen.currentTime;
    const blob = await new Promise((resolve) => { canvas.toBlob(resolve, "image/jpeg", SHARP); });
    this.keep.disabled = true;
    this.note.replaceChildren(busy("Keeping the frame …"));
    try {
      const frame = await api.addFrame(footage.id, blob, `frame_${String(Math.round(1000 * time)).padStart(8, "0")}.jpg`);
      footage.frames = [...footage.frames.filter(({ name }) => name !== frame.name), frame].sort((a, b) => (a.name < b.name ? -1 : 1));
      this.chosen.add(frame.name);
      this.render();
      this.note.replaceChildren();
      announce(`The frame at ${clock(time)} is kept, ${counted(this.chosen.size, "frame")} chosen`);
    } catch (error) {
      if (!(error instanceof api.Refused)) throw error;
      this.note.replaceChildren(problem(error, () => this.keepFrame()));
    }
    this.keep.disabled = false;
  }
}

/** Footage out of files that somebody picked: a video, which stays in the browser, or pictures, which are sent. tell: gets what is under way. */
export async function bring(files, tell) {
  const [video] = files.filter(({ type }) => type.startsWith("video/"));
  if (video) return { footage: await api.bringFootage(video.name), file: URL.createObjectURL(video) };
  const pictures = [...files].sort((a, b) => a.name.localeCompare(b.name, undefined, { numeric: true }));
  const { id } = await api.bringFootage(pictures[0].name);
  for (const [i, picture] of pictures.entries()) {
    tell(`Sending frame ${i + 1} of ${pictures.length} …`);
    await api.addFrame(id, picture, picture.name);
  }
  return { footage: (await api.footage()).find((one) => one.id === id), file: "" };
}
