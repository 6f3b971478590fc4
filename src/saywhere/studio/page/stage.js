/** The photo with everything drawn over it, and the hand that draws: mouse, pen, finger or keys. */

import { h, s } from "./dom.js";
import { timeColour } from "./colours.js";
import { announce } from "./notices.js";

const WIDTH = 1000; // Of the drawing, in its own units.
const STEP = 0.01, LEAP = 0.05; // Of the keyboard's pointer, in fractions of the photo.
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

export class Stage {
  /** Zoom: what lets people come closer, if they can. */
  constructor(element, Zoom = null) {
    this.element = element;
    this.image = h("img", { alt: "", draggable: "false" });
    this.heat = h("canvas", { class: "heat", hidden: true, "aria-hidden": "true" });
    this.drawing = s("svg", { class: "drawing", "aria-hidden": "true", preserveAspectRatio: "none" });
    this.cursor = s("g", { class: "cursor" }, s("path", { class: "under" }), s("path", {}));
    this.lack = h("p", { class: "lack" });
    this.badges = h("div", { class: "badges", "aria-hidden": "true" });
    this.pad = h("div", { class: "pad", tabindex: "-1", role: "group", "aria-label": "Photo" }, this.image, this.lack, this.heat, this.drawing, this.badges);
    this.empty = h("div", { class: "nothing" });
    this.photo = null;
    this.hand = null;
    this.at = [0.5, 0.5];
    this.keyDown = false;
    this.pointer = null;
    element.append(this.empty, this.pad);
    this.drawing.append(this.cursor);
    this.cursor.setAttribute("visibility", "hidden");
    this.pad.hidden = true;
    this.image.addEventListener("load", () => this.pad.classList.remove("loading"));
    this.zoom = Zoom && new Zoom(this);
    this.listen();
  }

  show(photo) {
    this.dropHand();
    this.zoom?.reset();
    this.photo = photo;
    this.pad.hidden = photo === null;
    this.empty.hidden = photo !== null;
    this.showHeat(null);
    this.image.hidden = false;
    this.lack.textContent = "";
    if (photo === null) return;
    this.height = (WIDTH * photo.height) / photo.width;
    this.drawing.setAttribute("viewBox", `0 0 ${WIDTH} ${this.height}`);
    this.pad.style.setProperty("--ratio", String(photo.width / photo.height));
    this.pad.classList.add("loading");
    this.image.src = photo.url;
    this.image.alt = photo.name;
    this.at = [0.5, 0.5];
    this.label();
  }

  /** Another picture of the same size in its place, at once; none, if address is null, and why. */
  flip(address, name, why = "") {
    if (address !== null && this.image.getAttribute("src") !== address) this.image.src = address;
    this.image.hidden = address === null;
    this.image.alt = name;
    this.lack.textContent = why;
  }

  /** A group to draw in; later ones lie above earlier ones. */
  layer(name) {
    const group = s("g", { class: name });
    this.drawing.insertBefore(group, this.cursor);
    return group;
  }

  /** Path data through points, in the drawing's units. */
  path(line) {
    const place = ([x, y]) => `${(x * WIDTH).toFixed(1)} ${(y * this.height).toFixed(1)}`;
    return `M${line.map(place).join("L")}${line.length === 1 ? "h.01" : ""}`;
  }

  rect([x1, y1, x2, y2], attributes) {
    const size = { x: x1 * WIDTH, y: y1 * this.height, width: (x2 - x1) * WIDTH, height: (y2 - y1) * this.height };
    return s("rect", { ...size, rx: 6, ...attributes });
  }

  /** A picture over the whole photo. */
  picture(address, attributes) {
    return s("image", { href: address, width: WIDTH, height: this.height, preserveAspectRatio: "none", ...attributes });
  }

  /** A number at a place of the photo. */
  badge(text, x, y, chosen) {
    const badge = h("span", { class: chosen ? "badge chosen" : "badge" }, text);
    badge.style.left = `${100 * Math.min(0.98, Math.max(0.02, x))}%`;
    badge.style.top = `${100 * Math.min(0.97, Math.max(0.03, y))}%`;
    return badge;
  }

  /** Weights of patches, (rows, cols) over the whole photo, below 0 as 0; null takes them away. */
  showHeat(weights) {
    this.heat.hidden = weights === null;
    if (weights === null) return;
    const [rows, cols] = [weights.length, weights[0].length];
    const most = weights.flat().reduce((a, b) => Math.max(a, b), 0) || 1;
    Object.assign(this.heat, { width: cols, height: rows });
    const image = new ImageData(cols, rows);
    weights.flat().forEach((weight, i) => {
      const share = Math.max(0, weight) / most;
      image.data.set([...timeColour(share), Math.round(255 * (0.35 + 0.35 * share))], 4 * i);
    });
    this.heat.getContext("2d").putImageData(image, 0, 0);
  }

  /**
   * Who draws. hand: {name, how, down(x, y, t), move(x, y, t), up(x, y, t), cancel()}, t in ms as performance.now();
   * a `tap` hand has no line: keys press and let go at once. One that only feels may have hover(x, y) and left(x, y) for
   * a mouse that is not pressed, and key(event), which says whether it takes a key. null: nobody.
   */
  setHand(hand) {
    this.dropHand();
    this.hand = hand;
    this.pad.classList.toggle("drawable", hand !== null);
    this.label();
  }

  label() {
    const name = this.photo ? this.photo.name : "Photo";
    const drawable = this.hand !== null && this.photo !== null;
    this.pad.tabIndex = drawable ? 0 : -1;
    this.pad.setAttribute("role", drawable ? "application" : "group");
    this.pad.setAttribute("aria-label", drawable ? `${name}. ${this.hand.name}: ${this.hand.how}` : name);
  }

  /** Forget a line that is not finished. */
  dropHand() {
    if (this.hand && (this.keyDown || this.pointer !== null)) this.hand.cancel();
    this.keyDown = false;
    this.pointer = null;
    this.pad.classList.remove("down");
    this.cursor.setAttribute("visibility", "hidden");
  }

  /** Undo the beginning of a line: it was the first of two fingers. */
  retract() {
    if (this.pointer === null) return;
    this.hand.retract?.();
    this.dropHand();
  }

  fraction(event, area = this.pad.getBoundingClientRect()) {
    return [(event.clientX - area.left) / area.width, (event.clientY - area.top) / area.height];
  }

  listen() {
    this.pad.addEventListener("pointerdown", (event) => this.pressed(event));
    this.pad.addEventListener("pointermove", (event) => this.moved(event));
    this.pad.addEventListener("pointerup", (event) => this.released(event));
    this.pad.addEventListener("pointercancel", (event) => { if (event.pointerId === this.pointer) this.dropHand(); });
    this.pad.addEventListener("pointerleave", (event) => { if (this.pointer === null) this.hand?.left?.(...this.fraction(event)); });
    this.pad.addEventListener("keydown", (event) => this.key(event));
    this.pad.addEventListener("focus", () => { if (this.hand && this.pad.matches(":focus-visible")) this.showCursor(); });
    this.pad.addEventListener("blur", () => { if (!this.keyDown) this.cursor.setAttribute("visibility", "hidden"); });
  }

  pressed(event) {
    if (!this.hand || this.pointer !== null || this.keyDown || event.button !== 0) return;
    event.preventDefault(); // No selecting, no dragging; focus stays where it was, so that people type while they draw.
    this.pointer = event.pointerId;
    this.pad.setPointerCapture(event.pointerId);
    this.pad.classList.add("down");
    this.cursor.setAttribute("visibility", "hidden");
    this.hand.down(...this.fraction(event), event.timeStamp);
  }

  moved(event) {
    if (this.pointer === null) this.hand?.hover?.(...this.fraction(event));
    if (event.pointerId !== this.pointer) return;
    const area = this.pad.getBoundingClientRect();
    const each = event.getCoalescedEvents?.() ?? [];
    for (const one of each.length ? each : [event]) this.hand.move(...this.fraction(one, area), one.timeStamp);
  }

  released(event) {
    if (event.pointerId !== this.pointer) return;
    this.pointer = null;
    this.pad.classList.remove("down");
    this.hand.up(...this.fraction(event), event.timeStamp);
  }

  key(event) {
    if (!this.hand || event.ctrlKey || event.metaKey || event.altKey) return;
    if (this.hand.key) { if (this.hand.key(event)) event.preventDefault(); return; }
    if (event.key in ARROWS) this.walk(event);
    else if (event.key === " " || event.key === "Enter") this.press(event);
    else if (event.key === "Escape" && this.keyDown) { this.dropHand(); this.showCursor(); event.stopPropagation(); announce("Given up"); }
    else return;
    event.preventDefault();
  }

  walk(event) {
    const [dx, dy] = ARROWS[event.key], step = event.shiftKey ? LEAP : STEP;
    const tidy = (value) => Math.round(Math.min(1, Math.max(0, value)) * 1e4) / 1e4;
    this.at = [tidy(this.at[0] + dx * step), tidy(this.at[1] + dy * step)];
    this.zoom?.reveal(this.at);
    this.showCursor();
    if (this.keyDown) this.hand.move(...this.at, event.timeStamp);
    announce(`${Math.round(this.at[0] * 100)} % across, ${Math.round(this.at[1] * 100)} % down`);
  }

  press(event) {
    if (event.repeat || this.pointer !== null) return;
    this.showCursor();
    if (this.keyDown) {
      this.keyDown = false;
      this.hand.up(...this.at, event.timeStamp);
    } else {
      this.hand.down(...this.at, event.timeStamp);
      if (this.hand.tap) this.hand.up(...this.at, event.timeStamp);
      else { this.keyDown = true; announce("Pen down"); }
    }
    this.pad.classList.toggle("down", this.keyDown);
  }

  /** Put the keyboard's pointer somewhere. */
  pointAt(x, y) {
    this.at = [x, y];
    this.showCursor();
  }

  showCursor() {
    const [x, y] = [this.at[0] * WIDTH, this.at[1] * this.height];
    const px = WIDTH / this.pad.getBoundingClientRect().width; // The cross has the same size on every screen.
    const [far, near, arm] = [16 * px, 5 * px, 11 * px];
    const cross = `M${x - far} ${y}h${arm}M${x + near} ${y}h${arm}M${x} ${y - far}v${arm}M${x} ${y + near}v${arm}M${x} ${y}h.01`;
    for (const line of this.cursor.children) line.setAttribute("d", cross);
    this.cursor.setAttribute("visibility", "visible");
  }
}

/** A line that grows as it is drawn. Long ones are cut, because a path is laid out anew whenever it changes. */
export class LiveLine {
  constructor(stage, group) {
    this.stage = stage;
    this.group = group;
    this.line = [];
    this.parts = [];
    this.next([]);
  }

  next(from) {
    this.part = from;
    this.paths = [s("path", { class: "line under" }), s("path", { class: "line" })];
    this.parts.push(...this.paths);
    this.group.append(...this.paths);
  }

  add(point) {
    this.line.push(point);
    this.part.push(point);
    const data = this.stage.path(this.part);
    for (const path of this.paths) path.setAttribute("d", data);
    if (this.part.length >= 200) this.next([point]);
  }

  remove() {
    for (const path of this.parts) path.remove();
  }
}

