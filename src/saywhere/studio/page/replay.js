/** Replay any narrative of a photo, people's and models'. */

import * as api from "./api.js";
import { button, clock, h } from "./dom.js";
import { Exchange } from "./exchange.js";
import { exportMenu } from "./exports.js";
import { spoken } from "./languages.js";
import { span } from "./narrative.js";
import { busy, problem, toastProblem, undoable } from "./notices.js";
import { Player } from "./player.js";
import { earlierVersions } from "./versions.js";

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
    this.heading = h("h2", {}, "Replay");
    this.exchange = new Exchange(app, () => { this.app.queue.load(); if (!this.editing) this.enter(this.photo); });
    this.panel = h("div", { class: "paper" }, ...this.parts);
    this.editing = null;
    this.whileTyping = (event) => this.editing?.whileTyping(event);
    this.leaving = new Set(); // Deleted here, not yet on the server.
  }

  async enter(photo) {
    if (this.editing && photo === this.photo) return;
    this.stopEditing();
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

  get parts() {
    return [this.heading, this.state, this.now, this.list, this.exchange.element];
  }

  leave() {
    this.stopEditing();
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
        h("strong", {}, who), h("small", {}, about), spoken(h("span", { class: "excerpt", dir: "auto" }, narrative.text || "without words"), narrative.language)),
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
      button("Edit", { kind: "quiet", "aria-keyshortcuts": "e", onclick: () => this.edit() }),
      untimed ? button("Align words", { kind: "quiet", onclick: () => this.align() }) : null, exportMenu(() => chosen.id)));
    if (chosen.version > 1) this.now.append(earlierVersions(chosen, (one) => this.see(one), (one) => this.replaced(one)));
  }

  /** A version as it was; `tell` shows the newest again. */
  see(version) {
    this.player.load(version, { audio: version.audio ? api.audioAddress(version.id) : "" });
    this.seen?.remove();
    this.seen = h("p", { class: "gentle" }, `This is version ${version.version}, as it was. `, button("Show the newest", { kind: "quiet small", onclick: () => { this.seen.remove(); this.choose(this.chosen, false); } }));
    this.player.text.after(this.seen);
    this.seen.querySelector("button").focus();
  }

  async edit() {
    const { chosen } = this;
    const { Edit } = await import("./edit.js");
    if (this.chosen !== chosen || this.editing) return;
    this.editing = new Edit(this.app, this.player, chosen, (saved) => this.edited(saved));
    this.panel.replaceChildren(...this.editing.parts);
    this.dock.replaceChildren(...this.editing.dock);
    await this.editing.begin();
  }

  edited(saved) {
    this.stopEditing();
    this.replaced(saved ?? this.chosen);
    this.now.querySelector("[aria-keyshortcuts=e]").focus();
  }

  stopEditing() {
    if (!this.editing) return;
    this.editing.close();
    this.editing = null;
    this.panel.replaceChildren(...this.parts);
    this.dock.replaceChildren(this.player.bar);
  }

  /** A narrative in place of the one of its id. */
  replaced(narrative) {
    this.all = this.all.map((one) => (one.id === narrative.id ? narrative : one));
    this.chosen = narrative;
    this.player.load(narrative, { audio: narrative.audio ? api.audioAddress(narrative.id) : "" });
    this.tell();
    this.render();
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
    if (this.editing) return this.editing.key(event);
    if (event.ctrlKey || event.metaKey || event.altKey || !this.player.narrative) return false;
    const acts = { k: () => this.player.toggle(), e: () => this.edit() };
    acts[event.key]?.();
    return event.key in acts;
  }
}

function length(narrative) {
  const [from, to] = span(narrative);
  return to > from ? clock(to - from) : "";
}
