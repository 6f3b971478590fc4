/** The microphone as plain samples, on the same clock as the pointer. */

import { button, h } from "./dom.js";
import { sixteenBit } from "./wav.js";

const REST_MS = 2000;
const RATE = 24000; // Enough for a voice; the server brings it to what its aligner wants.

/** Why there is no microphone here, or "". */
export function whyNot() {
  if (!isSecureContext) return "The microphone needs a page on this computer or over https.";
  if (!navigator.mediaDevices?.getUserMedia || !window.AudioWorkletNode) return "This browser cannot record sound.";
  return "";
}

/** A sentence for people out of what the browser says. */
function reason(error) {
  if (error.name === "NotAllowedError") return "The browser does not allow the microphone for this page.";
  if (error.name === "NotFoundError") return "No microphone was found.";
  return `The microphone cannot be used: ${error.message}`;
}

/** Asked before anything is recorded: once more, or without sound? */
export function withoutVoice(error, again, without) {
  return h("div", { class: "problem", role: "alert" },
    h("p", {}, error.message), h("p", { class: "hint" }, "Record without sound? You type what you see, and the times of your keys are kept."),
    h("div", { class: "row" }, button("Try again", { kind: "quiet", onclick: again }), button("Record without sound", { kind: "quiet", onclick: without })));
}

export class Microphone {
  /** Ask for it, and wait until it hears. What speaks against it is an Error with a sentence for people. */
  static async open() {
    const microphone = new Microphone();
    try {
      await microphone.connect();
    } catch (error) {
      microphone.close();
      throw new Error(reason(error), { cause: error });
    }
    return microphone;
  }

  async connect() {
    this.stream = await navigator.mediaDevices.getUserMedia({
      audio: { channelCount: 1, echoCancellation: false, noiseSuppression: false, autoGainControl: true },
    });
    this.context = await this.fitting();
    await this.context.audioWorklet.addModule(new URL("./capture.js", import.meta.url));
    const node = new AudioWorkletNode(this.context, "capture", { numberOfInputs: 1, numberOfOutputs: 0, channelCount: 1, channelCountMode: "explicit" });
    this.port = node.port;
    this.port.onmessage = ({ data }) => (data ? this.heard(data) : this.ended());
    this.ended = () => {};
    this.level = 0;
    this.from = this.until = Infinity;
    this.source.connect(node);
    await this.context.resume();
    await this.flowing(node);
  }

  /** A context at our rate, or at the device's own where the browser cannot convert. */
  async fitting() {
    for (const options of [{ sampleRate: RATE }, {}]) {
      const context = new AudioContext(options);
      try {
        this.source = context.createMediaStreamSource(this.stream);
        return context;
      } catch (error) {
        await context.close();
        if (error.name !== "NotSupportedError" || !options.sampleRate) throw error;
      }
    }
    throw new Error("no sound can be recorded here");
  }

  /** Until the first samples arrive: before that, a device is still waking up. */
  flowing(node) {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error("it stays silent")), 5000);
      node.port.addEventListener("message", () => { clearTimeout(timer); resolve(); }, { once: true });
    });
  }

  get rate() {
    return this.context.sampleRate;
  }

  /** Hand on what is heard from now on, as Int16Arrays in order. What reaches us now was said a little earlier. */
  start(hear) {
    this.hear = hear;
    this.from = this.frameNow();
  }

  /** The frame that will hold what is said now. */
  frameNow() {
    const delay_s = this.stream.getAudioTracks()[0].getSettings().latency ?? 0;
    return Math.round((this.context.currentTime + delay_s) * this.rate);
  }

  /** from, until: the frames to hand on next and at last. Frames that never came are silence, so that later ones keep their time. */
  heard({ frame, samples }) {
    this.level = Math.sqrt(samples.reduce((sum, sample) => sum + sample * sample, 0) / samples.length);
    const first = Math.max(frame, this.from), stop = Math.min(frame + samples.length, this.until);
    if (first >= stop) return;
    if (frame > this.from) this.hear(new Int16Array(frame - this.from));
    this.hear(sixteenBit(samples.subarray(first - frame, stop - frame)));
    this.from = stop;
  }

  /** Wait for what is still on its way, then close. A busy page gets the last pieces long after they were said. */
  async stop() {
    this.until = this.frameNow();
    await new Promise((resolve) => {
      const timer = setTimeout(resolve, REST_MS);
      this.ended = () => { clearTimeout(timer); resolve(); };
      this.port.postMessage("rest");
    });
    this.close();
  }

  close() {
    this.from = Infinity;
    this.stream?.getTracks().forEach((track) => track.stop());
    if (this.context?.state !== "closed") this.context?.close();
  }
}
