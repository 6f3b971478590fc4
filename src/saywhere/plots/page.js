"use strict";

/** Strokes are flat lists x, y, t, x, y, t …; the pen was up between them. */
const pointAt = (stroke, i) => [stroke[3 * i], stroke[3 * i + 1], stroke[3 * i + 2]];
const firstTime = (stroke) => stroke[2];
const lastTime = (stroke) => stroke[stroke.length - 1];

/** Where the pointer was on one stroke at a time inside it. */
function onStroke(stroke, time) {
  let low = 0, high = stroke.length / 3 - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (stroke[3 * middle + 2] <= time) low = middle; else high = middle;
  }
  const a = pointAt(stroke, low), b = pointAt(stroke, high);
  const share = b[2] > a[2] ? Math.min(1, (time - a[2]) / (b[2] - a[2])) : 0;
  return [a[0] + share * (b[0] - a[0]), a[1] + share * (b[1] - a[1])];
}

/** Where the pointer was, or null if the pen was up. */
function position(strokes, time) {
  const stroke = strokes.find((s) => firstTime(s) <= time && time <= lastTime(s));
  return stroke ? onStroke(stroke, time) : null;
}

/** The part of the trace between two times, as SVG path data. */
function part(strokes, from, to) {
  let path = "";
  for (const stroke of strokes) {
    const a = Math.max(from, firstTime(stroke)), b = Math.min(to, lastTime(stroke));
    if (a > b) continue;
    const points = [onStroke(stroke, a)];
    for (let i = 0; i < stroke.length / 3; i += 1) {
      const [x, y, t] = pointAt(stroke, i);
      if (t > a && t < b) points.push([x, y]);
    }
    points.push(onStroke(stroke, b));
    path += "M" + points.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`).join("L");
  }
  return path;
}

/** The time of the point of the trace nearest to (x, y), or null if none is within reach. */
function nearestTime(strokes, x, y, reach) {
  let best = reach * reach, time = null;
  for (const stroke of strokes) {
    for (let i = 0; i < stroke.length; i += 3) {
      const distance = (stroke[i] - x) ** 2 + (stroke[i + 1] - y) ** 2;
      if (distance < best) { best = distance; time = stroke[i + 2]; }
    }
  }
  return time;
}

function clock(seconds) {
  const s = Math.abs(seconds), sign = seconds < 0 && s >= 0.05 ? "−" : "";
  if (s >= 36000) return `${seconds.toPrecision(3)} s`;
  if (Math.round(s * 10) < 600) return `${sign}${s.toFixed(1)} s`;
  return `${sign}${Math.floor(Math.round(s) / 60)}:${String(Math.round(s) % 60).padStart(2, "0")} min`;
}

let nowPlaying = null;

/** One narrative: its player, its words, its trace. */
class Narrative {
  constructor(article) {
    const one = (selector) => article.querySelector(selector);
    const all = (selector) => [...article.querySelectorAll(selector)];
    Object.assign(this, JSON.parse(one(".data").textContent));
    this.article = article;
    this.svg = one(".stage svg");
    this.caption = one(".caption");
    this.spans = all(".word");
    this.pieceLines = all(".stage > svg .piece");
    this.boxes = new Map(all(".box").map((box) => [Number(box.dataset.word), box]));
    this.said = all(".said");
    this.head = all(".head");
    this.play = one(".play");
    this.scrub = one(".scrub");
    this.clock = one(".clock");
    this.speed = one(".speed");
    this.spoken = one(".spoken");
    this.time = this.span[0];
    this.pinned = null;
    this.cursor = 0;
    this.frame = null;
    this.listen(one(".every"));
    one(".player").hidden = this.span[1] <= this.span[0];
    this.tell();
  }

  listen(every) {
    this.play.addEventListener("click", () => (this.frame === null ? this.start() : this.stop()));
    this.scrub.addEventListener("input", () => this.seek(Number(this.scrub.value)));
    every.addEventListener("change", () => this.article.classList.toggle("all", every.checked));
    this.svg.addEventListener("pointermove", (event) => this.pointAtPhoto(event));
    this.svg.addEventListener("pointerleave", () => this.light(this.pinned));
    if (!this.caption) return;
    this.caption.addEventListener("pointerover", (event) => {
      if (event.pointerType === "mouse") this.light(this.wordOf(event.target) ?? this.pinned);
    });
    this.caption.addEventListener("pointerleave", () => this.light(this.pinned));
    this.caption.addEventListener("click", (event) => this.pin(this.wordOf(event.target)));
    this.caption.addEventListener("keydown", (event) => this.key(event));
    this.caption.addEventListener("focus", () => {
      if (this.caption.matches(":focus-visible")) this.goTo(this.cursor);
    });
    this.caption.addEventListener("blur", () => this.pin(null));
  }

  /** The strokes that are on the picture in sight. */
  inSight() { return this.strokes; }

  seek(time) { this.show(time); }

  /** What time it is, so many seconds after the last look at the clock. */
  advance(passed) { return this.time + passed * Number(this.speed.value); }

  wordOf(target) {
    const index = this.spans.indexOf(target.closest(".word"));
    return index < 0 ? null : index;
  }

  /** Light up a word, its box and the part of the trace that was drawn while it was said; null: none. */
  light(index) {
    this.spans.forEach((span, i) => span.classList.toggle("lit", i === index));
    this.boxes.forEach((box, i) => box.classList.toggle("lit", i === index));
    const here = index !== null && this.boxes.has(index);
    this.article.classList.toggle("pointing", here);
    const path = here ? part(this.inSight(), ...this.words[index]) : "";
    const colour = here ? this.boxes.get(index).dataset.colour : "";
    for (const line of this.said) {
      line.setAttribute("d", path);
      line.setAttribute("class", line.classList.contains("under") ? "said under" : `said ${colour}`);
    }
  }

  pin(index) {
    this.pinned = index === this.pinned ? null : index;
    if (this.pinned !== null) {
      this.cursor = this.pinned;
      if (this.frame === null) { this.time = this.words[this.pinned][0]; this.tell(); }
    }
    this.light(this.pinned);
  }

  goTo(index) {
    this.cursor = Math.min(Math.max(index, 0), this.spans.length - 1);
    this.pinned = null;
    this.pin(this.cursor);
    const box = this.boxes.get(this.cursor);
    this.spoken.textContent = [this.spans[this.cursor].textContent, clock(this.words[this.cursor][0]), box ? this.whereabouts(box) : "no place"].join(", ");
  }

  whereabouts(box) {
    const view = this.svg.viewBox.baseVal;
    const third = (at, size, names) => names[Math.min(2, Math.max(0, Math.floor((3 * at) / size)))];
    const x = box.x.baseVal.value + box.width.baseVal.value / 2, y = box.y.baseVal.value + box.height.baseVal.value / 2;
    return `${third(y - view.y, view.height, ["top", "middle", "bottom"])} ${third(x - view.x, view.width, ["left", "centre", "right"])}`;
  }

  key(event) {
    const onward = getComputedStyle(this.caption).direction === "rtl" ? -1 : 1;
    const goes = { ArrowRight: this.cursor + onward, ArrowLeft: this.cursor - onward, Home: 0, End: this.spans.length - 1 };
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in goes) this.goTo(this.pinned === null ? this.cursor : goes[event.key]);
    else if (event.key === "Escape") { this.pin(null); if (this.frame === null) this.showAll(); }
    else if (event.key === "Enter") { this.time = this.words[this.cursor][0]; this.start(); }
    else if (event.key === " ") { if (this.frame === null) this.start(); else this.stop(); }
    else return;
    event.preventDefault();
  }

  pointAtPhoto(event) {
    if (event.pointerType !== "mouse" || this.frame !== null) return;
    const matrix = this.svg.getScreenCTM();
    if (!matrix) return;
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(matrix.inverse());
    const time = nearestTime(this.inSight(), at.x, at.y, 24 / matrix.a);
    const index = time === null ? -1 : this.words.findIndex(([from, to]) => from <= time && time < to);
    this.light(index < 0 ? this.pinned : index);
  }

  start() {
    if (nowPlaying) nowPlaying.stop();
    nowPlaying = this;
    this.pinned = null;
    this.light(null);
    if (this.time >= this.span[1]) this.time = this.span[0];
    this.article.classList.add("playing");
    this.play.setAttribute("aria-label", "Pause");
    let before = null;
    const step = (now) => {
      const passed = before === null ? 0 : (now - before) / 1000;
      before = now;
      this.show(this.advance(passed));
      if (this.time < this.span[1]) this.frame = requestAnimationFrame(step);
      else { this.stop(); this.showAll(); }
    };
    this.frame = requestAnimationFrame(step);
  }

  stop() {
    cancelAnimationFrame(this.frame);
    this.frame = null;
    nowPlaying = null;
    this.article.classList.remove("playing");
    this.play.setAttribute("aria-label", "Play");
  }

  /** The state of things at a time: what was pointed at so far, what is being said. */
  show(time) {
    this.time = Math.min(time, this.span[1]);
    this.article.classList.add("timed");
    this.pieceLines.forEach((line, i) => line.classList.toggle("later", this.pieces[i] > this.time));
    this.words.forEach(([from, to], i) => {
      const now = from <= this.time && (this.time < to || (this.time === to && i === this.words.length - 1));
      this.spans[i].classList.toggle("now", now);
      this.spans[i].classList.toggle("later", from > this.time);
      if (this.boxes.has(i)) this.boxes.get(i).classList.toggle("now", now);
    });
    const at = position(this.strokes, this.time);
    for (const dot of this.head) dot.setAttribute("d", at ? `M${at[0]} ${at[1]}h.01` : "");
    this.tell();
  }

  /** The whole trace, as before playing. */
  showAll() {
    this.article.classList.remove("timed");
    [...this.spans, ...this.boxes.values()].forEach((element) => element.classList.remove("now", "later"));
    for (const dot of this.head) dot.setAttribute("d", "");
  }

  /** Scrubber and clock. */
  tell() {
    this.scrub.value = this.time;
    this.clock.textContent = `${clock(this.time)} / ${clock(this.span[1])}`;
    const words = this.spans.filter((span) => span.classList.contains("now")).map((span) => span.textContent);
    this.scrub.setAttribute("aria-valuetext", [clock(this.time), ...words].join(", "));
  }
}

// When the whole script was read: a page with videos goes on with their part of it.
queueMicrotask(() => {
  for (const article of document.querySelectorAll(".narrative")) new (article.classList.contains("film") ? Film : Narrative)(article);
});
