/** What the pages for annotators and reviewers share: the way in by code, and the stage in the middle. */

import { asked, at, Refused, reply } from "./api.js";
import { h, isTyping } from "./dom.js";
import { remember, remembered } from "./settings.js";
import { Stage } from "./stage.js";
import { Visit } from "./visit.js";

export const people = (method, ...parts) => asked(method, at("people", ...parts));
export const STATES = { open: "to be told", returned: "returned", waiting: "waits for review", accepted: "accepted", rejected: "rejected", skipped: "skipped" };

/** They add: role, showPerson(), which fills `this.shelf` and `this.panel`, and those of Visit. */
export class PeopleVisit extends Visit {
  constructor() {
    super();
    this.shelf = h("section", { class: "shelf" });
    this.panel = h("section", { class: "panel", id: "panel", tabindex: "-1", "aria-label": "Controls" });
    this.dock = h("div", { class: "dock" });
    const canvas = h("div", { class: "stage" });
    this.studio = [this.shelf, h("section", { class: "easel", "aria-label": "Photo" }, canvas, this.dock), this.panel];
    this.stage = new Stage(canvas);
    addEventListener("keydown", (event) => {
      if (!this.working || event.defaultPrevented || (isTyping(event) && event.key !== "Escape" && !this.whileTyping(event))) return;
      if (this.workKey(event)) event.preventDefault();
    });
  }

  key() { return false; }

  whileTyping() { return false; }

  /** Come in; Refused for a code of another role. */
  async come(code) {
    const person = await asked("POST", at("people", "enter"), { json: { code } });
    if (person.role === this.role) return person;
    const elsewhere = person.role === "reviewer" ? "/review" : "/annotate";
    throw new Refused(`This code is a ${person.role}'s.`.replace("a a", "an a"), { hint: `Its page is at ${elsewhere}.` });
  }

  /** Who was at work in this browser goes on at once after a reload; a link that was handed out shows the sheet first. */
  enter(code, again = false) {
    return super.enter(code, again && remembered("at-work", "") !== code);
  }

  /** The sheet with the code goes; the stage comes. */
  showStudio() {
    remember("at-work", this.person(this.at));
    this.working = true;
    document.body.classList.remove("visit");
    this.main.className = "studio";
    if (!this.studio[0].isConnected) this.main.replaceChildren(h("h1", { class: "unseen" }, this.known.title), ...this.studio);
  }

  show(...children) {
    this.working = false;
    document.body.classList.add("visit");
    this.main.className = "";
    super.show(...children);
  }

  leave() {
    super.leave();
    this.working = false;
  }

  next() {
    reply("POST", at("people", "leave"));
    super.next();
  }

  nothing() { return h("p", {}); }
}
