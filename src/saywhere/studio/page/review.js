/** Reviewing: what annotators told is replayed, then accepted, returned with a note, or rejected; how far people are and agree. */

import * as api from "./api.js";
import { button, counted, h, keyHelp } from "./dom.js";
import { announce, busy, problem, toastProblem } from "./notices.js";
import { nameOf, spoken } from "./languages.js";
import { people, PeopleVisit, STATES } from "./people.js";
import { Player } from "./player.js";

const VERDICTS = { accept: "accepted", return: "returned", reject: "rejected" };
const KEYS = [[["A"], "accept"], [["R"], "return with a note"], [["X"], "reject"], [["N"], "next that waits"], [["K"], "play and pause"]];
const when = (at) => new Date(at).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });

class Review extends PeopleVisit {
  constructor() {
    super();
    this.role = "reviewer";
    this.player = new Player(this.stage);
    this.dock.replaceChildren(h("div", { class: "docked" }, this.player.bar));
    this.list = h("ul", { class: "list narratives" });
    this.views = ["Review", "People", "Agreement"].map((name) => button(name, { kind: "quiet small", "aria-pressed": "false", onclick: () => this.view(name) }));
    this.head = h("nav", { class: "row views", "aria-label": "Views" }, this.views);
    this.shelf.setAttribute("aria-label", "Narratives");
    this.shelf.replaceChildren(this.list);
    this.chosen = null;
  }

  async facts() { return { title: "Review narratives" }; }

  async place(code) {
    const person = await this.come(code);
    const { submissions } = await people("GET", "reviews");
    return { reviewer: person.code, submissions, next: submissions[0] ?? null };
  }

  person({ reviewer }) { return reviewer; }

  totals({ submissions }) { return [submissions.filter(({ state }) => state !== "waiting").length, submissions.length]; }

  about() {
    return h("ul", { class: "rules" },
      h("li", {}, "Replay what was told: words light up in time with the trace and the voice."),
      h("li", {}, "Accept it, return it with a note, or reject it. What you return comes again to who told it."),
      h("li", {}, "Everything that was said of a narrative is kept and shown."));
  }

  showNext() {
    this.showStudio();
    this.open = true;
    this.view("Review");
  }

  thanks() {
    const heading = h("h1", { tabindex: "-1" }, "Nothing to review yet");
    this.show(h("div", { class: "sheet-like done" }, heading, h("p", { class: "lead" }, "Nobody has told a photo that was given to them."),
      h("div", { class: "row" }, button("Look again", { kind: "primary", onclick: () => this.enter(this.at.reviewer) }))));
    heading.focus();
  }

  async view(name) {
    this.views.forEach((one) => one.setAttribute("aria-pressed", String(one.textContent === name)));
    this.now = name;
    document.body.dataset.view = name;
    this.player.pause();
    if (name === "Review") {
      this.renderList();
      await this.choose(this.at.submissions.find(({ narrative }) => narrative === this.chosen?.narrative) ?? this.at.submissions[0]);
      return;
    }
    this.panel.replaceChildren(this.head, busy("One moment …"));
    try {
      const found = name === "People" ? peopleTable(await people("GET", "status")) : agreementTables(await people("GET", "agreement"));
      if (this.now === name) this.panel.replaceChildren(this.head, ...found);
    } catch (error) {
      if (!(error instanceof api.Refused)) throw error;
      this.panel.replaceChildren(this.head, problem(error, () => this.view(name)));
    }
  }

  renderList() {
    this.list.replaceChildren(...this.at.submissions.map((one) => h("li", { class: one.narrative === this.chosen?.narrative ? "chosen" : "" },
      h("button", { type: "button", class: "pick", "aria-pressed": String(one.narrative === this.chosen?.narrative), onclick: () => this.choose(one) },
        h("strong", {}, one.annotator), h("small", { class: "state" }, STATES[one.state]), spoken(h("span", { class: "excerpt", dir: "auto" }, one.text || "without words"), one.language)))));
  }

  async choose(one) {
    this.chosen = one;
    this.renderList();
    this.stage.show({ ...one, id: one.photo });
    this.player.clear();
    this.panel.replaceChildren(this.head, busy("Fetching the narrative …"));
    try {
      const narrative = await api.narrative(one.narrative);
      if (this.chosen !== one || this.now !== "Review") return;
      this.player.load(narrative, { audio: narrative.audio ? api.audioAddress(one.narrative) : "" });
      this.tell();
    } catch (error) {
      if (!(error instanceof api.Refused)) throw error;
      if (this.chosen === one) this.panel.replaceChildren(this.head, problem(error, () => this.choose(one)));
    }
  }

  tell() {
    const { annotator, created, state, name, reviews, language } = this.chosen;
    this.note = h("textarea", { id: "note", rows: 3, maxlength: 1000, spellcheck: "true", "aria-describedby": "note-how" });
    this.says = h("div", {});
    this.panel.replaceChildren(this.head,
      h("h2", {}, annotator), h("p", { class: "hint" }, `${name} · ${when(created)}${language ? ` · in ${nameOf(language)}` : ""} · `, h("span", { class: "state" }, STATES[state])),
      this.player.text,
      h("div", { class: "fields" }, h("label", { for: "note" }, "Note"), this.note, h("p", { class: "hint", id: "note-how" }, "Needed to return or reject; the annotator reads it.")),
      h("div", { class: "row" },
        button("Accept", { kind: "primary", icon: "tick", "aria-keyshortcuts": "a", onclick: () => this.decide("accept") }),
        button("Return", { kind: "quiet", icon: "undo", "aria-keyshortcuts": "r", onclick: () => this.decide("return") }),
        button("Reject", { kind: "quiet", icon: "close", "aria-keyshortcuts": "x", onclick: () => this.decide("reject") })),
      this.says, history(reviews), keyHelp(KEYS));
  }

  /** The next that waits, after this one. */
  following() {
    const all = this.at.submissions, at = all.indexOf(this.chosen);
    return [...all.slice(at + 1), ...all.slice(0, at)].find(({ state }) => state === "waiting") ?? null;
  }

  async decide(verdict) {
    const { chosen } = this, note = this.note.value.trim();
    if (verdict !== "accept" && !note) {
      this.says.replaceChildren(problem(new api.Refused(verdict === "return" ? "Say in the note what is to be done otherwise." : "Say in the note why it is rejected.")));
      this.note.focus();
      return;
    }
    try {
      const after = await api.asked("POST", api.at("people", "reviews"), { json: { narrative: chosen.narrative, digest: chosen.digest, verdict, note } });
      const next = this.following();
      this.at.submissions[this.at.submissions.indexOf(chosen)] = after;
      this.chosen = after;
      this.showProgress();
      announce(`${VERDICTS[verdict]}${next ? "" : ", and nothing else waits"}`);
      await this.choose(next ?? after);
    } catch (error) {
      if (!(error instanceof api.Refused)) throw error;
      this.says.replaceChildren(problem(error, error.status === 409 ? () => this.refresh() : null));
    }
  }

  /** See how things stand, and stay where we are. */
  async refresh() {
    try {
      this.at.submissions = (await people("GET", "reviews")).submissions;
      this.showProgress();
      await this.view("Review");
    } catch (error) {
      if (!(error instanceof api.Refused)) throw error;
      toastProblem(error);
    }
  }

  workKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || this.now !== "Review" || !this.note) return false;
    const acts = { a: () => this.decide("accept"), r: () => this.decide("return"), x: () => this.decide("reject"), n: () => { const next = this.following(); if (next) this.choose(next); }, k: () => this.player.toggle() };
    const act = acts[event.key.toLowerCase()];
    act?.();
    return Boolean(act);
  }
}

function history(reviews) {
  if (!reviews.length) return h("p", { class: "hint history" }, "Nobody has reviewed this yet.");
  return h("section", { class: "history", "aria-label": "History" }, h("h3", {}, "History"),
    h("ul", {}, reviews.map(({ reviewer, verdict, note, at }) => h("li", {}, h("strong", {}, VERDICTS[verdict]), h("small", {}, ` by ${reviewer}, ${when(at)}`), note ? h("p", { dir: "auto" }, note) : null))));
}

const table = (label, heads, rows) => h("div", { class: "wide", tabindex: "0", role: "region", "aria-label": label },
  h("table", {}, h("thead", {}, h("tr", {}, heads.map((head) => h("th", { scope: "col" }, head)))),
    h("tbody", {}, rows.map(([first, ...rest]) => h("tr", {}, h("th", { scope: "row" }, first), rest.map((cell) => h("td", {}, cell)))))));

function peopleTable({ people: all }) {
  const annotators = all.filter(({ role }) => role === "annotator"), reviewers = all.filter(({ role }) => role === "reviewer");
  const states = Object.keys(STATES);
  return [
    h("h2", {}, "People"),
    table("Annotators", ["Annotator", "done", ...states.map((state) => STATES[state])],
      annotators.map(({ code, left, done, assigned, counts }) => [left ? `${code}, left` : code, `${done} of ${assigned}`, ...states.map((state) => String(counts[state] ?? 0))])),
    table("Reviewers", ["Reviewer", "reviews"], reviewers.map(({ code, left, reviews }) => [left ? `${code}, left` : code, String(reviews)])),
  ];
}

const number = (value) => (value === null ? "–" : value.toFixed(3));
const estimate = (one) => (one === null ? "–" : one.low === null ? number(one.mean) : `${number(one.mean)} [${number(one.low)}, ${number(one.high)}]`);

function agreementTables({ photos, narratives, unplaced, measures, annotators }) {
  if (!photos) return [h("h2", {}, "Agreement"), h("p", { class: "lead" }, "No photo was told by several people yet.")];
  return [
    h("h2", {}, "Agreement"),
    h("p", { class: "lead" }, `${counted(photos, "photo")} told by several people, ${counted(narratives, "narrative")}.${unplaced ? ` ${unplaced} without a placed word.` : ""}`),
    ...measures.map(figure),
    table("Agreement of people", ["Measure", "better", "people", "chance"], measures.map((one) => [one.name, one.lower_is_better ? "lower" : "higher", estimate(one.people), estimate(one.chance)])),
    h("h3", {}, "Each against the others"),
    table("Agreement of each annotator", ["Annotator", "photos", "LBM, k = 0", "ROUGE-L"], annotators.map(({ code, photos: told, lbm, rouge_l }) => [code, String(told), number(lbm), number(rouge_l)])),
    h("p", { class: "hint" }, "Intervals are 95 %, by a bootstrap over photos. Chance compares narratives of different photos."),
  ];
}

/** People and chance on one line, each with its interval. */
function figure({ name, people: found, chance }) {
  const both = [["people", found], ["chance", chance]].filter(([, one]) => one !== null);
  const most = Math.max(...both.map(([, one]) => one.high ?? one.mean), 1e-9) * 1.05;
  const bars = both.map(([who, one]) => {
    const mark = h("i", { class: who }), span = h("b", { class: who });
    mark.style.setProperty("--at", String(one.mean / most));
    span.style.setProperty("--from", String((one.low ?? one.mean) / most));
    span.style.setProperty("--to", String((one.high ?? one.mean) / most));
    return h("div", { class: "interval" }, h("small", {}, who), h("span", { class: "scale" }, span, mark));
  });
  return h("figure", { class: "measure", "aria-hidden": "true" }, h("figcaption", {}, name), bars);
}

new Review().start().finally(() => { document.documentElement.dataset.started = ""; });
