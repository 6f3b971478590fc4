/** Colours that tell time, as in the figures: violet is the start, yellow the end. */

const WAY = ["#4a2dad", "#6b29b4", "#8a24b4", "#a91eaa", "#c12698", "#d63183", "#e8426b", "#f35a57", "#f97549", "#fb9145", "#feaa3f", "#fec53e", "#f7e04f"];
const rgb = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));

/** The colour of a share of the time, [r, g, b]. */
export function timeColour(share) {
  const place = Math.min(1, Math.max(0, share)) * (WAY.length - 1);
  const low = Math.min(WAY.length - 2, Math.floor(place));
  const [a, b] = [rgb(WAY[low]), rgb(WAY[low + 1])];
  return a.map((from, i) => Math.round(from + (place - low) * (b[i] - from)));
}

export const css = ([r, g, b]) => `rgb(${r} ${g} ${b})`;
