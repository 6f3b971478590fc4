/** Languages: which one a text is in, what its words get, and how that is said to browsers. */

import { h } from "./dom.js";
import { remembered } from "./settings.js";

/** Those that the speech recogniser knows, by its codes. */
const CODES = "af am ar as az ba be bg bn bo br bs ca cs cy da de el en es et eu fa fi fo fr gl gu ha haw he hi hr ht hu hy id is it ja jw ka kk km kn ko la lb ln lo lt lv mg mi mk ml mn mr ms mt my ne nl nn no oc pa pl ps pt ro ru sa sd si sk sl sn so sq sr su sv sw ta te tg th tk tl tr tt uk ur uz vi yi yo yue zh".split(" ");

/** Languages whose words are found in a recording. The same list is ALIGNED_LANGUAGES in language/transcript.py. */
export const ALIGNED = ["en"];

/** "German", of a tag such as "de". */
export const nameOf = (tag) => new Intl.DisplayNames(["en"], { type: "language", fallback: "code" }).of(tag);
export const isAligned = (tag) => ALIGNED.includes(tag.split("-")[0].toLowerCase());
/** Whether something tells when the words of a narrative were said. What nobody noted the language of is tried. */
export const canBeTimed = ({ audio, keys, language }) => (audio && isAligned(language || "en")) || keys.length > 0;
/** The language of what is recorded next. */
export const usual = () => remembered("language", "");

/** Spell checkers and screen readers go by it. "" says that nobody knows, so that the page's own does not count. */
export function spoken(element, tag) {
  element.lang = tag || "";
  return element;
}

/** What words in a language get. voiced: whether there is a recording; null where that is settled. */
export function whatWordsGet(tag, voiced) {
  if (voiced === null) return "";
  if (!voiced) return "Without a voice, words get their times from the keys, in any language.";
  if (!tag) return "Words are looked for in the voice as if it spoke English; those of another language get no times from it.";
  if (isAligned(tag)) return "Words get their times from the voice.";
  return `Words in ${nameOf(tag)} get no times from the voice: only ${ALIGNED.map(nameOf).join(", ")} is aligned. Keys that were typed meanwhile tell them, or Edit, where they are spread and dragged.`;
}

/** A choice of the language that some fields of text are in. */
export class LanguageField {
  /** id: of the choice. tag: "" if nobody knows. fields: those of the text. voiced: as above. changed: called when somebody chose. */
  constructor(id, tag, fields, voiced, changed) {
    Object.assign(this, { fields, voiced });
    this.choice = h("select", { id, "aria-describedby": `${id}-gets`, onchange: () => { this.tell(); changed(); } },
      h("option", { value: "" }, "Not known"), CODES.map((code) => [nameOf(code), code]).sort().map(([name, code]) => h("option", { value: code }, name)));
    this.gets = h("p", { class: "hint", id: `${id}-gets`, role: "status" });
    this.element = h("div", { class: "language" }, h("label", { for: id }, "Language spoken"), this.choice, this.gets);
    this.set(tag);
  }

  get tag() { return this.choice.value; }

  /** Files of other programs have languages that are not in the list. */
  set(tag) {
    const known = tag ?? "";
    if (known && ![...this.choice.options].some(({ value }) => value === known)) this.choice.append(h("option", { value: known }, nameOf(known)));
    this.choice.value = known;
    this.tell();
  }

  tell() {
    for (const field of this.fields) spoken(field, this.tag);
    this.gets.textContent = whatWordsGet(this.tag, this.voiced);
  }
}
