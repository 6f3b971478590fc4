/** The model: whether it is there yet, and what it can do. */

import * as api from "./api.js";
import { h, icon, sentence } from "./dom.js";

const POLL_MS = 1000;
const NAMES = {
  caption: ["Describe", "captions for regions"], ground: ["Find", "places for words"], narrate: ["Narrate", "tells a photo by itself"],
  answer: ["Ask", "answers to questions about a photo"], segment: ["Cut out", "what is pointed at, in Ask"], scene: ["Scene", "where a photo is taken, in Describe"], chat: ["Talk", "a conversation about a photo, in Ask"],
  search: ["Search", "photos, and the place in each"],
};

export class Status {
  /** changed: called whenever the answer differs from the one before. */
  constructor(changed) {
    this.changed = changed;
    this.model = null;
    this.limits = {};
    this.videos = 0;
    this.transcription = null;
    this.search = null; // {has, why, how}, when the search knows.
    this.error = null;
  }

  /** Ask; while the model is loading, or the server is away, ask again and again. */
  async watch() {
    const before = JSON.stringify([this.model, this.error?.message]);
    try {
      ({ model: this.model, limits: this.limits = {}, videos: this.videos = 0, transcription: this.transcription } = await api.status());
      this.error = null;
    } catch (error) {
      if (!(error instanceof api.Refused)) throw error;
      this.error = error;
    }
    if (JSON.stringify([this.model, this.error?.message]) !== before) { this.render(); this.changed(); }
    if (this.error || this.loading) setTimeout(() => this.watch(), this.error ? 3 * POLL_MS : POLL_MS);
  }

  get loading() {
    return this.model !== null && !this.model.ready && !this.model.error;
  }

  /** {has, why, how} of a skill. */
  can(skill) {
    if (this.error) return { has: false, why: this.error.message, how: this.error.hint };
    if (!this.model) return { has: false, why: "Connecting to the Studio …", how: "" };
    if (this.loading) return { has: false, why: "The model is loading.", how: "This takes a moment. You can record meanwhile.", soon: true };
    return this.model.skills?.[skill] ?? { has: false, why: "This model does not say that it can.", how: "" };
  }

  /** What to show in place of something that the model cannot do. */
  missing(skill) {
    const { why, how, soon } = this.can(skill);
    return h("div", { class: soon ? "gentle soon" : "gentle" }, soon ? h("span", { class: "spinner", "aria-hidden": "true" }) : null, h("p", {}, sentence(why)), how ? h("p", { class: "hint" }, sentence(how)) : null);
  }

  render() {
    const menu = document.getElementById("model");
    const state = this.error || this.model.error ? "away" : this.loading ? "loading" : "ready";
    const name = this.error ? "Not connected" : this.model.error ? "No model" : this.loading ? "Model is loading" : this.model.name;
    menu.dataset.state = state;
    menu.querySelector(".name").textContent = name;
    menu.querySelector("summary").setAttribute("aria-label", `Model: ${name}. What it can do`);
    menu.querySelector(".sheet").replaceChildren(...this.skillList());
  }

  skillList() {
    if (this.error) return [h("p", {}, sentence(this.error.message)), h("p", { class: "hint" }, sentence(this.error.hint))];
    if (this.model.error) return [h("p", {}, sentence(this.model.error)), h("p", { class: "hint" }, "Recording and replaying work without a model.")];
    const skills = Object.entries({ ...this.model.skills, ...(this.search && this.model.ready ? { search: this.search } : {}) });
    const items = skills.map(([skill, { has, why }]) => {
      const [name, what] = NAMES[skill] ?? [skill, ""];
      return h("li", { class: has ? "has" : "lacks" }, icon(has ? "tick" : "close"),
        h("p", {}, h("strong", {}, name), h("span", { class: "unseen" }, has ? ", yes" : ", no"), h("small", {}, has ? what : sentence(why))));
    });
    return [h("h2", {}, "What this model can do"), h("ul", { class: "skills" }, items), ...this.ways(skills.map(([, facts]) => facts))];
  }

  /** How to get what is missing, each way once. */
  ways(facts) {
    const ways = new Set(facts.filter(({ has, how }) => !has && how).map(({ how }) => sentence(how)));
    return [...ways].map((way) => h("p", { class: "hint" }, way));
  }

  /** A quiet line on skills that have no mode of their own yet. */
  seams() {
    const absent = ["segment", "scene", "chat"].filter((skill) => this.model?.skills?.[skill] && !this.model.skills[skill].has);
    if (!absent.length || this.error || !this.model.ready) return null;
    return h("details", { class: "seams" }, h("summary", {}, `Not with this model: ${absent.map((skill) => NAMES[skill][0].toLowerCase()).join(", ")}`),
      absent.map((skill) => h("p", { class: "hint" }, sentence(this.model.skills[skill].why))), this.ways(absent.map((skill) => this.model.skills[skill])));
  }
}
