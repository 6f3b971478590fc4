/** The microphone as plain samples, on the same clock as the pointer. */

import { sixteenBit } from "./wav.js";

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
    node.port.onmessage = ({ data }) => this.heard(data);
    this.level = 0;
    this.from = Infinity;
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
    const delay_s = this.stream.getAudioTracks()[0].getSettings().latency ?? 0;
    this.from = Math.round((this.context.currentTime + delay_s) * this.rate);
  }

  heard({ frame, samples }) {
    this.level = Math.sqrt(samples.reduce((sum, sample) => sum + sample * sample, 0) / samples.length);
    const skip = Math.max(0, this.from - frame);
    if (skip < samples.length) this.hear(sixteenBit(skip ? samples.subarray(skip) : samples));
  }

  close() {
    this.from = Infinity;
    this.stream?.getTracks().forEach((track) => track.stop());
    if (this.context?.state !== "closed") this.context?.close();
  }
}
