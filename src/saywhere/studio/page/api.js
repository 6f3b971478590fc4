/** The documented REST API, and nothing else. */

/** What the server, or the way to it, said against a request. */
export class Refused extends Error {
  constructor(message, { hint = "", code = "", status = 0 } = {}) {
    super(message);
    this.hint = hint;
    this.code = code;
    this.status = status;
  }
}

/** What the server replies to a request; Refused if it does not serve it. */
export async function reply(method, path, { json, body, type, headers = {}, signal, keepalive = false } = {}) {
  const sent = json === undefined ? body : JSON.stringify(json);
  const kind = json === undefined ? type : "application/json";
  let response;
  try {
    response = await fetch(path, { method, body: sent, signal, keepalive, headers: kind ? { "Content-Type": kind, ...headers } : headers });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused("The Studio does not answer.", { hint: "Is `saywhere studio` still running? Nothing is lost; try again.", code: "offline" });
  }
  if (!response.ok) throw await refusal(response);
  return response;
}

async function refusal(response) {
  const text = await response.text();
  let said = {};
  try {
    said = JSON.parse(text).error ?? {};
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  const hint = said.hint || (response.status === 429 ? "Many requests are waiting. Try again in a moment." : "");
  return new Refused(said.message || `The Studio answered ${response.status}.`, { hint, code: said.code, status: response.status });
}

/** What the server replies to a request, as JSON. */
export const asked = async (method, path, options) => (await reply(method, path, options)).json();
export const at = (...parts) => "/api/" + parts.map(encodeURIComponent).join("/");

export const status = () => asked("GET", at("status"));

export const photos = async () => (await asked("GET", at("photos"))).photos;
export const addPhoto = (file) =>
  asked("POST", at("photos"), { body: file, type: file.type || "application/octet-stream", headers: { "X-File-Name": encodeURIComponent(file.name || "photo") } });
/** With everything that was said about it. */
export const removePhoto = (id) => reply("DELETE", `${at("photos", id)}?with_narratives=true`, { keepalive: true });

/** How far each photo is: [{photo, state, reason}]. */
export const queue = async () => (await asked("GET", at("queue"))).photos;
export const skip = (id, reason) => reply("PUT", at("queue", id, "skip"), { json: { reason } });
export const takeBack = (id) => reply("DELETE", at("queue", id, "skip"));

export const look = (id, signal) => asked("POST", at("photos", id, "look"), { json: {}, signal });
export const captions = async (id, regions, level) =>
  (await asked("POST", at("photos", id, "captions"), { json: { regions, level, provenance: true } })).captions;
export const ground = (id, text, signal) => asked("POST", at("photos", id, "ground"), { json: { text }, signal });
/** All that the model is sure of → {alt_text, text, things: [{name, box, about, neighbours}], origin}. */
export const describe = (id, signal) => asked("POST", at("photos", id, "describe"), { json: {}, signal });
export const narrate = (id, most, signal) => asked("POST", at("photos", id, "narrate"), { json: { most }, signal });
/** {region, word, text, method} → {said, method, weights, faithfulness, fall, from_names, seconds}. */
export const why = (id, word, signal) => asked("POST", at("photos", id, "why"), { json: word, signal });
/** {question, region} → {answer, probability, others, unknown, unread, kinds, reason}. */
export const answer = (id, question, signal) => asked("POST", at("photos", id, "answer"), { json: question, signal });
/** {question, region, answer, method} → as `why`. */
export const whyAnswer = (id, question, signal) => asked("POST", at("photos", id, "why-answer"), { json: question, signal });

/** What is pointed at, cut out → {mask}. */
export const segment = (id, region, signal) => asked("POST", at("photos", id, "segment"), { json: { region }, signal });

/** The answer to the last of some turns {text, region} → {text, regions, forgotten, lost, retold}. hear: gets it piece by piece. */
export async function chat(id, turns, hear, signal) {
  const response = await reply("POST", at("photos", id, "chat"), { json: { turns, stream: true }, signal });
  for await (const [name, data] of events(response.body)) {
    if (name === "words") hear(data.text);
    else if (name === "end") return data;
    else throw new Refused(data.message, data);
  }
  throw new Refused("The answer broke off.", { hint: "Is `saywhere studio` still running? Try again." });
}

/** The server-sent events of a reply, as they come: [name, data]. */
export async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = ""; ;) {
    const { value, done } = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n\n");
    rest = parts.pop();
    for (const part of parts) {
      const [name, data] = part.split("\n").map((line) => line.slice(line.indexOf(": ") + 2));
      yield [name, JSON.parse(data)];
    }
  }
}

export const narratives = async (photo) => {
  const all = await asked("GET", `${at("narratives")}?photo=${encodeURIComponent(photo)}`);
  return all.narratives;
};
/** Where narratives are kept: those of photos, or those of videos. */
const keeper = (place) => ({
  narrative: (id) => asked("GET", at(place, id)),
  /** A new one. Its id is ours: if an earlier try came half-way, this makes no second. */
  sendNarrative: (narrative) => asked("POST", at(place), { json: narrative }).catch((error) => {
    if (error.status !== 409) throw error;
    return asked("PUT", at(place, narrative.id), { json: narrative });
  }),
  putNarrative: (narrative) => asked("PUT", at(place, narrative.id), { json: narrative }),
  removeNarrative: (id) => reply("DELETE", at(place, id), { keepalive: true }),
  putAudio: (id, wav) => reply("PUT", at(place, id, "audio"), { body: wav, type: "audio/wav" }),
  audioAddress: (id) => at(place, id, "audio"),
  align: (id) => asked("POST", at(place, id, "align"), { json: {} }),
});
export const { narrative, sendNarrative, putNarrative, removeNarrative, putAudio, audioAddress, align } = keeper("narratives");
export const filmed = keeper("video-narratives");

/** What can be searched, and how far it is looked at: {has, why, how, folder, doing, done, total, error, photos, …}. */
export const library = () => asked("GET", at("library"));
export const refreshLibrary = () => asked("POST", at("library", "refresh"), { json: {} });
/** {text, said} or {photo, region} → [{photo, name, url, box, score, what, said, who, start_s}]. */
export const search = async (query, signal) => (await asked("POST", at("library", "search"), { json: query, signal })).hits;
/** Put a photo of the library's folder on the shelf. */
export const takePhoto = (name) => asked("POST", at("library", "take"), { json: { name } });

export const videos = () => asked("GET", at("videos"));
export const video = (id) => asked("GET", at("videos", String(id)));
/** Videos that can be told about: [{id, name, width, height, frames: [{name, url}], file, told}]. */
export const footage = async () => (await asked("GET", at("footage"))).footage;
export const bringFootage = (name) => asked("POST", at("footage"), { json: { name } });
export const addFrame = (id, blob, name) => asked("POST", at("footage", id, "frames"), { body: blob, type: blob.type, headers: { "X-File-Name": encodeURIComponent(name) } });
export const footageExport = (id) => at("footage", id, "export");
export const filmedNarratives = async () => (await asked("GET", at("video-narratives"))).narratives;

/** A narrative, or a photo's description, as a file: its name and content. */
export const exported = (id, format) => file(at("narratives", id, "export"), format);
export const describedFile = (id, format) => file(at("photos", id, "description"), format);

async function file(path, format) {
  const response = await reply("GET", `${path}?format=${encodeURIComponent(format)}`);
  const named = /filename="?([^";]+)"?/.exec(response.headers.get("Content-Disposition") ?? "");
  return { name: named[1], blob: await response.blob() };
}
