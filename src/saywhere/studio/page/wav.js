/** 16-bit mono WAV out of samples. */

/** Float samples in [-1, 1] as 16-bit whole numbers. */
export function sixteenBit(samples) {
  const whole = new Int16Array(samples.length);
  for (let i = 0; i < samples.length; i += 1) {
    const value = Math.min(1, Math.max(-1, samples[i]));
    whole[i] = Math.round(value * (value < 0 ? 0x8000 : 0x7fff));
  }
  return whole;
}

/** pieces: Int16Arrays, one after the other. rate: samples a second. */
export function wav(pieces, rate) {
  const bytes = pieces.reduce((sum, piece) => sum + piece.byteLength, 0);
  const header = new DataView(new ArrayBuffer(44));
  const text = (at, letters) => [...letters].forEach((letter, i) => header.setUint8(at + i, letter.charCodeAt(0)));
  text(0, "RIFF");
  header.setUint32(4, 36 + bytes, true);
  text(8, "WAVEfmt ");
  header.setUint32(16, 16, true); // Length of what describes the samples:
  header.setUint16(20, 1, true); // PCM,
  header.setUint16(22, 1, true); // one channel,
  header.setUint32(24, rate, true);
  header.setUint32(28, rate * 2, true);
  header.setUint16(32, 2, true);
  header.setUint16(34, 16, true);
  text(36, "data");
  header.setUint32(40, bytes, true);
  return new Blob([header.buffer, ...pieces], { type: "audio/wav" });
}
