/** Why? A map of where a word or an answer came from, found in three ways, and how far each can be trusted. */

import * as api from "./api.js";
import { button, h } from "./dom.js";
import { announce, busy, problem } from "./notices.js";
import { remember, remembered } from "./settings.js";

const METHODS = {
  gradient: ["Gradient", "What the model's choice hangs on, by its gradient"],
  attention: ["Attention", "How much the model lets each part count"],
  occlusion: ["Occlusion", "What happens to the choice without each part"],
};

/** In plain words, how well a map explains: from a rank correlation. */
export function trust({ method, faithfulness }) {
  if (method === "occlusion") return "Measured: what happens without each part. The other maps are judged by it.";
  if (faithfulness === null) return "All parts count the same here, so this map does not say where it came from.";
  const how = faithfulness >= 0.7 ? "explains the model's choice well" : faithfulness >= 0.3 ? "explains the model's choice loosely" : faithfulness > -0.3 ? "hardly explains the model's choice" : "contradicts the model's choice";
  return `This map ${how}: ${faithfulness.toFixed(2)}.`;
}

function more({ from_names: names, weights }) {
  if (!weights.flat().some((weight) => weight > 0)) return "No part of the photo speaks for it.";
  return names !== null && names >= 0.05 ? `Without the detector's names it would be ${Math.round(100 * names)} % less likely. The map shows only what the patches add.` : "";
}

export class Why {
  /** name: for focus, which must be its own. ask: (method, signal) → a reason. changed: called when it must be shown anew. */
  constructor({ name, ask, changed }) {
    Object.assign(this, { name, ask, changed });
    this.method = remembered("method", "gradient");
    if (!(this.method in METHODS)) this.method = "gradient";
    this.reasons = {}; // By method: each is asked for once.
    this.error = null;
  }

  /** The map to lay over the photo, if it is there. */
  get weights() { return this.reasons[this.method]?.weights ?? null; }

  async begin(method = this.method) {
    this.stop();
    this.method = method;
    this.error = null;
    this.asking = new AbortController();
    const { asking } = this;
    this.changed();
    if (this.reasons[method]) return;
    try {
      const reason = await this.ask(method, asking.signal);
      if (this.asking !== asking) return;
      this.reasons[method] = reason;
      announce(`Why ${reason.said}? ${trust(reason)} ${more(reason)}`);
    } catch (error) {
      if (error.name === "AbortError") return;
      if (!(error instanceof api.Refused)) throw error;
      if (this.asking !== asking) return;
      this.error = error;
    }
    this.changed();
  }

  stop() { this.asking?.abort(); }

  choose(method) {
    remember("method", method);
    this.begin(method);
  }

  shown() {
    const reason = this.reasons[this.method];
    const ways = Object.entries(METHODS).map(([method, [title, what]]) =>
      button(title, { kind: "way", title: what, "aria-pressed": String(method === this.method), "data-focus": `${method}-${this.name}`, onclick: () => this.choose(method) }));
    const body = this.error ? problem(this.error, () => this.begin()) : reason ? [
      h("p", { class: "trust" }, h("strong", { dir: "auto" }, `Why “${reason.said}”?`), " ", trust(reason)),
      more(reason) ? h("p", { class: "hint" }, more(reason)) : null,
    ] : busy("Looking for the reason …");
    return h("div", { class: "reason" }, h("div", { class: "ways", role: "group", "aria-label": "How to find out why" }, ways), body);
  }
}
