/** Ask: a question about the photo, or about what one points at, its answer, and why. */

import * as api from "./api.js";
import { button, h, keyHelp, s } from "./dom.js";
import { announce, busy, problem } from "./notices.js";
import { drawingHand, placeOf, shapes, toolButtons, TOOLS } from "./regions.js";
import { Why } from "./why.js";

export class Ask {
  constructor(app) {
    this.app = app;
    this.name = "ask";
    this.title = "Ask";
    this.layer = app.stage.layer("regions");
    this.sketch = app.stage.layer("sketch");
    this.region = null;
    this.given = null;
    this.tools = toolButtons((id) => this.choose(id));
    this.dock = h("div", { class: "docked" }, h("div", { class: "bar tools", role: "toolbar", "aria-label": "Pointing tools" }, this.tools));
    this.place = h("p", { class: "hint pointed" });
    this.text = h("input", { id: "question", maxlength: 500, autocomplete: "off", placeholder: "is there a cup?" });
    this.send = button("Ask", { kind: "primary", type: "submit" });
    this.form = h("form", { class: "fields", onsubmit: (event) => { event.preventDefault(); this.ask(); } },
      h("label", { for: "question" }, "Question"), this.text, this.place, h("div", { class: "row" }, this.send));
    this.result = h("div", { class: "result" });
    this.panel = h("div", { class: "paper" }, h("h2", {}, "Ask about the photo"),
      h("p", { class: "lead" }, "Point at something if you like, then ask."), this.form, this.result,
      keyHelp([[["T", "B", "P", "L"], "choose a tool"], [["Tab"], "to the photo, then"], [["←", "↑", "→", "↓"], "move, with Shift farther"], [["Space"], "begin and end"], [["Esc"], "point at nothing"]]));
  }

  enter(photo) {
    if (this.photo !== photo) { this.region = null; this.reset(); }
    this.photo = photo;
    this.layer.removeAttribute("visibility");
    const able = this.app.status.can("answer");
    const ready = photo !== null && able.has;
    for (const one of [...this.tools, this.send]) one.disabled = !ready;
    this.lack?.remove();
    this.lack = able.has ? null : this.app.status.missing("answer");
    if (this.lack) this.form.after(this.lack);
    if (ready) this.choose(this.tool ?? "point"); else this.app.stage.setHand(null);
    this.render();
  }

  leave() {
    this.app.stage.setHand(null);
    this.app.stage.showHeat(null);
    this.layer.setAttribute("visibility", "hidden");
  }

  reset() {
    this.asking?.abort();
    this.why?.stop();
    this.given = this.why = this.error = null;
    this.waits = false;
  }

  choose(id) {
    this.tool = id;
    for (const tool of this.tools) tool.setAttribute("aria-pressed", String(tool.dataset.tool === id));
    this.app.stage.setHand(drawingHand(this.app.stage, this.sketch, id, (region) => this.point(region)));
  }

  /** Point somewhere, or, with null, nowhere. A question that stands is asked again. */
  point(region) {
    this.region = region;
    announce(region ? `Pointed at: ${placeOf(region)}` : "Pointed at nothing");
    if (this.given) this.ask(); else this.render();
  }

  async ask() {
    const question = this.text.value.trim();
    if (!question) { this.text.focus(); announce("Write a question first"); return; }
    this.reset();
    this.asking = new AbortController();
    this.waits = true;
    const { photo, asking, region } = this;
    this.render();
    try {
      const given = await api.answer(photo.id, { question, region }, asking.signal);
      if (this.asking !== asking || this.photo !== photo) return;
      this.given = given;
      this.why = new Why({
        name: "answer",
        ask: (method, signal) => api.whyAnswer(photo.id, { question, region, answer: given.reason ? null : given.answer, method }, signal),
        changed: () => { if (this.given === given) this.render(); },
      });
      announce(given.reason ? `${given.answer}: ${given.reason}` : `${given.answer}, ${percent(given.probability)}`);
    } catch (error) {
      if (error.name === "AbortError") return;
      if (!(error instanceof api.Refused)) throw error;
      if (this.asking !== asking) return;
      this.error = error;
    }
    this.waits = false;
    this.render();
  }

  toggleWhy() {
    this.asked = !this.asked;
    if (this.asked) this.why.begin(); else this.render();
  }

  render() {
    if (this.app.mode !== this) return; // What was asked for came when another mode had the stage.
    const focused = document.activeElement?.dataset?.focus;
    this.layer.replaceChildren(...(this.region ? [s("g", { class: "region chosen" }, shapes(this.app.stage, this.region))] : []));
    this.place.replaceChildren(...(this.region
      ? [`Pointed at: ${placeOf(this.region)} `, button("Point at nothing", { kind: "link", "data-focus": "nothing", onclick: () => this.point(null) })]
      : ["Pointed at: nothing. The whole photo is meant."]));
    this.result.replaceChildren(...[this.error ? problem(this.error, () => this.ask()) : this.waits ? busy("Thinking …") : this.given ? this.card() : null].filter(Boolean));
    if (focused) this.panel.querySelector(`[data-focus="${focused}"]`)?.focus();
    const why = this.given && this.asked ? this.why : null;
    if (why && !why.asking) why.begin();
    this.app.stage.showHeat(why?.weights ?? null);
  }

  card() {
    const { answer, probability, others, unknown, unread, kinds, reason } = this.given;
    return h("div", { class: "card answer" },
      h("p", { class: "caption", dir: "auto" }, answer),
      reason ? h("p", { class: "hint" }, `${reason[0].toUpperCase()}${reason.slice(1)}.`) : h("p", { class: "sureness" }, bar(probability), `${percent(probability)} sure`),
      others.length ? h("h3", {}, reason ? "Guesses, not to be relied on" : "Other answers") : null,
      h("ol", { class: "near" }, others.map((one) => h("li", {}, h("span", { dir: "auto" }, one.text), h("small", {}, bar(one.probability), percent(one.probability))))),
      unknown.length ? h("p", { class: "hint" }, `Not known to this model: ${unknown.join(", ")}`) : null,
      unread.length ? h("p", { class: "hint" }, `Too long; not read: ${unread.join(" ")}`) : null,
      kinds.length ? h("p", { class: "hint" }, `It learnt to answer: ${kinds.join(" ")}`) : null,
      h("div", { class: "about" }, button("Why?", { kind: "quiet small", icon: "heat", "aria-pressed": String(Boolean(this.asked)), "data-focus": "why", onclick: () => this.toggleWhy() })),
      this.asked ? this.why.shown() : null);
  }

  key(event) {
    if (event.key === "Escape" && this.region) { this.point(null); return true; }
    if (event.ctrlKey || event.metaKey) return false;
    const id = Object.keys(TOOLS).find((one) => TOOLS[one].key === event.key);
    if (!id || this.tools[0].disabled) return false;
    this.choose(id);
    return true;
  }
}

const percent = (share) => `${Math.round(100 * share)} %`;

function bar(share) {
  const drawn = h("i", { "aria-hidden": "true" });
  drawn.style.setProperty("--share", Math.max(0, Math.min(1, share)).toFixed(3));
  return drawn;
}
