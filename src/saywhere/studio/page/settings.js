/** Small choices that this browser remembers. Where storage is forbidden, they last as long as the page. */

const here = new Map();

export function remembered(name, otherwise) {
  try {
    return localStorage.getItem(name) ?? here.get(name) ?? otherwise;
  } catch (error) {
    if (error.name !== "SecurityError") throw error;
    return here.get(name) ?? otherwise;
  }
}

export function remember(name, value) {
  here.set(name, value);
  try {
    localStorage.setItem(name, value);
  } catch (error) {
    if (error.name !== "SecurityError" && error.name !== "QuotaExceededError") throw error;
  }
}
