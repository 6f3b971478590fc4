/**
 * Closer to the photo, by wheel, pinch, keys and buttons. The photo's box itself grows and moves, so that fractions of it
 * stay what they are and lines stay as thin as they were.
 */

import { button, h, isTyping } from "./dom.js";
import { announce } from "./notices.js";

const MOST = 8, STEP = 1.5, WHEEL = 0.0015, PAN_PX = 60;
const PANS = { ArrowLeft: [1, 0], ArrowRight: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
const distance = ([a, b]) => Math.hypot(a.x - b.x, a.y - b.y);
const middle = ([a, b]) => [(a.x + b.x) / 2, (a.y + b.y) / 2];

export class Zoom {
  constructor(stage) {
    this.stage = stage;
    this.fingers = new Map(); // Pointer id → {x, y}, of touches.
    this.grip = null; // Where a hand that pans the photo was last.
    // Keys do the same, and Tab goes from the photo to what one does with it.
    const aside = { tabindex: "-1" };
    this.share = h("button", { type: "button", class: "share", ...aside, onclick: () => this.reset() });
    this.out = button("−", { kind: "icon", label: "Zoom out", "aria-keyshortcuts": "-", ...aside, onclick: () => this.by(1 / STEP) });
    this.into = button("+", { kind: "icon", label: "Zoom in", "aria-keyshortcuts": "+", ...aside, onclick: () => this.by(STEP) });
    this.bar = h("div", { class: "zoomer", role: "group", "aria-label": "Zoom" }, this.out, this.share, this.into);
    stage.element.append(this.bar);
    this.reset();
    this.listen();
  }

  reset() {
    this.scale = 1;
    this.offset = [0, 0];
    this.stage.element.style.height = "";
    this.apply();
  }

  /** Zoom by a factor; the place under (x, y) of the window stays where it is. */
  by(factor, point = this.centre()) {
    const { pad, element } = this.stage;
    const scale = Math.min(MOST, Math.max(1, this.scale * factor));
    if (scale === this.scale || pad.hidden) return;
    if (this.scale === 1) element.style.height = `${element.getBoundingClientRect().height}px`; // It must not grow with the photo.
    const [clientX, clientY] = point;
    const [fx, fy] = this.stage.fraction({ clientX, clientY });
    this.scale = scale;
    if (scale === 1) { this.reset(); } else {
      this.apply();
      const area = pad.getBoundingClientRect();
      this.pan(clientX - (area.left + fx * area.width), clientY - (area.top + fy * area.height));
    }
    announce(`${Math.round(100 * this.scale)} %`);
  }

  /** Move the photo by so many pixels, as far as there is something to see. */
  pan(dx, dy) {
    const area = this.stage.pad.getBoundingClientRect(), room = this.stage.element.getBoundingClientRect();
    const held = (by, start, size, from, length) => {
      const centred = from + (length - size) / 2 - start;
      if (size <= length) return centred;
      return Math.min(from - start, Math.max(from + length - size - start, by));
    };
    this.offset[0] += held(dx, area.left, area.width, room.left, room.width);
    this.offset[1] += held(dy, area.top, area.height, room.top, room.height);
    this.apply();
  }

  apply() {
    const { pad, element } = this.stage;
    pad.style.setProperty("--zoom", String(this.scale));
    pad.style.transform = this.scale === 1 ? "" : `translate(${this.offset[0]}px, ${this.offset[1]}px)`;
    element.classList.toggle("zoomed", this.scale > 1);
    this.share.textContent = `${Math.round(100 * this.scale)} %`;
    this.share.setAttribute("aria-label", `${Math.round(100 * this.scale)} %, show the whole photo`);
    this.share.disabled = this.out.disabled = this.scale === 1;
    this.into.disabled = this.scale === MOST;
  }

  centre() {
    const room = this.stage.element.getBoundingClientRect();
    return [room.left + room.width / 2, room.top + room.height / 2];
  }

  /** Bring a place of the photo, in fractions, into sight. */
  reveal([x, y]) {
    if (this.scale === 1) return;
    const area = this.stage.pad.getBoundingClientRect(), room = this.stage.element.getBoundingClientRect();
    const [px, py] = [area.left + x * area.width, area.top + y * area.height];
    const short = (at, from, length) => Math.max(0, from + PAN_PX - at) - Math.max(0, at - (from + length - PAN_PX));
    const [dx, dy] = [short(px, room.left, room.width), short(py, room.top, room.height)];
    if (dx || dy) this.pan(dx, dy);
  }

  listen() {
    const { element } = this.stage;
    element.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    // Before the hand that draws: a second finger takes the stroke away from it.
    element.addEventListener("pointerdown", (event) => this.touched(event), true);
    element.addEventListener("pointermove", (event) => this.moved(event), true);
    for (const name of ["pointerup", "pointercancel"]) element.addEventListener(name, (event) => this.lifted(event), true);
    addEventListener("keydown", (event) => this.key(event));
    // A phone's bars come and go, which changes the height alone.
    let width = innerWidth;
    addEventListener("resize", () => { if (innerWidth !== width) this.reset(); width = innerWidth; });
  }

  wheel(event) {
    const scrolls = document.documentElement.scrollHeight > innerHeight + 1;
    if (this.stage.pad.hidden || (scrolls && !event.ctrlKey && this.scale === 1)) return;
    event.preventDefault();
    const px = event.deltaMode === 1 ? 30 : 1;
    if (event.shiftKey || (event.deltaX && Math.abs(event.deltaX) > Math.abs(event.deltaY))) { this.pan(-px * (event.deltaX || event.deltaY), 0); return; }
    this.by(Math.exp(-px * event.deltaY * (event.ctrlKey ? 6 : 1) * WHEEL), [event.clientX, event.clientY]);
  }

  touched(event) {
    if (this.bar.contains(event.target)) return;
    if (event.pointerType === "touch") {
      this.fingers.set(event.pointerId, { x: event.clientX, y: event.clientY });
      if (this.fingers.size === 2) { this.stage.retract(); event.stopPropagation(); return; }
      if (this.fingers.size > 2) { event.stopPropagation(); return; }
    }
    const free = event.button === 1 || (this.scale > 1 && event.button === 0 && !this.stage.hand);
    if (!free) return;
    event.preventDefault();
    event.stopPropagation();
    this.grip = { id: event.pointerId, x: event.clientX, y: event.clientY };
    this.stage.pad.setPointerCapture(event.pointerId);
  }

  moved(event) {
    const finger = this.fingers.get(event.pointerId);
    if (finger && this.fingers.size === 2) {
      const before = [...this.fingers.values()].map((one) => ({ ...one }));
      Object.assign(finger, { x: event.clientX, y: event.clientY });
      const now = [...this.fingers.values()], from = middle(before), to = middle(now);
      this.by(distance(now) / Math.max(1, distance(before)), from);
      if (this.scale > 1) this.pan(to[0] - from[0], to[1] - from[1]);
      event.stopPropagation();
      return;
    }
    if (finger) Object.assign(finger, { x: event.clientX, y: event.clientY });
    if (this.grip?.id !== event.pointerId) return;
    this.pan(event.clientX - this.grip.x, event.clientY - this.grip.y);
    Object.assign(this.grip, { x: event.clientX, y: event.clientY });
  }

  lifted(event) {
    this.fingers.delete(event.pointerId);
    if (this.grip?.id === event.pointerId) this.grip = null;
  }

  key(event) {
    if (event.defaultPrevented || isTyping(event) || this.stage.pad.hidden || event.altKey || event.metaKey) return;
    if (event.ctrlKey) {
      if (!(event.key in PANS) || this.scale === 1) return;
      this.pan(...PANS[event.key].map((by) => by * PAN_PX));
    } else if (event.key === "+" || event.key === "=") this.by(STEP, this.place());
    else if (event.key === "-") this.by(1 / STEP, this.place());
    else if (event.key === "0" && this.scale > 1) this.reset();
    else return;
    event.preventDefault();
  }

  /** Where keys zoom: at the keyboard's pointer if it is in sight, else in the middle. */
  place() {
    const { stage } = this;
    if (stage.cursor.getAttribute("visibility") !== "visible") return this.centre();
    const area = stage.pad.getBoundingClientRect();
    return [area.left + stage.at[0] * area.width, area.top + stage.at[1] * area.height];
  }
}
