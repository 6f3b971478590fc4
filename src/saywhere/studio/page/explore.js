/** Explore: for people who do not see the photo. A finger, the mouse or the arrow keys move over it, and a voice says what is there. */

import * as api from "./api.js";
import { button, counted, h, keyHelp, relabel } from "./dom.js";
import { fileMenu } from "./exports.js";
import { Finger, NOTHING, WAY } from "./finger.js";
import { busy, problem } from "./notices.js";
import { shapes } from "./regions.js";
import { RATES, Voice } from "./voice.js";

const DWELL_MS = 700; // Who stays this long with a thing hears more of it.
const STEP = 0.04; // Of an arrow key, in fractions of the photo.
const ARROWS = { ArrowLeft: "left", ArrowRight: "right", ArrowUp: "above", ArrowDown: "below" };
const BESIDE = { left: "left of it", right: "right of it", above: "above it", below: "below it" };
const KEYS = [
  [["←", "↑", "→", "↓"], "move over the photo; with Shift on to the next thing that way"], [["N"], "next thing, in the order in which people look; P the one before"],
  [["D"], "details of what is here"], [["W"], "the whole photo"], [["Space"], "say it again"], [["V"], "voice on and off"], [["Esc"], "be quiet"],
];
const FILES = [["text", "Alt text", "short, and a long description"], ["page", "Page", "the photo with its description, one file"]];
const HOW = "arrow keys move and say what is there, with Shift to the next thing; N next, D details, W the whole photo";

export class Explore {
  constructor(app) {
    Object.assign(this, { app, name: "explore", title: "Explore", photo: null, described: null, finger: new Finger([]), known: new Map() });
    this.layer = app.stage.layer("explored");
    this.heard = h("p", { class: "heard", "aria-live": "assertive", "aria-atomic": "true" });
    this.voice = new Voice(this.heard, () => { this.blocked.hidden = false; });
    this.blocked = h("p", { class: "hint", hidden: true }, "The browser speaks only after a key or a click on the page.");
    this.result = h("div", {});
    this.dock = h("div", { class: "docked" }, this.bar());
    this.panel = h("div", { class: "paper explore" },
      h("h2", {}, "Explore by touch"),
      h("p", { class: "lead" }, "Move a finger, the mouse or the arrow keys over the photo and hear what is there. Stay, and hear more."),
      h("h3", {}, "Said last"), this.heard, this.blocked, this.result, keyHelp(KEYS));
    this.hand = {
      name: "Explore", how: HOW, key: (event) => this.arrow(event), hover: (x, y) => this.touch(x, y), left: (x, y) => { this.touch(x, y); this.stop(); },
      down: (x, y) => { this.finger.lift(); this.touch(x, y); }, move: (x, y) => this.touch(x, y), up: () => this.stop(), cancel: () => this.stop(),
    };
  }

  bar() {
    const tool = (text, icon, key, onclick) => button(text, { kind: "tool", icon, "aria-keyshortcuts": key, title: `${text} (${key})`, onclick });
    this.tools = [tool("Whole photo", "whole", "w", () => this.tell()), tool("Before", "back", "p", () => this.go(this.finger.next(-1))), tool("Next", "forth", "n", () => this.go(this.finger.next(1)))];
    this.speaker = button("", { kind: "icon", icon: "voice", label: "Voice", "aria-keyshortcuts": "v", onclick: () => this.setVoice(!this.voice.on) });
    this.rate = h("select", { "aria-label": "Speed of the voice", onchange: () => this.voice.setRate(Number(this.rate.value)) }, RATES.map((rate) => h("option", { value: rate, selected: rate === this.voice.rate }, `${rate}×`)));
    this.showVoice();
    return h("div", { class: "bar tools" }, this.tools, h("span", { class: "gap", "aria-hidden": "true" }), this.speaker, this.rate);
  }

  setVoice(on) {
    this.voice.set(on);
    this.showVoice();
    this.voice.say(on ? "Voice on." : "Voice off.");
  }

  showVoice() {
    const on = this.voice.on && this.voice.able;
    relabel(this.speaker, { icon: on ? "voice" : "voiceless", label: "Voice" });
    this.speaker.setAttribute("aria-pressed", String(on));
    this.speaker.disabled = this.rate.disabled = !this.voice.able;
  }

  enter(photo) {
    this.layer.removeAttribute("visibility");
    const able = this.app.status.can("caption");
    if (this.photo !== photo) this.forget();
    this.photo = photo;
    if (!able.has || photo === null) {
      this.enable(false);
      this.result.replaceChildren(...[able.has ? null : this.app.status.missing("caption")].filter(Boolean));
    } else if (!this.described && !this.asking) this.look();
    else if (this.described) this.enable(true);
  }

  leave() {
    this.stop();
    this.voice.hush();
    this.asking?.abort();
    this.asking = null;
    this.app.stage.setHand(null);
    this.layer.setAttribute("visibility", "hidden");
  }

  forget() {
    this.stop();
    this.voice.hush();
    this.asking?.abort();
    Object.assign(this, { described: null, asking: null, finger: new Finger([]) });
    this.heard.textContent = "";
    this.result.replaceChildren();
    this.layer.replaceChildren();
    this.enable(false);
  }

  enable(on) {
    for (const tool of this.tools) tool.disabled = !on;
    this.app.stage.setHand(on ? this.hand : null);
  }

  /** One question for all that a finger may meet; after that nothing is asked. */
  async look() {
    const { photo } = this, asking = (this.asking = new AbortController());
    this.enable(false);
    this.result.replaceChildren(busy("Looking at all that is there …"));
    try {
      const described = this.known.get(photo.id) ?? await api.describe(photo.id, asking.signal);
      this.known.set(photo.id, described);
      if (this.asking === asking) this.show(described);
    } catch (error) {
      if (error.name === "AbortError") return;
      if (!(error instanceof api.Refused)) throw error;
      if (this.asking === asking) this.result.replaceChildren(problem(error, () => this.look()));
    }
  }

  show(described) {
    Object.assign(this, { described, asking: null, finger: new Finger(described.things) });
    this.enable(true);
    const tellOne = (i) => { this.go(this.finger.goTo(i)); this.more(); };
    const things = described.things.map(({ name, about }, i) =>
      h("li", {}, h("button", { type: "button", class: "thing", onclick: () => tellOne(i) }, h("span", {}, name), h("small", {}, about.join(" ")))));
    this.result.replaceChildren(
      ...(things.length ? [h("h3", { id: "things" }, "In the order in which people look"), h("ol", { class: "things", "aria-labelledby": "things" }, things)] : []),
      h("h3", {}, "The whole photo"), h("p", { class: "told-all" }, described.text),
      h("div", { class: "row" }, fileMenu(FILES, (format) => api.describedFile(this.photo.id, format))),
      h("p", { class: "hint" }, "Only what the model is sure of is said. With a screen reader, switch the voice off: it reads the same words."));
    this.voice.say(`Ready: ${counted(things.length, "thing")}. Tab to the photo and use the arrow keys, or press W for the whole photo.`);
  }

  /** A place that a finger, the mouse or a key came to. */
  touch(x, y) {
    const says = this.finger.move(x, y);
    if (!says) return;
    this.voice.say(says);
    this.stay();
  }

  /** Somewhere that a key leads to; null if it leads nowhere. */
  go(to, nowhere = "There is nothing that way.") {
    if (!to) { this.voice.say(nowhere); return; }
    this.app.stage.pointAt(to.x, to.y);
    this.voice.say(to.says);
    this.stay();
  }

  /** Draw what is here; who stays hears more. */
  stay() {
    this.stop();
    const thing = this.described.things[this.finger.here];
    this.layer.replaceChildren(...(thing ? shapes(this.app.stage, { kind: "box", xyxy: thing.box }) : []));
    if (thing) this.dwelling = setTimeout(() => this.more(), DWELL_MS);
  }

  stop() { clearTimeout(this.dwelling); }

  more() {
    this.stop();
    const says = this.finger.details();
    if (says) this.voice.say(says, { after: true });
  }

  tell() {
    this.stop();
    this.voice.say(this.described.text);
  }

  /** Arrow keys and Space, while the photo has the focus. */
  arrow(event) {
    const direction = ARROWS[event.key], { stage } = this.app;
    if (event.key === " " || event.key === "Enter") this.again();
    else if (!direction) return false;
    else if (event.shiftKey) this.go(this.finger.onward(direction, ...stage.at), this.finger.here < 0 ? undefined : `Nothing ${BESIDE[direction]}.`);
    else {
      const [x, y] = stage.at.map((at, i) => Math.round((at + STEP * WAY[direction][i]) * 1e4) / 1e4);
      const inside = [x, y].map((at) => Math.min(1, Math.max(0, at)));
      stage.pointAt(...inside);
      this.touch(x, y);
    }
    return true;
  }

  again() {
    if (this.finger.here >= 0) this.go(this.finger.goTo(this.finger.here));
    else { this.finger.lift(); this.touch(...this.app.stage.at); }
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return false;
    const act = { v: () => this.setVoice(!this.voice.on), escape: () => { this.stop(); this.voice.hush(); } };
    if (this.described) Object.assign(act, { w: () => this.tell(), d: () => this.tellMore(), n: () => this.go(this.finger.next(1)), p: () => this.go(this.finger.next(-1)) });
    const chosen = act[event.key.toLowerCase()];
    chosen?.();
    return Boolean(chosen);
  }

  tellMore() {
    if (this.finger.here < 0) this.voice.say(NOTHING);
    else this.more();
  }
}
