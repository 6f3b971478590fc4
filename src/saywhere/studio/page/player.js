/** Replays one narrative: words light up in time with the trace and the voice. */

import { button, calmMotion, clock, h, relabel, s } from "./dom.js";
import { css, timeColour } from "./colours.js";
import { spoken } from "./languages.js";
import { between, doubtful, pieces, positionAt, span, strokes, whereabouts, wordBoxes } from "./narrative.js";
import { toast } from "./notices.js";

const SPEEDS = [[0.5, "½×"], [1, "1×"], [1.5, "1½×"], [2, "2×"], [4, "4×"]];
const LEAST_SIDE = 0.03; // Boxes are shown at least this large, in fractions of the photo.

export class Player {
  /** Draws on the stage; `bar` holds its controls and `text` its words. */
  constructor(stage) {
    this.stage = stage;
    this.layer = stage.layer("replay");
    this.playButton = button("", { icon: "play", kind: "round", label: "Play", onclick: () => this.toggle() });
    this.scrub = h("input", { type: "range", step: "0.01", min: "0", "aria-label": "Time", oninput: () => this.seek(Number(this.scrub.value)) });
    this.clock = h("span", { class: "clock" });
    this.speed = h("select", { "aria-label": "Speed", onchange: () => this.setSpeed() }, SPEEDS.map(([value, text]) => h("option", { value, selected: value === 1 }, text)));
    this.bar = h("div", { class: "bar player", role: "group", "aria-label": "Replay" }, this.playButton, this.scrub, this.clock, this.speed);
    this.text = h("p", { class: "said", dir: "auto" });
    this.sound = null;
    this.frame = null;
    this.narrative = null;
    this.watch = null; // Called with the time and the last moment.
    this.clear();
  }

  clear(silence = true) {
    this.pause();
    if (silence) {
      this.sound?.removeAttribute("src");
      this.sound = null;
      this.address = "";
    }
    this.narrative = null;
    this.bar.hidden = true;
    for (const part of [this.text, this.layer]) {
      part.replaceChildren();
      part.classList.remove("timed", "pointing");
    }
  }

  /** audio: the address of its sound, or "". */
  load(narrative, { audio = "", play = false } = {}) {
    this.clear(!audio || audio !== this.address); // The same voice need not be fetched again.
    this.narrative = narrative;
    this.lines = strokes(narrative.trace);
    this.boxes = wordBoxes(narrative);
    this.span = span(narrative);
    if (audio && !this.sound) this.listenTo(audio);
    this.reach();
    this.draw();
    this.write();
    this.time = this.span[0];
    this.scrub.min = this.span[0];
    this.scrub.max = this.span[1];
    this.bar.hidden = this.span[1] <= this.span[0];
    this.tell();
    if (play && !this.bar.hidden && !calmMotion()) this.play();
  }

  listenTo(address) {
    this.address = address;
    const sound = this.sound = new Audio(address);
    sound.preload = "auto";
    sound.addEventListener("loadedmetadata", () => {
      if (this.sound !== sound || !this.narrative || !this.reach()) return;
      this.scrub.max = this.span[1];
      this.bar.hidden = false;
      this.tell();
    });
  }

  /** Last at least as long as the voice; whether that is longer than before. */
  reach() {
    const end = this.sound?.duration;
    if (!Number.isFinite(end) || end <= this.span[1]) return false;
    this.span[1] = end;
    return true;
  }

  colour(time) {
    const [from, to] = this.span;
    return css(timeColour(to > from ? (time - from) / (to - from) : 0));
  }

  draw() {
    this.ghosts = this.lines.map((line) => s("path", { class: "ghost", d: this.stage.path(line) }));
    this.pieces = pieces(this.lines, this.span).map(({ from, line, stroke }) => {
      const path = s("path", { class: "piece", d: this.stage.path(line) });
      path.style.stroke = this.colour(from);
      return { from, path, stroke };
    });
    this.rects = this.boxes.map((box, i) => box && this.drawBox(box, this.narrative.words[i]));
    this.part = [s("path", { class: "part under" }), s("path", { class: "part" })];
    this.head = [s("path", { class: "head under" }), s("path", { class: "head" })];
    this.layer.append(...this.ghosts, ...this.pieces.map(({ path }) => path), ...this.rects.filter(Boolean), ...this.part, ...this.head);
  }

  drawBox([x1, y1, x2, y2], word) {
    const grow = (a, b) => { const more = Math.max(0, LEAST_SIDE - (b - a)) / 2; return [a - more, b + more]; };
    const [[left, right], [top, bottom]] = [grow(x1, x2), grow(y1, y2)];
    const rect = this.stage.rect([left, top, right, bottom], { class: "wordbox" });
    rect.style.setProperty("--c", this.colour((word.start_s + word.end_s) / 2));
    return rect;
  }

  write() {
    const { words, text } = this.narrative;
    spoken(this.text, this.narrative.language);
    if (!words.length) { this.spans = []; this.text.append(text); return; }
    this.spans = words.map((word, i) => this.wordButton(word, i));
    this.text.append(...this.spans.flatMap((span) => [span, " "]));
    if (this.spans.length) this.spans[0].tabIndex = 0;
  }

  wordButton(word, i) {
    const place = this.boxes[i] ? `, ${whereabouts(this.boxes[i])}` : "", doubt = doubtful(word);
    const span = h("button", {
      type: "button", class: `word${this.boxes[i] ? "" : " nowhere"}${doubt ? " doubtful" : ""}`, tabindex: "-1",
      "aria-label": `${word.text}${place}${doubt ? ", time doubtful" : ""}`, title: doubt ? "The time of this word is doubtful" : null,
      onpointerenter: () => this.light(i), onpointerleave: () => this.light(null),
      onfocus: () => this.light(i), onblur: () => this.light(null),
      onclick: () => this.seek(word.start_s + 1e-3), onkeydown: (event) => this.wordKey(event, i),
    }, word.text);
    span.style.setProperty("--c", this.colour((word.start_s + word.end_s) / 2));
    return span;
  }

  wordKey(event, i) {
    const onward = getComputedStyle(this.text).direction === "rtl" ? -1 : 1;
    const goes = { ArrowRight: i + onward, ArrowLeft: i - onward, Home: 0, End: this.spans.length - 1 };
    if (!(event.key in goes)) return;
    event.preventDefault();
    const next = this.spans[Math.min(this.spans.length - 1, Math.max(0, goes[event.key]))];
    for (const span of this.spans) span.tabIndex = span === next ? 0 : -1;
    next.focus();
  }

  /** Show one word's box, and the part of the trace drawn while it was said; null: none. */
  light(index) {
    this.rects.forEach((rect, i) => rect?.classList.toggle("lit", i === index));
    this.spans.forEach((span, i) => span.classList.toggle("lit", i === index));
    const here = index !== null && this.boxes[index] !== null;
    this.layer.classList.toggle("pointing", here);
    const word = here ? this.narrative.words[index] : null;
    const data = here ? between(this.inSight(), word.start_s, word.end_s).map((line) => this.stage.path(line)).join("") : "";
    for (const path of this.part) path.setAttribute("d", data);
    if (here) this.part[1].style.stroke = this.colour((word.start_s + word.end_s) / 2);
  }

  /** The strokes that are on the picture in sight. */
  inSight() { return this.lines; }

  toggle() {
    if (this.frame === null) this.play(); else this.pause();
  }

  play() {
    if (!this.narrative || this.span[1] <= this.span[0]) return;
    if (this.time >= this.span[1] - 1e-3) this.seek(this.span[0]);
    relabel(this.playButton, { icon: "pause", label: "Pause" });
    this.startSound();
    let before = performance.now();
    const step = (now) => {
      const passed = Math.max(0, now - before) / 1000;
      before = now;
      const early = this.time < 0;
      this.at(this.hears() ? this.sound.currentTime : this.time + passed * Number(this.speed.value));
      if (early && this.time >= 0) this.startSound();
      if (this.time < this.span[1]) this.frame = requestAnimationFrame(step);
      else this.end();
    };
    this.frame = requestAnimationFrame(step);
  }

  /** Back to the beginning, with everything in sight. */
  end() {
    this.pause();
    this.time = this.span[0];
    this.showWhole();
    this.tell();
  }

  startSound() {
    if (!this.sound || this.time < 0 || this.time >= (this.sound.duration || Infinity)) return;
    this.sound.currentTime = this.time;
    this.sound.playbackRate = Number(this.speed.value);
    this.sound.play().catch((error) => {
      if (error.name !== "AbortError") toast("The sound cannot be played.", { kind: "problem", hint: error.message });
    });
  }

  /** While the voice is heard, it is the clock. */
  hears() {
    return this.sound !== null && !this.sound.paused && !this.sound.ended && this.sound.readyState >= 2;
  }

  pause() {
    cancelAnimationFrame(this.frame);
    this.frame = null;
    this.sound?.pause();
    relabel(this.playButton, { icon: "play", label: "Play" });
  }

  setSpeed() {
    if (this.sound) this.sound.playbackRate = Number(this.speed.value);
  }

  seek(time) {
    if (this.sound && time <= (this.sound.duration || Infinity)) this.sound.currentTime = Math.max(0, time);
    this.at(time);
  }

  /** The state of things at a time: what was pointed at so far, what is being said. */
  at(time) {
    this.time = Math.min(Math.max(time, this.span[0]), this.span[1]);
    this.layer.classList.add("timed");
    this.text.classList.add("timed");
    for (const { from, path } of this.pieces) path.classList.toggle("later", from > this.time);
    this.narrative.words.forEach(({ start_s, end_s }, i) => {
      const now = start_s <= this.time && this.time < end_s;
      this.spans[i].classList.toggle("now", now);
      this.spans[i].classList.toggle("later", start_s > this.time);
      this.rects[i]?.classList.toggle("now", now);
    });
    const place = positionAt(this.lines, this.time);
    for (const dot of this.head) dot.setAttribute("d", place ? this.stage.path([place]) : "");
    this.tell();
  }

  showWhole() {
    this.layer.classList.remove("timed");
    this.text.classList.remove("timed");
    for (const element of [...this.spans, ...this.rects.filter(Boolean)]) element.classList.remove("now", "later");
    for (const dot of this.head) dot.setAttribute("d", "");
  }

  tell() {
    this.scrub.value = this.time;
    this.clock.textContent = `${clock(this.time).split(" ")[0]} / ${clock(this.span[1])}`;
    const now = this.narrative.words.filter(({ start_s, end_s }) => start_s <= this.time && this.time < end_s);
    this.scrub.setAttribute("aria-valuetext", [clock(this.time), ...now.map((word) => word.text)].join(", "));
    const share = this.span[1] > this.span[0] ? (this.time - this.span[0]) / (this.span[1] - this.span[0]) : 0;
    this.scrub.style.setProperty("--done", `${(100 * share).toFixed(2)}%`);
    this.watch?.(this.time, this.span[1]);
  }
}
