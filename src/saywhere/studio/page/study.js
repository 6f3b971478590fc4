/** The trust study: two explanations side by side, and which is more reasonable. The page never learns whose they are. */

import * as api from "./api.js";
import { timeColour } from "./colours.js";
import { button, h, isTyping } from "./dom.js";
import { announce, busy, problem } from "./notices.js";
import { Stage } from "./stage.js";

const SCALE = [
  [-2, "Left", "clearly", "The left is clearly more reasonable"],
  [-1, "Left", "slightly", "The left is slightly more reasonable"],
  [0, "Both", "equally", "Both are equally reasonable"],
  [1, "Right", "slightly", "The right is slightly more reasonable"],
  [2, "Right", "clearly", "The right is clearly more reasonable"],
];
const LULL_MS = 300; // A second press of the same key must not answer a pair that nobody has seen yet.
const one = (selector) => document.querySelector(selector);
const pause = (ms) => new Promise((done) => setTimeout(done, ms));

/** Little to much, in the colours of the heat. */
function legend() {
  const bar = h("canvas", { class: "ramp", width: 64, height: 1, "aria-hidden": "true" });
  const image = new ImageData(64, 1);
  for (let i = 0; i < 64; i++) image.data.set([...timeColour(i / 63), 255], 4 * i);
  bar.getContext("2d").putImageData(image, 0, 0);
  return h("p", { class: "legend hint" }, "counted little", bar, "much");
}

/** The prompt with its word marked where it first stands; an answer, or a word that is not in it, comes after it. */
function asked({ prompt, word, answer }) {
  const plain = (word ?? "").replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const found = word ? new RegExp(`(?<![\\p{L}\\p{N}])${plain}(?![\\p{L}\\p{N}])`, "iu").exec(prompt) : null;
  if (found === null) return [prompt, " ", h("mark", { class: "apart" }, answer ?? word)];
  const end = found.index + found[0].length;
  return [prompt.slice(0, found.index), h("mark", {}, found[0]), prompt.slice(end)];
}

class Study {
  constructor() {
    this.main = one("main");
    this.facts = null;
    this.place = null;
    this.shown = 0; // Counts pairs, so that a photo that comes late does not open the wrong one.
    this.open = false; // Whether an answer is taken now.
    this.buildPair();
    document.addEventListener("keydown", (event) => this.key(event));
    addEventListener("hashchange", () => this.start());
  }

  async start() {
    this.leave();
    this.main.replaceChildren(h("div", { class: "sheet-like" }, busy("One moment")));
    try {
      this.facts = await api.study();
    } catch (error) {
      if (!(error instanceof api.Refused)) throw error;
      this.show(error.code === "no_study" ? this.nothing() : h("div", { class: "sheet-like" }, problem(error, () => this.start())));
      return;
    }
    document.title = this.facts.title;
    const code = this.code();
    if (code) await this.enter(code, true);
    else this.welcome();
  }

  /** The participant's code is in the address: it survives a reload, and a lab can hand out links. */
  code() {
    try {
      return decodeURIComponent(location.hash.slice(1));
    } catch (error) {
      if (!(error instanceof URIError)) throw error;
      return location.hash.slice(1);
    }
  }

  remember(code) {
    history.replaceState(null, "", code ? `#${encodeURIComponent(code)}` : location.pathname);
  }

  show(...children) {
    this.main.replaceChildren(...children);
  }

  /** Nobody takes part now. */
  leave() {
    this.open = false;
    this.place = null;
    this.shown += 1;
    one(".progress").replaceChildren();
    one(".corner").replaceChildren();
  }

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

  welcome(typed = "", error = null) {
    this.leave();
    const { title, question, items } = this.facts;
    const field = h("input", { id: "code", autocomplete: "off", autocapitalize: "characters", spellcheck: "false", maxlength: "40", "aria-describedby": "code-hint" });
    field.value = typed;
    const begin = (event) => { event.preventDefault(); this.enter(field.value); };
    const form = h(
      "form",
      { class: "fields", onsubmit: begin },
      h("label", { for: "code" }, "Your code"),
      h("div", { class: "code" }, field, h("button", { type: "submit", class: "primary" }, "Start")),
      h("p", { class: "hint", id: "code-hint" }, "As the lab gave it to you. With the same code you go on where you stopped."),
      error ? problem(error) : null,
    );
    const told = items === 1 ? "One photo, shown twice." : `${items} pairs, each a photo shown twice.`;
    this.show(
      h(
        "div",
        { class: "sheet-like" },
        h("h1", {}, title),
        h("p", { class: "lead" }, question),
        h(
          "ul",
          { class: "rules" },
          h("li", {}, `${told} The colours show what counted for a model: violet little, yellow much.`),
          h("li", {}, "Which models they are is not shown, and they change sides at random."),
          h("li", {}, "Answer with the keys ", h("kbd", {}, "1"), " to ", h("kbd", {}, "5"), " or by clicking. There is no right or wrong, and the last answer can be undone."),
        ),
        form,
      ),
    );
    field.focus();
  }

  /** Go on where a participant is. again: the code was in the address. */
  async enter(code, again = false) {
    try {
      const place = await api.studyPlace(code);
      this.remember(place.participant);
      if (again && place.done === 0) this.welcome(place.participant);
      else this.go(place);
    } catch (error) {
      if (!(error instanceof api.Refused)) throw error;
      this.welcome(code, error);
    }
  }

  go(place) {
    this.place = place;
    this.showProgress();
    if (place.next === null) this.thanks();
    else this.showPair();
  }

  showProgress() {
    const { done, total, participant } = this.place;
    const bar = h("div", { class: "bar-like", role: "progressbar", "aria-label": "Answered", "aria-valuemin": "0", "aria-valuemax": String(total), "aria-valuenow": String(done) }, h("i", {}));
    bar.style.setProperty("--share", String(done / total));
    one(".progress").replaceChildren(bar, h("span", { class: "hint" }, `${done} of ${total}`));
    one(".corner").replaceChildren(h("span", { class: "hint who" }, participant), button("Not you?", { kind: "link", onclick: () => this.next() }));
  }

  /** Somebody else takes part. */
  next() {
    this.remember("");
    this.welcome();
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
    this.trouble = h("div", { class: "trouble" });
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

  async showPair() {
    const { next, done, total } = this.place;
    const turn = (this.shown += 1);
    this.setOpen(false);
    this.trouble.replaceChildren();
    this.prompt.replaceChildren(...asked(next));
    this.question.textContent = this.facts.question;
    this.undoer.disabled = this.place.last === null;
    this.choices.forEach((choice) => choice.classList.remove("chosen"));
    this.views.style.setProperty("--ratio", String(next.width / next.height));
    this.stages.forEach((stage, i) => stage.show({ name: i === 0 ? "Left explanation" : "Right explanation", url: next.photo, width: next.width, height: next.height }));
    this.setBare(false);
    if (!this.pair.isConnected) this.show(this.pair);
    try {
      await Promise.all(this.stages.map((stage) => stage.image.decode()));
    } catch (error) {
      if (error.name !== "EncodingError") throw error;
      if (turn === this.shown) this.trouble.replaceChildren(problem(new api.Refused("The photo does not come."), () => this.showPair()));
      return;
    }
    const since = performance.now();
    await pause(LULL_MS);
    if (turn !== this.shown) return;
    this.since = since;
    this.setOpen(true);
    announce(`Pair ${done + 1} of ${total}: ${next.prompt}`);
  }

  setOpen(open) {
    this.open = open;
    this.scale.dataset.open = String(open);
  }

  /** The photos without the colours. */
  setBare(bare) {
    const { left, right } = this.place.next;
    this.stages.forEach((stage, i) => stage.showHeat(bare ? null : [left, right][i]));
    this.bare.setAttribute("aria-pressed", String(bare));
  }

  async answer(rating) {
    if (!this.open) return;
    this.setOpen(false);
    const seconds = Math.round(performance.now() - this.since) / 1000;
    this.choices[rating + 2].classList.add("chosen");
    const { participant, study, next } = this.place;
    await this.send(() => api.rate({ participant, study, item: next.item, rating, seconds }));
  }

  async undo() {
    const { participant, last, next } = this.place ?? {};
    if (!last || (next !== null && !this.open)) return;
    this.setOpen(false);
    await this.send(() => api.undoRating(participant, last));
  }

  /** Ask the server for something that moves the participant. What is sent twice counts once. */
  async send(ask) {
    this.trouble.replaceChildren();
    try {
      this.go(await ask());
    } catch (error) {
      if (!(error instanceof api.Refused)) throw error;
      // Another window was quicker, or the study was changed: see how things stand.
      const again = error.status === 409 ? () => this.start() : () => this.send(ask);
      this.trouble.replaceChildren(problem(error, again));
      if (!this.trouble.isConnected) this.main.append(this.trouble);
    }
  }

  thanks() {
    this.setOpen(false);
    this.shown += 1;
    this.trouble.replaceChildren();
    const heading = h("h1", { tabindex: "-1" }, "Thank you");
    this.show(
      h(
        "div",
        { class: "sheet-like done" },
        heading,
        h("p", { class: "lead" }, this.place.total === 1 ? "Your answer is kept." : `All ${this.place.total} answers are kept.`),
        h("p", {}, "You can close this page now."),
        h("div", { class: "row" }, button("Next participant", { kind: "primary", onclick: () => this.next() }), button("Undo last answer", { icon: "undo", kind: "quiet", onclick: () => this.undo() })),
      ),
    );
    heading.focus();
  }

  key(event) {
    if (event.repeat || event.altKey || isTyping(event)) return;
    const plain = !event.ctrlKey && !event.metaKey;
    const rating = plain ? "12345".indexOf(event.key) : -1;
    if (event.key.length === 1 && rating >= 0) this.answer(SCALE[rating][0]);
    else if ((plain && event.key === "Backspace") || (!plain && event.key === "z")) this.undo();
    else if (plain && event.key.toLowerCase() === "h" && this.pair.isConnected) this.setBare(this.bare.getAttribute("aria-pressed") === "false");
    else return;
    event.preventDefault();
  }
}

new Study().start().finally(() => { document.documentElement.dataset.started = ""; });
