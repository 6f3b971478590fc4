/** What is said aloud, by the browser's own voice, and written where a screen reader reads it. */

import { remember, remembered } from "./settings.js";

export const RATES = [0.75, 1, 1.5, 2, 3];

export class Voice {
  /** region: the live region. blocked: called when the browser does not let the page speak yet. */
  constructor(region, blocked) {
    this.region = region;
    this.blocked = blocked;
    this.able = "speechSynthesis" in window;
    this.on = remembered("voice", "on") === "on";
    this.rate = Number(remembered("voice-rate", "1"));
  }

  set(on) {
    this.on = on;
    remember("voice", on ? "on" : "off");
    if (!on) this.hush();
  }

  setRate(rate) {
    this.rate = rate;
    remember("voice-rate", String(rate));
  }

  /** Say something at once. after: when what is being said has ended, instead of cutting it off. */
  say(text, { after = false } = {}) {
    if (this.on && this.able) {
      if (!after) this.hush();
      const words = new SpeechSynthesisUtterance(text);
      Object.assign(words, { lang: "en", rate: this.rate, onerror: ({ error }) => { if (error === "not-allowed") this.blocked(); } });
      speechSynthesis.speak(words);
    }
    // A live region whose text stays the same is not read again.
    this.region.textContent = text === this.region.textContent ? `${text}\u00a0` : text;
  }

  hush() {
    if (this.able && (speechSynthesis.speaking || speechSynthesis.pending)) speechSynthesis.cancel();
  }
}
