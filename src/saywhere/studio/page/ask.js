/** Ask: a conversation about the photo. Point, ask, follow up; what the model points out lights up on the photo. */

import { button, h, keyHelp, s } from "./dom.js";
import { announce, toast } from "./notices.js";
import { drawingHand, placeOf, shapes, toolButtons, TOOLS } from "./regions.js";
import { Turn } from "./turns.js";

const ALONE = "This model answers each question by itself. It does not remember what was said before; what you point at stays pointed at.";

export class Ask {
  constructor(app) {
    this.app = app;
    this.name = "ask";
    this.title = "Ask";
    this.layer = app.stage.layer("regions");
    this.sketch = app.stage.layer("sketch");
    this.talks = new Map(); // By photo: {turns, region}.
    this.tools = toolButtons((id) => this.choose(id));
    this.dock = h("div", { class: "docked" }, h("div", { class: "bar tools", role: "toolbar", "aria-label": "Pointing tools" }, this.tools));
    this.build();
  }

  build() {
    this.place = h("p", { class: "hint pointed" });
    this.text = h("input", { id: "question", maxlength: 500, autocomplete: "off", placeholder: "is there a cup?" });
    this.send = button("Ask", { kind: "primary", type: "submit" });
    this.cut = button("Cut it out", { kind: "quiet", icon: "cut", onclick: () => this.begin("segment", "Cut this out.") });
    this.fresh = button("New conversation", { kind: "quiet", onclick: () => this.startAnew() });
    this.form = h("form", { class: "fields ask", onsubmit: (event) => { event.preventDefault(); this.ask(); } },
      h("label", { for: "question" }, "Question"), this.text, this.place, h("div", { class: "row" }, this.send, this.cut, this.fresh));
    this.list = h("ol", { class: "turns", "aria-label": "Conversation" });
    this.note = h("p", { class: "hint" });
    this.lead = h("p", { class: "lead" });
    this.panel = h("div", { class: "paper talk" }, h("h2", {}, "Ask about the photo"), this.lead, this.note, this.list, this.form,
      keyHelp([[["T", "B", "P", "L"], "choose a tool"], [["Tab"], "to the photo, then"], [["←", "↑", "→", "↓"], "move, with Shift farther"], [["Space"], "begin and end"], [["Esc"], "point at nothing"]]));
  }

  get talk() {
    if (!this.talks.has(this.photo?.id)) this.talks.set(this.photo?.id, { turns: [], region: null });
    return this.talks.get(this.photo?.id);
  }

  /** How questions are answered: "chat" if the model can, or else each by itself. */
  get kind() { return this.app.status.can("chat").has ? "chat" : "answer"; }

  get waits() { return this.talk.turns.some((turn) => turn.waits); }

  enter(photo) {
    this.photo = photo;
    this.lit = null;
    this.layer.removeAttribute("visibility");
    const able = this.app.status.can(this.kind);
    this.ready = photo !== null && able.has;
    for (const one of this.tools) one.disabled = !this.ready;
    this.lack?.remove();
    this.lack = able.has ? null : this.app.status.missing(this.kind);
    if (this.lack) this.form.after(this.lack);
    this.lead.textContent = this.kind === "chat" ? "Point at something if you like, ask, and go on from there." : "Point at something if you like, then ask.";
    this.note.textContent = able.has && this.kind === "answer" ? ALONE : "";
    if (this.ready) this.choose(this.tool ?? "point"); else this.app.stage.setHand(null);
    this.render();
  }

  leave() {
    this.app.stage.setHand(null);
    this.app.stage.showHeat(null);
    this.layer.setAttribute("visibility", "hidden");
  }

  choose(id) {
    this.tool = id;
    for (const tool of this.tools) tool.setAttribute("aria-pressed", String(tool.dataset.tool === id));
    this.app.stage.setHand(drawingHand(this.app.stage, this.sketch, id, (region) => this.point(region)));
  }

  /** Point somewhere, or, with null, nowhere. */
  point(region) {
    this.talk.region = region;
    announce(region ? `Pointed at: ${placeOf(region)}` : "Pointed at nothing");
    this.render();
  }

  ask() {
    const text = this.text.value.trim();
    if (!text) { this.text.focus(); announce("Write a question first"); return; }
    if (this.waits) { announce("The last question is still being answered"); return; }
    this.text.value = "";
    this.begin(this.kind, text);
  }

  begin(kind, text) {
    const { talk, photo } = this;
    const turn = new Turn({ photo, kind, text, region: talk.region, changed: (one) => this.changed(one) });
    talk.turns.push(turn);
    // A model that talks remembers what was pointed at; one that answers is told again.
    if (kind === "chat") talk.region = null;
    this.run(turn);
  }

  run(turn) {
    const { turns } = this.talks.get(turn.photo.id);
    turn.begin();
    this.render();
    this.list.lastElementChild?.scrollIntoView({ block: "nearest" });
    turn.ask(turns.slice(0, turns.indexOf(turn)).filter(({ kind, reply }) => kind === "chat" && reply));
  }

  /** Some of an answer has come, or all of it. */
  changed(turn) {
    if (!this.talks.get(turn.photo.id)?.turns.includes(turn)) return;
    if (!turn.waits && !turn.heard) { turn.heard = true; announce(turn.announced); }
    if (turn.waits && turn.words.isConnected) return; // Its words grow where they stand.
    this.render();
    if (this.app.mode === this && this.photo === turn.photo) this.form.scrollIntoView({ block: "nearest" });
  }

  startAnew() {
    const { photo, talk } = this;
    for (const turn of talk.turns) turn.stop();
    this.talks.delete(photo.id);
    this.render();
    this.text.focus();
    const back = () => { this.talks.set(photo.id, { ...talk, turns: talk.turns.filter((turn) => !turn.waits) }); this.render(); };
    toast("A new conversation.", { action: ["Undo", back] });
  }

  toggleWhy() {
    this.asked = !this.asked;
    this.render();
  }

  render() {
    if (this.app.mode !== this) return; // What was asked for came when another mode had the stage.
    const focused = document.activeElement?.dataset?.focus;
    const { turns } = this.talk;
    this.tell();
    this.list.replaceChildren(...turns.map((turn, i) => turn.shown(i + 1, {
      pick: (region) => { this.lit = region; this.draw(); },
      again: () => this.run(turn),
      toggleWhy: turn === turns.at(-1) && turn.why ? () => this.toggleWhy() : null,
      asked: Boolean(this.asked),
    })));
    if (focused) this.panel.querySelector(`[data-focus="${focused}"]`)?.focus();
    this.draw();
    const why = this.asked ? turns.at(-1)?.why ?? null : null;
    if (why && !why.asking) why.begin();
    this.app.stage.showHeat(why?.weights ?? null);
  }

  /** What can be pressed now, and what is pointed at. */
  tell() {
    const { turns, region } = this.talk;
    this.send.disabled = !this.ready || this.waits;
    this.cut.hidden = !this.app.status.can("segment").has;
    this.cut.disabled = !this.ready || this.waits || !region;
    this.fresh.hidden = !turns.length;
    const earlier = turns.findLastIndex((turn) => turn.region) + 1;
    const remembered = this.kind === "chat" && earlier ? `Nothing new is pointed at. The model remembers turn ${earlier}: ${placeOf(turns[earlier - 1].region)}.` : "Pointed at: nothing. The whole photo is meant.";
    this.place.replaceChildren(...(region
      ? [`Pointed at: ${placeOf(region)} `, button("Point at nothing", { kind: "link", "data-focus": "nothing", onclick: () => this.point(null) })]
      : [remembered]));
  }

  /** What is pointed at now; or the one region that is meant; or else all of the last turn. */
  draw() {
    const { turns, region } = this.talk;
    const last = turns.at(-1);
    const drawn = (one, kind) => s("g", { class: `region ${kind}` }, shapes(this.app.stage, one));
    const told = last?.told ?? [];
    const mine = turns.some((turn) => turn.region === this.lit);
    this.layer.replaceChildren(
      ...(last?.region && last.region !== region ? [drawn(last.region, "")] : []),
      ...told.map((one) => drawn(one, one === this.lit ? "told chosen" : "told")),
      ...(region ? [drawn(region, this.lit ? "" : "chosen")] : []),
      ...(this.lit && !told.includes(this.lit) ? [drawn(this.lit, mine ? "chosen" : "told chosen")] : []));
  }

  key(event) {
    if (event.key === "Escape" && this.talk.region) { this.point(null); return true; }
    if (event.ctrlKey || event.metaKey) return false;
    const id = Object.keys(TOOLS).find((one) => TOOLS[one].key === event.key);
    if (!id || this.tools[0].disabled) return false;
    this.choose(id);
    return true;
  }
}
