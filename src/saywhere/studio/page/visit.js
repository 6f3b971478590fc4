/** Somebody who takes part in a study or a collection: a code, a place to go on from, progress, and answers that are sent until they are kept. */

import { Refused } from "./api.js";
import { button, h, isTyping } from "./dom.js";
import { busy, problem } from "./notices.js";

const LULL_MS = 300; // A second press of the same key must not answer what nobody has seen yet.
const one = (selector) => document.querySelector(selector);

/**
 * What the pages share. They add: facts() and place(code), which ask the server; person(place), whose place it is;
 * totals(place) → [done, total]; about() for the welcome; nothing() for a server without any; showNext(), thanks(),
 * key(event).
 */
export class Visit {
  constructor() {
    this.main = one("main");
    this.known = null; // The facts.
    this.at = null; // The place.
    this.shown = 0; // Counts what was shown, so that a photo that comes late does not open the wrong one.
    this.open = false; // Whether an answer is taken now.
    this.trouble = h("div", { class: "trouble" });
    document.addEventListener("keydown", (event) => {
      if (!event.repeat && !event.altKey && !isTyping(event) && this.key(event)) event.preventDefault();
    });
    addEventListener("hashchange", () => this.start());
  }

  async start() {
    this.leave();
    this.main.replaceChildren(h("div", { class: "sheet-like" }, busy("One moment")));
    try {
      this.known = await this.facts();
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      this.show(/^no_/.test(error.code) && error.status === 404 ? this.nothing() : h("div", { class: "sheet-like" }, problem(error, () => this.start())));
      return;
    }
    document.title = this.known.title;
    const code = this.code();
    if (code) await this.enter(code, true);
    else this.welcome();
  }

  /** The code is in the address: it survives a reload, and a lab can hand out links. */
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
    this.at = null;
    this.shown += 1;
    one(".progress").replaceChildren();
    one(".corner").replaceChildren();
  }

  welcome(typed = "", error = null) {
    this.leave();
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
    this.show(h("div", { class: "sheet-like" }, h("h1", {}, this.known.title), this.about(), form));
    field.focus();
  }

  /** Go on where somebody is. again: the code was in the address. */
  async enter(code, again = false) {
    try {
      const place = await this.place(code);
      this.remember(this.person(place));
      if (again && this.totals(place)[0] === 0) this.welcome(this.person(place));
      else this.go(place);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      this.welcome(code, error);
    }
  }

  go(place) {
    this.at = place;
    this.showProgress();
    if (place.next === null) this.end();
    else this.showNext();
  }

  showProgress() {
    const [done, total] = this.totals(this.at);
    const bar = h("div", { class: "bar-like", role: "progressbar", "aria-label": "Answered", "aria-valuemin": "0", "aria-valuemax": String(total), "aria-valuenow": String(done) }, h("i", {}));
    bar.style.setProperty("--share", String(total ? done / total : 1));
    one(".progress").replaceChildren(bar, h("span", { class: "hint" }, `${done} of ${total}`));
    one(".corner").replaceChildren(h("span", { class: "hint who" }, this.person(this.at)), button("Not you?", { kind: "link", onclick: () => this.next() }));
  }

  /** Somebody else takes part. */
  next() {
    this.remember("");
    this.welcome();
  }

  end() {
    this.open = false;
    this.shown += 1;
    this.trouble.replaceChildren();
    this.thanks();
  }

  /** Wait until pictures are there, and for as long as a doubled key takes. Whether they are still wanted. */
  async shownAll(images, again, ...buttons) {
    const turn = (this.shown += 1);
    try {
      await Promise.all(images.map((image) => image.decode()));
    } catch (error) {
      if (error.name !== "EncodingError") throw error;
      if (turn === this.shown) this.trouble.replaceChildren(problem(new Refused("The photo does not come."), again), ...buttons);
      return false;
    }
    const since = performance.now();
    await new Promise((done) => setTimeout(done, LULL_MS));
    if (turn !== this.shown) return false;
    this.since = since;
    return true;
  }

  /** Seconds since the pictures were there. */
  get seconds() {
    return Math.round(performance.now() - this.since) / 1000;
  }

  /** Ask the server for something that moves the participant. What is sent twice counts once. */
  async send(ask) {
    this.trouble.replaceChildren();
    try {
      this.go(await ask());
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      this.refused(error, ask);
    }
  }

  refused(error, ask) {
    // Another window was quicker, or something was changed: see how things stand.
    const again = error.status === 409 ? () => this.start() : () => this.send(ask);
    this.trouble.replaceChildren(problem(error, again));
    if (!this.trouble.isConnected) this.main.append(this.trouble);
  }
}
