/** A recording that is saved: its words get their times, the transcript can still be corrected. */

import * as api from "./api.js";
import { button, h } from "./dom.js";
import { exportMenu } from "./exports.js";
import { canBeTimed, LanguageField } from "./languages.js";
import { doubtful } from "./narrative.js";
import { busy, problem } from "./notices.js";

const TIMED_BY = { audio: "Word times come from the voice.", keys: "Word times come from the key presses.", even: "Word times are spread evenly.", hand: "Word times were set by hand." };

/** Where word times come from, and how many should be looked at. */
function told({ timed_by, words }) {
  const count = words.filter(doubtful).length;
  return [TIMED_BY[timed_by], count && `${count === 1 ? "One is doubtful and has" : `${count} are doubtful and have`} a dotted line.`].filter(Boolean).join(" ");
}

export class Saved {
  /** more: buttons that lead on from here. kept: where the narrative is. */
  constructor(player, saved, more, kept = api) {
    Object.assign(this, { player, saved, kept });
    this.audio = saved.audio ? kept.audioAddress(saved.id) : "";
    this.alignButton = button("Align words", { kind: "quiet", onclick: () => this.alignAnew() });
    this.aside = h("div", {});
    this.text = h("textarea", { id: "transcript", rows: 4, spellcheck: "true" });
    this.text.value = saved.text;
    this.language = new LanguageField("language", saved.language, [this.text], saved.audio, () => {});
    player.load(saved, { audio: this.audio });
    this.parts = [
      h("h2", {}, "Saved"), player.text, this.aside,
      h("div", { class: "fields" }, h("label", { for: "transcript" }, "Transcript"), this.text, this.language.element),
      h("div", { class: "row" }, more, this.alignButton, kept === api ? exportMenu(() => this.saved.id) : null),
    ];
  }

  async begin() {
    if (this.saved.text.trim() && canBeTimed(this.saved)) await this.align();
    else if (this.saved.text.trim()) this.aside.replaceChildren(...(this.saved.audio ? [] : [h("p", { class: "hint" }, "Nothing tells when the words were said: there is no voice, and nothing was typed.")])); // Of a voice, the language tells.
    else this.aside.replaceChildren(h("p", { class: "hint" }, "Without a transcript there are no words to time yet. Write it below, and press Align words."));
  }

  /** Words and voice, after the transcript was corrected. */
  async alignAnew() {
    try {
      const now = { text: this.text.value, language: this.language.tag || null };
      if (now.text !== this.saved.text || now.language !== this.saved.language) this.saved = await this.kept.putNarrative({ ...this.saved, ...now, words: [], timed_by: null });
    } catch (error) {
      if (!(error instanceof api.Refused)) throw error;
      this.aside.replaceChildren(problem(error, () => this.alignAnew()));
      return;
    }
    await this.align();
  }

  async align() {
    this.alignButton.disabled = true;
    this.aside.replaceChildren(busy("Lining words up with the recording …"));
    try {
      this.saved = await this.kept.align(this.saved.id);
      this.player.load(this.saved, { audio: this.audio });
      this.aside.replaceChildren(h("p", { class: "hint" }, told(this.saved)));
    } catch (error) {
      if (!(error instanceof api.Refused)) throw error;
      this.aside.replaceChildren(problem(error));
    }
    this.alignButton.disabled = false;
  }
}
