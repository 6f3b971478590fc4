"use strict";

// Runs before the first paint, so that a chosen theme does not flash. Storage may be forbidden: then the system decides.
try {
  const chosen = localStorage.getItem("theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch (error) {
  console.info("The theme cannot be remembered here:", error.message);
}
