/** What was said, written down by a speech recogniser, to be corrected. Fetched when there is a recording with sound. */

import * as api from "./api.js";
import { button, h, sentence } from "./dom.js";
import { nameOf } from "./languages.js";
import { announce, problem, toast } from "./notices.js";
import { remember, remembered } from "./settings.js";

/** Stop a job as soon as it has begun; where none began, there is nothing to stop. */
async function stop(begun) {
  try {
    await api.reply("DELETE", api.at("jobs", (await begun).job), { keepalive: true });
  } catch (error) {
    if (!(error instanceof api.Refused)) throw error;
  }
}

/** What is said in a WAV file → {text, language}. tell: gets {done, total} in seconds. Leaving it stops it. */
async function transcription(wav, language, tell, signal) {
  // Without the signal: only the answer says which job there is to stop.
  const begun = api.asked("POST", api.at("transcriptions") + (language ? `?language=${encodeURIComponent(language)}` : ""), { body: wav, type: "audio/wav" });
  const left = new Promise((_, reject) => { signal.addEventListener("abort", () => { stop(begun); reject(signal.reason); }); });
  const { job } = await Promise.race([begun, left]);
  const response = await api.reply("GET", api.at("jobs", job, "events"), { signal });
  for await (const [name, data] of api.events(response.body)) {
    if (name !== "end") tell(data);
    else if (data.state === "done") return data.result;
    else throw new api.Refused(data.error ?? "The transcription was stopped.");
  }
  throw new api.Refused("The transcription broke off.", { hint: "Is `saywhere studio` still running? Try again." });
}

export class Transcribe {
  /** facts: of the status. sound: gives the WAV file. text: the field; language: the choice of its own; written: called when either has changed. */
  constructor(facts, sound, text, language, written) {
    Object.assign(this, { facts, sound, text, language, written });
    this.element = h("section", { class: "transcribe", "aria-label": "Automatic transcription" });
    this.running = null;
    this.rest();
  }

  rest(...more) {
    if (!this.facts.has) {
      this.element.replaceChildren(h("p", { class: "hint" }, sentence(this.facts.why), " ", h("code", {}, this.facts.how)));
      return;
    }
    const always = h("input", { type: "checkbox", checked: remembered("transcribe", "") === "always", onchange: () => remember("transcribe", always.checked ? "always" : "") });
    this.start = button("Transcribe", { kind: "quiet", icon: "mic", onclick: () => this.begin() });
    this.note = h("p", { class: "hint", role: "status" });
    this.element.replaceChildren(h("div", { class: "row" }, this.start), h("label", { class: "always" }, always, " Always, after each recording"), this.note, ...more);
  }

  /** After a recording: at once, if that is wanted and nothing was typed. */
  offer() {
    if (this.facts.has && remembered("transcribe", "") === "always" && !this.text.value.trim()) this.begin();
  }

  /** In the language that was chosen; where none was, it is found out. */
  async begin() {
    if (this.running) return;
    const running = this.running = new AbortController();
    const bar = h("progress", { "aria-label": "Transcribing" }), stop = button("Cancel transcription", { kind: "quiet small", onclick: () => this.cancel() });
    const doing = h("p", { class: "busy" }, "Sending the recording …");
    this.element.replaceChildren(doing, bar, h("div", { class: "row" }, stop));
    announce("Transcribing");
    const tell = ({ state, done, total }) => {
      doing.textContent = state === "waiting" ? "Waiting for another transcription …" : `Listening, with ${this.facts.name} …`;
      if (total) Object.assign(bar, { max: total, value: done });
    };
    try {
      const said = await transcription(this.sound(), this.language.tag, tell, running.signal);
      this.running = null;
      this.rest();
      this.put(said);
    } catch (error) {
      if (this.running === running) this.running = null;
      if (error.name === "AbortError") { this.rest(); return; }
      if (!(error instanceof api.Refused)) throw error;
      this.rest(problem(error));
    }
  }

  /** The text takes the place of what is there, with a way back. */
  put({ text, language }) {
    const before = this.text.value;
    if (text) this.language.set(language);
    this.write(text);
    if (before.trim() && before !== text) toast("The transcript was replaced.", { action: ["Undo", () => this.write(before)] });
    this.note.textContent = !text ? "No speech was understood. Type what was said."
      : `Heard ${nameOf(language)}. Correct what was misheard.`;
    this.text.focus();
  }

  write(text) {
    this.text.value = text;
    this.written();
  }

  cancel() {
    this.running?.abort();
    this.running = null;
  }
}
