/** The trust study: two explanations side by side, and which is more reasonable. The page never learns whose they are. */

import { asked, at } from "./api.js";
import { timeColour } from "./colours.js";
import { button, h } from "./dom.js";
import { announce } from "./notices.js";
import { Stage } from "./stage.js";
import { Visit } from "./visit.js";

const SCALE = [
  [-2, "Left", "clearly", "The left is clearly more reasonable"],
  [-1, "Left", "slightly", "The left is slightly more reasonable"],
  [0, "Both", "equally", "Both are equally reasonable"],
  [1, "Right", "slightly", "The right is slightly more reasonable"],
  [2, "Right", "clearly", "The right is clearly more reasonable"],
];

/** Little to much, in the colours of the heat. */
function legend() {
  const bar = h("canvas", { class: "ramp", width: 64, height: 1, "aria-hidden": "true" });
  const image = new ImageData(64, 1);
  for (let i = 0; i < 64; i++) image.data.set([...timeColour(i / 63), 255], 4 * i);
  bar.getContext("2d").putImageData(image, 0, 0);
  return h("p", { class: "legend hint" }, "counted little", bar, "much");
}

/** The prompt with its word marked where it first stands; an answer, or a word that is not in it, comes after it. */
function marked({ prompt, word, answer }) {
  const plain = (word ?? "").replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const found = word ? new RegExp(`(?<![\\p{L}\\p{N}])${plain}(?![\\p{L}\\p{N}])`, "iu").exec(prompt) : null;
  if (found === null) return [prompt, " ", h("mark", { class: "apart" }, answer ?? word)];
  const end = found.index + found[0].length;
  return [prompt.slice(0, found.index), h("mark", {}, found[0]), prompt.slice(end)];
}

class Study extends Visit {
  constructor() {
    super();
    this.buildPair();
  }

  facts() { return asked("GET", at("study")); }

  /** {participant, study, total, done, last, next}, as all that follows. */
  place(code) { return asked("GET", `${at("study", "place")}?participant=${encodeURIComponent(code)}`); }

  person({ participant }) { return participant; }

  totals({ done, total }) { return [done, total]; }

  nothing() {
    return h(
      "div",
      { class: "sheet-like" },
      h("h1", {}, "No study is open here"),
      h("p", { class: "lead" }, "In a study, people see what two models looked at and say which is more reasonable."),
      h("p", {}, "To open one, run this in a terminal on this computer:"),
      h("pre", { tabindex: "0" }, "saywhere study serve FOLDER"),
      h("p", { class: "hint" }, "FOLDER holds study.json with its photos and heat maps; ", h("code", {}, "saywhere.studio.study.write_study"), " makes one."),
    );
  }

  about() {
    const { question, items } = this.known;
    const told = items === 1 ? "One photo, shown twice." : `${items} pairs, each a photo shown twice.`;
    return [
      h("p", { class: "lead" }, question),
      h(
        "ul",
        { class: "rules" },
        h("li", {}, `${told} The colours show what counted for a model: violet little, yellow much.`),
        h("li", {}, "Which models they are is not shown, and they change sides at random."),
        h("li", {}, "Answer with the keys ", h("kbd", {}, "1"), " to ", h("kbd", {}, "5"), " or by clicking. There is no right or wrong, and the last answer can be undone."),
      ),
    ];
  }

  buildPair() {
    const figures = ["Left", "Right"].map((name) => ({ name, element: h("div", { class: "stage" }) }));
    this.stages = figures.map(({ element }) => new Stage(element));
    this.prompt = h("p", { class: "prompt" });
    this.question = h("h1", { class: "asks" });
    this.choices = SCALE.map(([rating, side, how, meaning], i) =>
      h("button", { type: "button", class: `choice by-${Math.abs(rating)}`, "aria-label": `${meaning}: ${i + 1}`, "aria-keyshortcuts": String(i + 1), onclick: () => this.answer(rating) },
        h("i", { "aria-hidden": "true" }), h("span", {}, side, " ", h("br", {}), how), h("kbd", { "aria-hidden": "true" }, String(i + 1))));
    this.undoer = button("Undo last answer", { icon: "undo", kind: "quiet small", "aria-keyshortcuts": "Backspace", onclick: () => this.undo() });
    this.bare = button("Photo alone", { icon: "photo", kind: "quiet small", "aria-pressed": "false", "aria-keyshortcuts": "h", onclick: () => this.setBare(this.bare.getAttribute("aria-pressed") === "false") });
    this.undoer.append(h("kbd", { "aria-hidden": "true" }, "⌫"));
    this.bare.append(h("kbd", { "aria-hidden": "true" }, "H"));
    this.scale = h("div", { class: "scale", role: "group", "aria-label": "Which is more reasonable?" }, this.choices);
    this.views = h("div", { class: "views" }, figures.map(({ name, element }) => h("div", { class: "view" }, h("p", { class: "hint", "aria-hidden": "true" }, name), element)));
    this.pair = h(
      "div",
      { class: "pair" },
      h("div", { class: "words" }, this.prompt, this.question),
      this.views,
      this.scale,
      this.trouble,
      h("div", { class: "foot" }, this.undoer, legend(), this.bare),
    );
  }

  async showNext() {
    const { next, done, total } = this.at;
    this.setOpen(false);
    this.trouble.replaceChildren();
    this.prompt.replaceChildren(...marked(next));
    this.question.textContent = this.known.question;
    this.undoer.disabled = this.at.last === null;
    this.choices.forEach((choice) => choice.classList.remove("chosen"));
    this.views.style.setProperty("--ratio", String(next.width / next.height));
    this.stages.forEach((stage, i) => stage.show({ name: i === 0 ? "Left explanation" : "Right explanation", url: next.photo, width: next.width, height: next.height }));
    this.setBare(false);
    if (!this.pair.isConnected) this.show(this.pair);
    if (!(await this.shownAll(this.stages.map((stage) => stage.image), () => this.showNext()))) return;
    this.setOpen(true);
    announce(`Pair ${done + 1} of ${total}: ${next.prompt}`);
  }

  setOpen(open) {
    this.open = open;
    this.scale.dataset.open = String(open);
  }

  /** The photos without the colours. */
  setBare(bare) {
    const { left, right } = this.at.next;
    this.stages.forEach((stage, i) => stage.showHeat(bare ? null : [left, right][i]));
    this.bare.setAttribute("aria-pressed", String(bare));
  }

  async answer(rating) {
    if (!this.open) return;
    this.setOpen(false);
    const { seconds } = this;
    this.choices[rating + 2].classList.add("chosen");
    const { participant, study, next } = this.at;
    await this.send(() => asked("POST", at("study", "ratings"), { json: { participant, study, item: next.item, rating, seconds } }));
  }

  async undo() {
    const { participant, last, next } = this.at ?? {};
    if (!last || (next !== null && !this.open)) return;
    this.setOpen(false);
    await this.send(() => asked("POST", at("study", "undo"), { json: { participant, item: last } }));
  }

  thanks() {
    this.setOpen(false);
    const heading = h("h1", { tabindex: "-1" }, "Thank you");
    this.show(
      h(
        "div",
        { class: "sheet-like done" },
        heading,
        h("p", { class: "lead" }, this.at.total === 1 ? "Your answer is kept." : `All ${this.at.total} answers are kept.`),
        h("p", {}, "You can close this page now."),
        h("div", { class: "row" }, button("Next participant", { kind: "primary", onclick: () => this.next() }), button("Undo last answer", { icon: "undo", kind: "quiet", onclick: () => this.undo() })),
      ),
    );
    heading.focus();
  }

  key(event) {
    const plain = !event.ctrlKey && !event.metaKey;
    const rating = plain ? "12345".indexOf(event.key) : -1;
    if (event.key.length === 1 && rating >= 0) this.answer(SCALE[rating][0]);
    else if ((plain && event.key === "Backspace") || (!plain && event.key === "z")) this.undo();
    else if (plain && event.key.toLowerCase() === "h" && this.pair.isConnected) this.setBare(this.bare.getAttribute("aria-pressed") === "false");
    else return false;
    return true;
  }
}

new Study().start().finally(() => { document.documentElement.dataset.started = ""; });
