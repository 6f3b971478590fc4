/** Find and Narrate: the model points at what is told. Both show a narrative of the model's own. */

import * as api from "./api.js";
import { button, h } from "./dom.js";
import { exportMenu } from "./exports.js";
import { announce, busy, problem, toast } from "./notices.js";
import { Player } from "./player.js";

class Pointing {
  constructor(app, { name, title, heading, lead, skill }) {
    Object.assign(this, { app, name, title, skill });
    this.player = new Player(app.stage);
    this.result = h("div", { class: "result" });
    this.dock = h("div", { class: "docked" }, this.player.bar);
    this.panel = h("div", { class: "paper" }, h("h2", {}, heading), h("p", { class: "lead" }, lead));
    this.photo = null;
  }

  enter(photo) {
    if (this.photo !== photo) this.reset();
    this.photo = photo;
    this.player.layer.removeAttribute("visibility");
    const able = this.app.status.can(this.skill);
    this.enable(photo !== null && able.has);
    this.lack?.remove();
    this.lack = able.has ? null : this.app.status.missing(this.skill);
    if (this.lack) this.panel.append(this.lack);
  }

  leave() {
    this.player.pause();
    this.player.layer.setAttribute("visibility", "hidden");
  }

  reset() {
    this.asking?.abort();
    this.player.clear();
    this.result.replaceChildren();
  }

  /** Ask for a narrative and show it; a newer question stops an older one. */
  async ask(waiting, question) {
    this.reset();
    this.asking = new AbortController();
    const { photo, asking } = this;
    this.result.replaceChildren(busy(waiting));
    try {
      const narrative = await question(photo.id, asking.signal);
      if (this.asking === asking && this.photo === photo) this.show(narrative);
    } catch (error) {
      if (error.name === "AbortError") return;
      if (!(error instanceof api.Refused)) throw error;
      if (this.asking === asking) this.result.replaceChildren(problem(error, () => this.ask(waiting, question)));
    }
  }

  show(narrative) {
    this.player.load(narrative, { play: true });
    const placed = narrative.words.filter((_, i) => this.player.boxes[i]).length;
    const said = placed ? `${placed} of ${narrative.words.length} words have a place. Point at a word to see it.` : "None of this was found in the photo.";
    announce(said);
    this.result.replaceChildren(this.player.text, h("p", { class: "hint" }, said), this.keeper(narrative));
  }

  keeper(narrative) {
    const row = h("div", { class: "row" });
    row.append(button("Keep", { kind: "quiet", onclick: async (event) => {
      event.currentTarget.disabled = true;
      try {
        const { id, ...rest } = narrative;
        const saved = await api.sendNarrative(rest);
        row.replaceChildren(h("span", { class: "hint" }, "Kept."), exportMenu(() => saved.id));
        toast("Kept. It is among this photo's narratives.", { action: ["Replay", () => this.app.go("replay")] });
      } catch (error) {
        if (!(error instanceof api.Refused)) throw error;
        row.append(problem(error));
      }
    } }));
    return row;
  }

  key(event) {
    if (event.key === "k" && this.player.narrative) { this.player.toggle(); return true; }
    return false;
  }
}

export class Find extends Pointing {
  constructor(app) {
    super(app, { name: "find", title: "Find", skill: "ground", heading: "Show me where", lead: "Write a sentence. Every word lights up where it is." });
    this.text = h("textarea", { id: "sentence", rows: 3, maxlength: 4000, placeholder: "a cup on the table beside a spoon", onkeydown: (event) => this.enterKey(event) });
    this.send = button("Show me", { kind: "primary", type: "submit" });
    this.form = h("form", { class: "fields", onsubmit: (event) => { event.preventDefault(); this.find(); } }, h("label", { for: "sentence" }, "Sentence"), this.text, h("div", { class: "row" }, this.send));
    this.panel.append(this.form, this.result);
  }

  enable(on) { this.send.disabled = !on; }

  enterKey(event) {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); if (!this.send.disabled) this.find(); }
  }

  find() {
    const text = this.text.value.trim();
    if (!text) { this.text.focus(); announce("Write a sentence first"); return; }
    this.ask("Looking for every word …", (id, signal) => api.ground(id, text, signal));
  }
}

export class Narrate extends Pointing {
  constructor(app) {
    super(app, { name: "narrate", title: "Narrate", skill: "narrate", heading: "Let the model tell it", lead: "It writes about the photo and points while it does." });
    this.count = h("output", { for: "most" }, "4");
    this.most = h("input", { id: "most", type: "range", min: 0, max: 10, step: 1, value: 4, oninput: () => this.countSet() });
    this.send = button("Narrate", { kind: "primary", onclick: () => this.ask("Writing and pointing …", (id, signal) => api.narrate(id, Number(this.most.value), signal)) });
    this.panel.append(h("div", { class: "fields" }, h("label", { for: "most" }, "Details at most ", this.count), this.most, h("div", { class: "row" }, this.send)), this.result);
    this.countSet();
  }

  countSet() {
    this.count.textContent = this.most.value;
    this.most.style.setProperty("--done", `${10 * Number(this.most.value)}%`);
  }

  enable(on) { this.send.disabled = this.most.disabled = !on; }
}
