/** Describe where I point: every region drawn becomes a card with its caption and where that came from. */

import * as api from "./api.js";
import { button, h, keyHelp, s } from "./dom.js";
import { announce, busy, problem, toast } from "./notices.js";
import { boundsOf, drawingHand, placeOf, shapes, toolButtons, TOOLS } from "./regions.js";
import { remember, remembered } from "./settings.js";
import { Why } from "./why.js";

const LEVELS = { object: "What is there", scene: "Where it is", action: "What is done", rationale: "Why it is done" };

export class Describe {
  constructor(app) {
    this.app = app;
    this.name = "describe";
    this.title = "Describe";
    this.layer = app.stage.layer("regions");
    this.sketch = app.stage.layer("sketch");
    this.byPhoto = new Map(); // Photo id → {cards, past, future}.
    this.tool = remembered("tool", "trace");
    if (!(this.tool in TOOLS)) this.tool = "trace";
    this.buildDock();
    this.cards = h("ol", { class: "cards", "aria-label": "Described regions" });
    this.state = h("div", {});
    this.level = "object";
    this.levels = h("div", { class: "levels", role: "group", "aria-label": "Level of captions" });
    this.panel = h("div", { class: "paper" },
      h("h2", {}, "Describe where you point"),
      h("p", { class: "lead" }, "Draw over something. The caption follows."),
      this.levels, this.state, this.cards,
      keyHelp([[["T", "B", "P", "L"], "choose a tool"], [["W"], "the whole photo"], [["Tab"], "to the photo, then"], [["←", "↑", "→", "↓"], "move, with Shift farther"], [["Space"], "begin and end"], [["Ctrl", "Z"], "undo"], [["←", "→"], "on a caption, its words; Enter asks why"]]));
  }

  buildDock() {
    this.tools = toolButtons((id) => this.choose(id));
    this.whole = button("Whole", { kind: "tool", icon: "whole", title: "Describe the whole photo (w)", "aria-keyshortcuts": "w", onclick: () => this.add({ kind: "whole" }) });
    this.undoButton = button("", { kind: "icon", icon: "undo", label: "Undo (Ctrl+Z)", onclick: () => this.undo() });
    this.redoButton = button("", { kind: "icon", icon: "redo", label: "Redo (Ctrl+Shift+Z)", onclick: () => this.redo() });
    this.dock = h("div", { class: "docked" }, h("div", { class: "bar tools", role: "toolbar", "aria-label": "Drawing tools" },
      this.tools, this.whole, h("span", { class: "gap" }), this.undoButton, this.redoButton));
  }

  get work() {
    const id = this.app.photo.id;
    if (!this.byPhoto.has(id)) this.byPhoto.set(id, { cards: [], past: [], future: [], count: 0 });
    return this.byPhoto.get(id);
  }

  enter(photo) {
    this.photo = photo;
    this.layer.replaceChildren();
    this.app.stage.badges.replaceChildren();
    this.cards.replaceChildren();
    this.state.replaceChildren();
    this.layer.removeAttribute("visibility");
    const able = this.app.status.can("caption");
    const ready = photo !== null && able.has;
    for (const tool of [...this.tools, this.whole]) tool.disabled = !ready;
    this.offerLevels(able.has ? this.app.status.model.levels : []);
    if (able.has) this.choose(this.tool, ready); else this.state.replaceChildren(this.app.status.missing("caption"));
    if (photo === null) { this.undoButton.disabled = this.redoButton.disabled = true; return; }
    this.render();
    if (ready) { this.look(photo); this.renew(); }
  }

  leave() {
    this.app.stage.setHand(null);
    this.app.stage.showHeat(null);
    this.app.stage.badges.replaceChildren();
    this.layer.setAttribute("visibility", "hidden");
    this.looking?.abort();
  }

  /** The heavy part, before the first region is drawn. */
  async look(photo) {
    this.looking?.abort();
    this.looking = new AbortController();
    const slow = setTimeout(() => this.state.replaceChildren(busy("Looking at the photo …")), 150);
    try {
      await api.look(photo.id, this.looking.signal);
      if (this.photo === photo) this.state.replaceChildren();
    } catch (error) {
      if (error.name === "AbortError") return;
      if (!(error instanceof api.Refused)) throw error;
      if (this.photo === photo) this.state.replaceChildren(problem(error, () => this.look(photo)));
    } finally {
      clearTimeout(slow);
    }
  }

  choose(id, draw = this.app.photo !== null) {
    this.tool = id;
    remember("tool", id);
    for (const tool of this.tools) tool.setAttribute("aria-pressed", String(tool.dataset.tool === id));
    if (draw) this.app.stage.setHand(drawingHand(this.app.stage, this.sketch, id, (region) => this.add(region)));
  }

  /** Captions of what is there, or above it: only where the model has more than one level. */
  offerLevels(levels) {
    if (!levels.includes(this.level)) this.level = "object";
    this.levels.hidden = levels.length < 2;
    this.levels.replaceChildren(...levels.map((level) =>
      button(level, { kind: "quiet small", title: LEVELS[level] ?? "", "aria-pressed": String(level === this.level), onclick: () => this.setLevel(level, levels) })));
  }

  setLevel(level, levels) {
    this.level = level;
    this.offerLevels(levels);
    this.levels.querySelector("[aria-pressed=true]").focus();
    this.renew();
  }

  /** Captions of another level than the one chosen are asked for anew, all in one batch. */
  async renew() {
    const { level, photo } = this;
    const cards = this.work.cards.filter((card) => card.level !== level);
    if (!cards.length || !this.app.status.can("caption").has) return;
    for (const card of cards) {
      card.why?.stop();
      Object.assign(card, { level, caption: null, error: null, why: null });
    }
    this.render();
    const answer = await this.tried(() => api.captions(photo.id, cards.map(({ region }) => region), level));
    cards.forEach((card, i) => { if (card.level === level) Object.assign(card, answer.error ? answer : { caption: answer.said[i] }); });
    if (!answer.error) announce(`Captions: ${level}`);
    if (this.photo === photo) this.render();
  }

  /** {said}, or {error} if it was refused. */
  async tried(ask) {
    try {
      return { said: await ask() };
    } catch (error) {
      if (!(error instanceof api.Refused)) throw error;
      return { error };
    }
  }

  /** A new region: its card at once, its caption as soon as it is there. */
  add(region) {
    const { work } = this;
    work.count += 1;
    const card = { number: work.count, region, level: this.level, caption: null, error: null, photo: this.app.photo };
    this.change([...work.cards, card]);
    this.selected = card;
    this.render();
    this.ask(card);
  }

  async ask(card) {
    const { level } = card;
    card.error = null;
    const answer = await this.tried(() => api.captions(card.photo.id, [card.region], level));
    if (card.level !== level) return; // Another level was chosen meanwhile, and asked for.
    if (answer.error) card.error = answer.error;
    else {
      [card.caption] = answer.said;
      announce(`${card.number}: ${card.caption.text}${card.caption.sure ? "" : ", unsure"}`);
    }
    if (this.photo === card.photo) this.render();
  }

  change(cards) {
    const { work } = this;
    work.past.push({ cards: work.cards, selected: this.selected });
    work.future = [];
    work.cards = cards;
  }

  undo() { this.step("past", "future", "Undone"); }

  redo() { this.step("future", "past", "Done again"); }

  step(from, to, said) {
    const { work } = this;
    if (!work[from].length) return;
    work[to].push({ cards: work.cards, selected: this.selected });
    ({ cards: work.cards, selected: this.selected } = work[from].pop());
    if (!work.cards.includes(this.selected)) this.selected = null;
    this.render();
    announce(said);
    this.renew();
  }

  remove(card) {
    this.change(this.work.cards.filter((one) => one !== card));
    if (this.selected === card) this.selected = null;
    this.render();
    toast(`Region ${card.number} removed.`, { action: ["Undo", () => this.undo()] });
  }

  select(card) {
    this.selected = this.selected === card ? null : card;
    this.render();
  }

  render() {
    if (this.app.mode !== this) return; // What was asked for came when another mode had the stage.
    const { work } = this;
    this.undoButton.disabled = !work.past.length;
    this.redoButton.disabled = !work.future.length;
    const focused = document.activeElement?.dataset?.focus;
    this.cards.replaceChildren(...[...work.cards].reverse().map((card) => this.cardItem(card)));
    if (focused) this.cards.querySelector(`[data-focus="${focused}"]`)?.focus();
    this.layer.replaceChildren(...work.cards.map((card) => this.drawn(card)));
    this.app.stage.badges.replaceChildren(...work.cards.map((card) => this.numbered(card)));
    const heat = this.selected?.why?.weights ?? (this.selected?.heat ? this.selected.caption?.weights : null);
    this.app.stage.showHeat(heat ?? null);
  }

  drawn(card) {
    return s("g", { class: card === this.selected ? "region chosen" : "region" }, shapes(this.app.stage, card.region));
  }

  numbered(card) {
    const [x1, y1] = boundsOf(card.region);
    return this.app.stage.badge(String(card.number), x1, card.region.kind === "point" ? y1 - 0.045 : y1, card === this.selected);
  }

  cardItem(card) {
    const name = `${card.number}, ${placeOf(card.region)}`;
    const chosen = card === this.selected;
    const body = card.error ? problem(card.error, () => this.ask(card)) : card.caption ? this.captionText(card) : busy("Describing …");
    return h("li", { class: chosen ? "card chosen" : "card" },
      h("div", { class: "head" },
        button(String(card.number), { kind: "number", label: `Region ${name}`, "aria-pressed": String(chosen), "data-focus": `number-${card.number}`, onclick: () => this.select(card) }),
        h("span", { class: "hint" }, placeOf(card.region), card.level === "object" ? null : ` · ${card.level}`),
        button("", { kind: "icon small", icon: "bin", label: `Remove region ${card.number}`, onclick: () => this.remove(card) })),
      body, card.why && chosen ? card.why.shown() : null, card.caption ? this.provenance(card) : null);
  }

  /** Every word can be asked why; one of them is in the order of Tab, the arrows lead to the others. */
  captionText(card) {
    const { caption } = card;
    const asked = card.why?.index ?? 0;
    const words = caption.text.split(/\s+/).filter(Boolean).flatMap((word, i) => [
      h("button", { type: "button", class: "because", "aria-pressed": String(card.why?.index === i && card === this.selected), tabindex: i === asked ? "0" : "-1", title: "Why this word?", "data-focus": `word-${card.number}-${i}`, onclick: () => this.askWhy(card, i), onkeydown: (event) => this.wordKey(event) }, word), " "]);
    return h("p", { class: "caption", dir: "auto" }, words, caption.sure ? null : h("span", { class: "unsure", title: "The model has seen little like this" }, "unsure"));
  }

  wordKey(event) {
    const words = [...event.target.parentElement.querySelectorAll(".because")];
    const goes = { ArrowRight: 1, ArrowLeft: -1 };
    if (!(event.key in goes)) return;
    event.preventDefault();
    words[(words.indexOf(event.target) + goes[event.key] + words.length) % words.length].focus();
  }

  askWhy(card, index) {
    const again = card.why?.index === index && card === this.selected;
    card.why?.stop();
    this.selected = card;
    card.why = again ? null : new Why({
      name: `word ${index} of region ${card.number}`,
      ask: (method, signal) => api.why(card.photo.id, { region: card.region, word: index, text: card.caption.text, level: card.level, method }, signal),
      changed: () => { if (this.photo === card.photo) this.render(); },
    });
    if (card.why) { card.why.index = index; card.why.begin(); } else this.render();
  }

  provenance(card) {
    const { caption } = card;
    const list = h("ol", { class: "near" }, (caption.nearest ?? []).map(({ sentence, cosine }) => {
      const bar = h("i", { "aria-hidden": "true" });
      bar.style.setProperty("--share", Math.max(0, Math.min(1, cosine)).toFixed(3));
      return h("li", {}, h("span", { dir: "auto" }, sentence), h("small", {}, bar, cosine.toFixed(2)));
    }));
    const heat = caption.weights ? button("Heat map", { kind: "quiet small", icon: "heat", "aria-pressed": String(Boolean(card.heat) && !card.why && card === this.selected), "data-focus": `heat-${card.number}`, onclick: () => this.toggleHeat(card) }) : null;
    const more = h("details", { class: "why", open: card.open, ontoggle: (event) => { card.open = event.target.open; } },
      h("summary", { "data-focus": `why-${card.number}` }, "Why this caption"),
      h("p", { class: "hint" }, "The nearest sentences of the model's memory:"), list);
    const alike = this.app.search.able ? button("Find alike", { kind: "quiet small", icon: "search", label: `Search all photos for what is like region ${card.number}`, "data-focus": `alike-${card.number}`, onclick: () => this.app.search.like(card.region) }) : null;
    return h("div", { class: "about" }, heat, alike, more);
  }

  toggleHeat(card) {
    card.heat = !(card.heat && card === this.selected && !card.why);
    card.why?.stop();
    card.why = null;
    this.selected = card;
    this.render();
  }

  key(event) {
    if (event.key === "Escape" && this.selected) { this.select(this.selected); return true; }
    if (event.ctrlKey || event.metaKey) {
      if (event.key.toLowerCase() === "z" && !event.shiftKey) this.undo();
      else if (event.key.toLowerCase() === "y" || event.key.toLowerCase() === "z") this.redo();
      else return false;
      return true;
    }
    const id = Object.keys(TOOLS).find((one) => TOOLS[one].key === event.key);
    if (id && !this.tools[0].disabled) this.choose(id);
    else if (event.key === "w" && !this.whole.disabled) this.add({ kind: "whole" });
    else return false;
    return true;
  }
}
