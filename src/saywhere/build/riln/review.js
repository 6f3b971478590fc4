"use strict";
const articles = [...document.querySelectorAll("article")];
const started = new Map(articles.map((article) => [article, textsOf(article)]));
// Sheets of several data sets may be open in one browser.
const kept = `saywhere-riln-review-${articles.length}-${articles[0]?.dataset.id}`;
const decided = new Map();

function textsOf(article) {
  return [...article.querySelectorAll("textarea")].map((field) => field.value);
}

function changed(article) {
  return textsOf(article).some((text, i) => text !== started.get(article)[i]);
}

function decide(article, choice) {
  const decision = choice === "accept" && changed(article) ? "edit" : choice;
  const entry = { id: article.dataset.id, digest: article.dataset.digest, decision };
  if (decision === "edit") entry.texts = textsOf(article);
  decided.set(article.dataset.id, entry);
  show(article, decision);
  keep();
}

function show(article, decision) {
  article.dataset.decided = decision;
  for (const button of article.querySelectorAll("[data-decision]")) {
    const pressed = button.dataset.decision === (decision === "edit" ? "accept" : decision);
    button.setAttribute("aria-pressed", String(pressed));
  }
  article.querySelector(".state").textContent = { accept: "accepted", reject: "rejected", edit: "accepted with edits" }[decision];
  document.getElementById("progress").textContent = `${decided.size} of ${articles.length} decided`;
}

function decisions() {
  return articles.filter((article) => decided.has(article.dataset.id)).map((article) => decided.get(article.dataset.id));
}

function keep() {
  try { localStorage.setItem(kept, JSON.stringify(decisions())); } catch { /* Some browsers keep nothing for files. */ }
}

// The name may belong to another text now; what an edit has become is still what it is about.
function isAbout(entry, article) {
  return entry.digest === article.dataset.digest || JSON.stringify(entry.texts) === JSON.stringify(textsOf(article));
}

function restore() {
  let before = [];
  try { before = JSON.parse(localStorage.getItem(kept) || "[]"); } catch { return; }
  const byId = new Map(articles.map((article) => [article.dataset.id, article]));
  for (const entry of Array.isArray(before) ? before : []) {
    const article = byId.get(entry.id);
    if (!article || !isAbout(entry, article)) continue;
    if (entry.texts) article.querySelectorAll("textarea").forEach((field, i) => { field.value = entry.texts[i] ?? field.value; });
    decided.set(entry.id, entry);
    show(article, entry.decision);
  }
}

function move(by) {
  const here = articles.indexOf(document.activeElement.closest("article"));
  const next = articles[Math.min(articles.length - 1, Math.max(0, here + by))];
  if (next) { next.focus(); next.scrollIntoView({ block: "start" }); }
}

for (const article of articles) {
  for (const button of article.querySelectorAll("[data-decision]")) {
    button.addEventListener("click", () => decide(article, button.dataset.decision));
  }
  article.addEventListener("input", () => decide(article, "accept"));
}

document.addEventListener("keydown", (event) => {
  if (event.target.matches("textarea") || event.ctrlKey || event.metaKey || event.altKey) return;
  const article = document.activeElement.closest("article");
  if (event.key === "j") move(1);
  else if (event.key === "k") move(-1);
  else if (event.key === "a" && article) decide(article, "accept");
  else if (event.key === "r" && article) decide(article, "reject");
});

document.getElementById("export").addEventListener("click", () => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([JSON.stringify(decisions(), null, 1)], { type: "application/json" }));
  link.download = "decisions.json";
  link.click();
  URL.revokeObjectURL(link.href);
});

restore();
