/** What the Studio exchanges with other programs: files taken in, and everything as one zip. */

import { asked, at, Refused } from "./api.js";
import { button, counted, h, icon } from "./dom.js";
import { announce, busy, problem } from "./notices.js";

const STEP_MS = 300;
const ENDED = ["done", "failed", "cancelled"];
const NAMED = 8; // How many bad records are shown before "more".

export class Exchange {
  /** changed: called when narratives came in. */
  constructor(app, changed) {
    this.app = app;
    this.changed = changed;
    this.input = h("input", { type: "file", accept: ".json,.jsonl,.jsonld,.gz", multiple: true, onchange: () => { this.take([...this.input.files]); this.input.value = ""; } });
    this.state = h("div", { role: "status" });
    this.start = button("Import …", { kind: "quiet", icon: "add", onclick: () => this.input.click() });
    this.element = h("section", { class: "exchange", "aria-label": "Exchange" },
      h("h3", {}, "Exchange"),
      h("p", { class: "hint" }, "Takes Localized Narratives, COCO and Web Annotation, and gives everything as one zip."),
      h("div", { class: "row" }, this.start, h("a", { class: "button quiet", href: at("export"), download: "saywhere-studio.zip" }, icon("down"), h("span", {}, "Export everything"))), this.state);
  }

  async take(files) {
    this.start.disabled = true;
    for (const file of files) {
      try {
        await this.takeOne(file);
      } catch (error) {
        if (!(error instanceof Refused)) throw error;
        this.state.replaceChildren(problem({ message: `${file.name}: ${error.message}`, hint: error.hint }));
      }
    }
    this.start.disabled = false;
    this.changed();
  }

  async takeOne(file) {
    const most = this.app.status.limits.import_bytes;
    if (most && file.size > most) throw new Refused("it is too large", { hint: `Files may have ${Math.floor(most / 1e6)} MB; \`saywhere studio import\` takes larger ones.` });
    this.state.replaceChildren(busy(`Sending ${file.name} …`));
    const { job } = await asked("POST", at("imports"), { body: file, type: "application/octet-stream", headers: { "X-File-Name": encodeURIComponent(file.name) } });
    for (;;) {
      const now = await asked("GET", at("jobs", job));
      if (ENDED.includes(now.state)) { this.tell(file.name, now); return; }
      this.state.replaceChildren(busy(now.state === "waiting" ? "Waiting for another import …" : `Taking ${file.name}: ${counted(now.done, "record")} …`), button("Stop", { kind: "quiet small", onclick: () => asked("DELETE", at("jobs", job)) }));
      await new Promise((resolve) => setTimeout(resolve, STEP_MS));
    }
  }

  tell(name, { state, result, error }) {
    if (state !== "done") { this.state.replaceChildren(problem({ message: error ?? `${name} was not taken.`, hint: state === "cancelled" ? "What came before the stop is kept." : "" })); return; }
    const parts = [counted(result.new, "narrative") + " taken", result.known ? `${result.known} here already` : "", result.silent ? `${result.silent} without their recording` : "", result.bad ? `${result.bad} passed over` : ""].filter(Boolean);
    const said = `${name}: ${parts.join(", ")}.`;
    announce(said);
    const more = result.bad - Math.min(NAMED, result.named.length);
    this.state.replaceChildren(h("p", {}, said), ...(result.bad ? [h("ul", { class: "bad" }, result.named.slice(0, NAMED).map((one) => h("li", {}, one)), more > 0 ? h("li", {}, `and ${more} more`) : null)] : []));
  }
}
