/** One turn of a conversation: what was asked and pointed at, and what the model says and points out. */

import { button, counted, h } from "./dom.js";
import { busy, problem } from "./notices.js";
import { placeOf } from "./regions.js";
import { Why } from "./why.js";
import * as api from "./api.js";

const percent = (share) => `${Math.round(100 * share)} %`;

function bar(share) {
  const drawn = h("i", { "aria-hidden": "true" });
  drawn.style.setProperty("--share", Math.max(0, Math.min(1, share)).toFixed(3));
  return drawn;
}

export class Turn {
  /** kind: "chat", "answer" or "segment". region: what is pointed at, or null. changed: called when it must be shown anew. */
  constructor({ photo, kind, text, region, changed }) {
    Object.assign(this, { photo, kind, text, region, changed });
    this.words = h("p", { class: "caption", dir: "auto" });
    this.why = null;
    this.begin();
  }

  /** Before the first try, and before another. */
  begin() {
    this.asking?.abort();
    this.asking = new AbortController();
    this.reply = this.error = null;
    this.heard = false; // Whether a screen reader was told.
    this.words.textContent = "";
  }

  get waits() { return !this.reply && !this.error; }

  /** What the model points out. */
  get told() { return this.kind === "segment" && this.reply ? [this.reply.mask] : this.reply?.regions ?? []; }

  /** Everything that this turn points at, the person first. */
  get regions() { return [...(this.region ? [this.region] : []), ...this.told]; }

  /** Ask. before: earlier turns of the conversation. */
  async ask(before) {
    const { photo, text, region, asking } = this;
    const hear = (piece) => { if (this.asking === asking) { this.words.append(piece); this.changed(this); } };
    const asks = {
      chat: () => api.chat(photo.id, [...before, this].map((turn) => ({ text: turn.text, region: turn.region })), hear, asking.signal),
      answer: () => api.answer(photo.id, { question: text, region }, asking.signal),
      segment: () => api.segment(photo.id, region, asking.signal),
    };
    try {
      const reply = await asks[this.kind]();
      if (this.asking !== asking) return;
      this.reply = reply;
      this.words.textContent = this.said;
      if (this.kind === "answer") this.explain();
    } catch (error) {
      if (error.name === "AbortError") return;
      if (!(error instanceof api.Refused)) throw error;
      if (this.asking !== asking) return;
      this.error = error;
    }
    this.changed(this);
  }

  explain() {
    const { photo, text: question, region, reply } = this;
    this.why = new Why({
      name: "answer",
      ask: (method, signal) => api.whyAnswer(photo.id, { question, region, answer: reply.reason ? null : reply.answer, method }, signal),
      changed: () => this.changed(this),
    });
  }

  /** What the model says, in words. */
  get said() {
    if (this.kind === "answer") return this.reply.answer;
    return this.kind === "segment" ? "This is what I would cut out." : this.reply.text || "The model has no words for this.";
  }

  /** For those who do not see it. */
  get announced() {
    if (this.error) return this.error.message;
    const { reason, probability } = this.reply;
    const sure = this.kind !== "answer" ? "" : reason ? `: ${reason}` : `, ${percent(probability)}`;
    const places = this.told.map(placeOf);
    return `${this.said}${sure}${places.length ? ` Pointed out: ${places.join("; ")}` : ""}`;
  }

  stop() {
    this.asking.abort();
    this.why?.stop();
  }

  /** number: from 1. pick: called with a region that is meant, or null. again: asks once more. toggleWhy: or null. */
  shown(number, { pick, again, toggleWhy, asked }) {
    const chip = (region, whose, i) => button(placeOf(region), {
      kind: `chip ${whose}`, icon: { polygon: "lasso", boxes: "box", mask: "cut" }[region.kind] ?? region.kind, "data-focus": `chip-${number}-${i}`,
      onpointerenter: () => pick(region), onpointerleave: () => pick(null), onfocus: () => pick(region), onblur: () => pick(null),
    });
    return h("li", { class: "turn", "data-kind": this.kind },
      h("div", { class: "asked" }, h("p", { dir: "auto" }, h("span", { class: "unseen" }, `Turn ${number}, you: `), this.text), this.region ? chip(this.region, "mine", 0) : null),
      h("div", { class: this.kind === "answer" ? "card answer" : "card" }, h("span", { class: "unseen" }, "The model: "),
        this.error ? problem(this.error, again) : this.waits && !this.words.textContent ? busy(this.kind === "segment" ? "Cutting out …" : "Thinking …") : this.words,
        this.told.length ? h("div", { class: "chips" }, this.told.map((region, i) => chip(region, "told", i + 1))) : null,
        this.notes(), this.kind === "answer" && this.reply ? this.answer(toggleWhy, asked) : null));
  }

  /** What went missing on the way, if something did. */
  notes() {
    const { forgotten = 0, lost = [] } = this.kind === "chat" ? this.reply ?? {} : {};
    return [
      forgotten ? h("p", { class: "hint" }, `There is room for so much only: the first ${counted(forgotten, "message")} were left out.`) : null,
      ...lost.map((what) => h("p", { class: "hint" }, `Lost of the answer: ${what}`)),
    ];
  }

  answer(toggleWhy, asked) {
    const { probability, unknown, unread, reason } = this.reply;
    return [
      reason ? h("p", { class: "hint" }, `${reason[0].toUpperCase()}${reason.slice(1)}.`) : h("p", { class: "sureness" }, bar(probability), `${percent(probability)} sure`),
      unknown.length ? h("p", { class: "hint" }, `Not known to this model: ${unknown.join(", ")}`) : null,
      unread.length ? h("p", { class: "hint" }, `Too long; not read: ${unread.join(" ")}`) : null,
      toggleWhy ? h("div", { class: "about" }, button("Why?", { kind: "quiet small", icon: "heat", "aria-pressed": String(asked), "data-focus": "why", onclick: toggleWhy }), this.more()) : null,
      toggleWhy && asked ? this.why.shown() : null,
    ];
  }

  /** The other answers, and what the model learnt to answer. */
  more() {
    const { others, kinds, reason } = this.reply;
    if (!others.length && !kinds.length) return null;
    return h("details", { class: "why", open: Boolean(this.opened), ontoggle: (event) => { this.opened = event.currentTarget.open; } },
      h("summary", { "data-focus": "more" }, reason ? "Guesses, not to be relied on" : "Other answers"),
      h("ol", { class: "near" }, others.map((one) => h("li", {}, h("span", { dir: "auto" }, one.text), h("small", {}, bar(one.probability), percent(one.probability))))),
      kinds.length ? h("p", { class: "hint" }, `It learnt to answer: ${kinds.join(" ")}`) : null);
  }
}
