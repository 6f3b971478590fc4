/** A collection of captions: one photo, one question, a few words, and how sure the annotator is. */

import { asked, at, Refused } from "./api.js";
import { button, counted, h } from "./dom.js";
import { announce, problem } from "./notices.js";
import { remember, remembered } from "./settings.js";
import { Visit } from "./visit.js";

const SURE = ["a guess", "unsure", "fairly", "sure", "certain"];
const DRAFT = "collect-draft";
const post = (what, json) => asked("POST", at("collect", what), { json });

class Collect extends Visit {
  constructor() {
    super();
    this.back = null; // The answer that is being corrected.
    this.buildTask();
  }

  facts() { return asked("GET", at("collect")); }

  /** {annotator, done, open, waiting, last, next}, as all that follows. */
  place(code) { return post("turn", { annotator: code }); }

  person({ annotator }) { return annotator; }

  totals({ done, open }) { return [done, done + open]; }

  /** What is asked now. */
  get task() { return this.back ?? this.at?.next ?? null; }

  nothing() {
    return h(
      "div",
      { class: "sheet-like" },
      h("h1", {}, "No collection is open here"),
      h("p", { class: "lead" }, "In a collection, people say where photos were taken, what happens in them, or why."),
      h("p", {}, "To open one, run this in a terminal on this computer:"),
      h("pre", { tabindex: "0" }, "saywhere collect serve DIR --photos PHOTOS"),
    );
  }

  about() {
    const { photos, levels } = this.known;
    const told = levels.length === 1 ? "one question" : `${levels.length} questions`;
    return h(
      "ul",
      { class: "rules" },
      h("li", {}, `${counted(photos, "photo")}, one at a time, and ${told} about each. Stop whenever you like.`),
      h("li", {}, "Answer in a few words, with what you know of typical scenes. There is no right or wrong."),
      h("li", {}, "Then say how sure you are, from ", h("kbd", {}, "1"), ", a guess, to ", h("kbd", {}, "5"), ", certain. ", h("kbd", {}, "Enter"), " goes on; no mouse is needed."),
      h("li", {}, "Every answer is kept at once, and the last one can be corrected."),
    );
  }

  buildTask() {
    this.image = h("img", { alt: "The photo that the question is about", draggable: "false" });
    this.question = h("h1", { class: "asks", id: "asks" });
    this.advice = h("p", { class: "hint", id: "advice" });
    this.field = h("textarea", { id: "said", rows: "2", enterkeyhint: "next", autocapitalize: "off", "aria-labelledby": "asks", "aria-describedby": "advice", oninput: () => this.note(), onkeydown: (event) => this.fieldKey(event) });
    this.choices = SURE.map((word, i) => h("input", { type: "radio", name: "sure", value: String(i + 1), "aria-label": `${i + 1}, ${word}`, "aria-keyshortcuts": String(i + 1), onchange: () => this.note() }));
    this.backer = button("Correct last answer", { icon: "undo", kind: "quiet small", "aria-keyshortcuts": "Backspace", onclick: () => this.goBack() });
    this.backer.append(h("kbd", { "aria-hidden": "true" }, "⌫"));
    this.cancel = button("Leave it as it was", { kind: "quiet small", "aria-keyshortcuts": "Escape", onclick: () => this.goOn() });
    this.sender = h("button", { type: "submit", class: "primary" }, h("span", {}), h("kbd", { "aria-hidden": "true" }, "Enter"));
    this.form = h(
      "form",
      { class: "ask", "aria-labelledby": "asks", onsubmit: (event) => { event.preventDefault(); this.submit(); } },
      this.question, this.advice, this.field,
      h("fieldset", { class: "sure" }, h("legend", {}, "How sure are you?"),
        this.choices.map((choice, i) => h("label", { class: "step" }, choice, h("b", { "aria-hidden": "true" }, String(i + 1)), h("small", { "aria-hidden": "true" }, SURE[i])))),
      this.trouble,
      h("div", { class: "goes" }, this.sender, this.backer, this.cancel),
    );
    this.sheet = h("div", { class: "task" }, h("div", { class: "frame" }, this.image), this.form);
  }

  async showNext() {
    this.back = null;
    await this.showTask();
  }

  async showTask() {
    const { task, back } = this;
    this.setOpen(false);
    this.trouble.replaceChildren();
    this.question.textContent = task.question;
    this.advice.textContent = task.advice;
    this.field.maxLength = this.known.most_text;
    this.fill(back ?? this.draft());
    this.sender.firstChild.textContent = back ? "Keep the correction" : "Next";
    this.backer.hidden = Boolean(back) || this.at.last === null;
    this.cancel.hidden = !back;
    this.sheet.style.setProperty("--ratio", String(task.width / task.height));
    this.sheet.classList.add("loading");
    Object.assign(this.image, { src: task.url, width: task.width, height: task.height });
    if (!this.sheet.isConnected) this.show(this.sheet);
    const skip = back ? [] : [button("Go on without it", { kind: "quiet", onclick: () => this.skip() })];
    if (!(await this.shownAll([this.image], () => this.showTask(), ...skip))) return;
    this.sheet.classList.remove("loading");
    this.setOpen(true);
    // On a phone the keyboard would cover the photo before anybody has seen it.
    if (matchMedia("(hover: hover), (pointer: fine)").matches) this.field.focus();
    announce(back ? `Your last answer: ${task.question}` : `Photo ${this.at.done + 1}: ${task.question}`);
  }

  setOpen(open) {
    this.open = open;
    this.form.dataset.open = String(open);
  }

  fill({ text = "", confidence = 0 }) {
    this.field.value = text;
    this.choices.forEach((choice, i) => { choice.checked = i + 1 === confidence; });
  }

  get confidence() { return this.choices.findIndex((choice) => choice.checked) + 1; }

  /** What was typed and not sent survives a reload. */
  note() {
    if (this.back || !this.at?.next) return;
    const { photo, level } = this.at.next;
    remember(DRAFT, JSON.stringify({ annotator: this.at.annotator, photo, level, text: this.field.value, confidence: this.confidence }));
  }

  draft() {
    const { photo, level } = this.at.next;
    let kept = {};
    try {
      kept = JSON.parse(remembered(DRAFT, "{}"));
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
    }
    return kept.annotator === this.at.annotator && kept.photo === photo && kept.level === level ? kept : {};
  }

  /** Enter: from the words to the scale, from the scale to the next photo. */
  submit() {
    if (!this.open) return;
    const text = this.field.value.trim(), { confidence, seconds } = this;
    if (!text) { this.wants("Write a few words first.", this.field); return; }
    if (!confidence) { this.wants("", this.choices[0]); announce("How sure are you? 1 to 5"); return; }
    this.setOpen(false);
    const { photo, level } = this.task;
    const answer = { annotator: this.at.annotator, photo, level, text, confidence, seconds, correcting: this.back !== null };
    this.send(async () => {
      const turn = await post("answers", answer);
      if (!answer.correcting) remember(DRAFT, "{}");
      return turn;
    });
  }

  wants(message, element) {
    this.trouble.replaceChildren(...(message ? [problem(new Refused(message))] : []));
    element.focus();
  }

  refused(error, ask) {
    // What the server does not take can be written otherwise.
    if (error.status === 422) { this.trouble.replaceChildren(problem(error)); this.setOpen(true); this.field.focus(); return; }
    super.refused(error, ask);
  }

  skip() {
    const { photo, level } = this.task;
    this.send(() => post("skip", { annotator: this.at.annotator, photo, level }));
  }

  goBack() {
    const { last, next } = this.at ?? {};
    if (!last || this.back || (next !== null && !this.open)) return;
    this.back = last;
    this.showTask();
  }

  goOn() {
    if (this.back) this.go(this.at);
  }

  thanks() {
    this.back = null;
    const { done, waiting, last } = this.at;
    const heading = h("h1", { tabindex: "-1" }, waiting ? "Nothing left for now" : "Thank you");
    this.show(
      h(
        "div",
        { class: "sheet-like done" },
        heading,
        h("p", { class: "lead" }, done ? (done === 1 ? "Your answer is kept." : `All ${done} answers are kept.`) : "All photos have their answers."),
        h("p", {}, waiting ? "Others are at work on the last photos. Those that they leave open come back after a while." : "You can close this page now."),
        h("div", { class: "row" },
          waiting ? button("Look again", { kind: "primary", onclick: () => this.enter(this.at.annotator) }) : null,
          button("Next annotator", { kind: waiting ? "quiet" : "primary", onclick: () => this.next() }),
          last ? button("Correct last answer", { icon: "undo", kind: "quiet", onclick: () => this.goBack() }) : null),
      ),
    );
    heading.focus();
  }

  fieldKey(event) {
    if (event.isComposing) return; // Enter ends a word of an input method.
    if (event.key === "Enter" && !event.shiftKey) this.submit();
    else if (event.key === "ArrowUp" && !this.field.value) this.goBack();
    else if (event.key === "Escape") this.goOn();
    else return;
    event.preventDefault();
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || !this.at) return false;
    const sure = event.key.length === 1 ? "12345".indexOf(event.key) : -1;
    if (sure >= 0 && this.open) {
      this.choices[sure].checked = true;
      this.choices[sure].focus();
      this.note();
    } else if (event.key === "Backspace") this.goBack();
    else if (event.key === "Escape" && this.back) this.goOn();
    else return false;
    return true;
  }
}

new Collect().start().finally(() => { document.documentElement.dataset.started = ""; });
