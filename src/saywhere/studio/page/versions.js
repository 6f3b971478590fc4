/** The earlier versions of a narrative: listed, seen as they were, and made the newest again. */

import { asked, at, Refused } from "./api.js";
import { button, counted, h } from "./dom.js";
import { nameOf, spoken } from "./languages.js";
import { busy, problem, toast } from "./notices.js";

const BY = { audio: "times from the voice", keys: "times from the keys", even: "times spread evenly", hand: "times set by hand" };

/** see(narrative): show a version. restored(narrative): it is the newest now. place: of the API, where it is kept. */
export function earlierVersions(narrative, see, restored, place = "narratives") {
  const list = h("ol", { class: "list" });
  const state = h("div", {});
  const element = h("details", { class: "why versions" }, h("summary", {}, `Earlier versions: ${narrative.version - 1}`), state, list);

  const tried = async (ask) => {
    try {
      return await ask();
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      state.replaceChildren(problem(error));
      return null;
    }
  };
  const show = async (number) => {
    const found = await tried(() => asked("GET", at(place, narrative.id, "versions", String(number))));
    if (found) see(found);
  };
  const restore = async (number) => {
    const found = await tried(() => asked("POST", at(place, narrative.id, "versions", String(number), "restore"), { json: {} }));
    if (!found) return;
    toast(`Version ${number} is the newest again.`, { hint: "What was there before is among the earlier versions." });
    restored(found);
  };
  const item = (one) => h("li", {},
    h("p", {}, h("strong", {}, `Version ${one.version}`),
      h("small", {}, [new Date(one.changed).toLocaleString([], { dateStyle: "medium", timeStyle: "short" }), counted(one.words, "timed word"), counted(one.strokes, "stroke"), BY[one.timed_by], one.language && nameOf(one.language)].filter(Boolean).join(" · ")),
      spoken(h("span", { class: "excerpt", dir: "auto" }, one.text || "without words"), one.language)),
    h("div", { class: "row" },
      button("See", { kind: "quiet small", label: `See version ${one.version}`, onclick: () => show(one.version) }),
      button("Restore", { kind: "quiet small", label: `Restore version ${one.version}`, onclick: () => restore(one.version) })));

  element.addEventListener("toggle", async () => {
    if (!element.open || list.children.length) return;
    state.replaceChildren(busy("Fetching versions …"));
    const found = await tried(() => asked("GET", at(place, narrative.id, "versions")));
    if (!found) return;
    state.replaceChildren();
    list.replaceChildren(...found.versions.slice(1).map(item));
  });
  return element;
}
