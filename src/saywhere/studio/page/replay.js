/** Replay any narrative of a photo, people's and models'. */

import * as api from "./api.js";
import { button, clock, h } from "./dom.js";
import { exportMenu } from "./exports.js";
import { span } from "./narrative.js";
import { busy, problem, toastProblem, undoable } from "./notices.js";
import { Player } from "./player.js";

export class Replay {
  constructor(app) {
    this.app = app;
    this.name = "replay";
    this.title = "Replay";
    this.player = new Player(app.stage);
    this.dock = h("div", { class: "docked" }, this.player.bar);
    this.list = h("ul", { class: "list narratives" });
    this.state = h("div", {});
    this.now = h("div", { class: "result" });
    this.panel = h("div", { class: "paper" }, h("h2", {}, "Replay"), this.state, this.now, this.list);
    this.leaving = new Set(); // Deleted here, not yet on the server.
  }

  async enter(photo) {
    this.photo = photo;
    this.chosen = null;
    this.player.clear();
    this.player.layer.removeAttribute("visibility");
    this.now.replaceChildren();
    this.list.replaceChildren();
    if (photo === null) { this.state.replaceChildren(h("p", { class: "lead" }, "Choose a photo to see what was said about it.")); return; }
    this.state.replaceChildren(busy("Fetching narratives …"));
    try {
      const all = await api.narratives(photo.id);
      if (this.photo !== photo) return;
      this.all = all.sort((a, b) => (b.created ?? "").localeCompare(a.created ?? ""));
      this.render();
      const [first] = this.shown;
      if (first) await this.choose(first, false);
    } catch (error) {
      if (!(error instanceof api.Refused)) throw error;
      if (this.photo === photo) this.state.replaceChildren(problem(error, () => this.enter(photo)));
    }
  }

  leave() {
    this.player.pause();
    this.player.layer.setAttribute("visibility", "hidden");
  }

  get shown() {
    return this.all.filter(({ id }) => !this.leaving.has(id));
  }

  render() {
    const { shown } = this;
    this.state.replaceChildren(shown.length ? h("p", { class: "lead" }, "Words light up as they are said, and the trace follows.")
      : h("div", { class: "gentle" }, h("p", {}, "Nobody has described this photo yet."), button("Record the first", { kind: "quiet", onclick: () => this.app.go("record") })));
    this.list.replaceChildren(...shown.map((narrative) => this.item(narrative)));
  }

  item(narrative) {
    const person = narrative.origin === "human";
    const who = person ? narrative.annotator || "A person" : narrative.origin;
    const about = [person ? "" : "written by a model", narrative.created ? new Date(narrative.created).toLocaleString([], { dateStyle: "medium", timeStyle: "short" }) : "", length(narrative)].filter(Boolean).join(" · ");
    return h("li", { class: narrative.id === this.chosen?.id ? "chosen" : "" },
      h("button", { type: "button", class: "pick", "aria-pressed": String(narrative.id === this.chosen?.id), onclick: () => this.choose(narrative, true) },
        h("strong", {}, who), h("small", {}, about), h("span", { class: "excerpt", dir: "auto" }, narrative.text || "without words")),
      button("", { kind: "icon small", icon: "bin", label: `Delete the narrative of ${who}`, onclick: () => this.remove(narrative) }));
  }

  async choose({ id }, play) {
    try {
      const narrative = await api.narrative(id);
      if (this.photo?.id !== narrative.photo) return;
      this.chosen = narrative;
      this.player.load(narrative, { audio: narrative.audio ? api.audioAddress(id) : "", play });
      this.tell();
      this.render();
    } catch (error) {
      if (!(error instanceof api.Refused)) throw error;
      this.now.replaceChildren(problem(error));
    }
  }

  tell() {
    const { chosen } = this;
    const untimed = chosen.text.trim() && !chosen.words.length;
    this.now.replaceChildren(this.player.text, h("div", { class: "row" },
      untimed ? button("Align words", { kind: "quiet", onclick: () => this.align() }) : null, exportMenu(() => chosen.id)));
  }

  async align() {
    try {
      await api.align(this.chosen.id);
      await this.choose(this.chosen, false);
    } catch (error) {
      if (!(error instanceof api.Refused)) throw error;
      this.now.append(problem(error));
    }
  }

  remove(narrative) {
    const { photo } = this;
    this.leaving.add(narrative.id);
    const back = () => { this.leaving.delete(narrative.id); if (this.photo === photo && this.app.mode === this) this.render(); };
    if (this.chosen?.id === narrative.id) { this.chosen = null; this.player.clear(); this.now.replaceChildren(); }
    this.render();
    undoable("Narrative deleted.", {
      act: () => api.removeNarrative(narrative.id).then(() => this.app.queue.load()).catch((error) => { back(); toastProblem(error, "The narrative is still there"); }),
      undo: back,
    });
  }

  key(event) {
    if (event.key === "k" && this.player.narrative) { this.player.toggle(); return true; }
    return false;
  }
}

function length(narrative) {
  const [from, to] = span(narrative);
  return to > from ? clock(to - from) : "";
}
