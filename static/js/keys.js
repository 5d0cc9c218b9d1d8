// The keyboard: / searches, ? shows the shortcuts, g and a letter goes somewhere, Ctrl-K opens the
// palette.

import { openPalette, watchPalette } from "./palette.js";

const GO = {
  o: "/",
  q: "/queues/",
  j: "/jobs/",
  n: "/nodes/",
  a: "/activity/",
  s: "/sessions/",
};
const GO_WITHIN_MS = 1200; // between g and the letter

const sheet = document.getElementById("shortcuts");

let goAt = 0; // when g was pressed

export function listenToKeys() {
  watchPalette();
  sheet?.addEventListener("click", (event) => {
    if (event.target === sheet) sheet.close();
  });
  document.addEventListener("keydown", onKey);
}

function onKey(event) {
  const isChord = event.ctrlKey || event.metaKey;
  if (isChord && event.key.toLowerCase() === "k") {
    event.preventDefault();
    openPalette();
  } else if (!isChord && !event.altKey && !isBusy(event.target)) {
    act(event);
  }
}

/** Somebody types, or a dialog is open. */
function isBusy(target) {
  const isTyping = target.closest?.("input, textarea, select, [contenteditable]");
  return isTyping || document.querySelector("dialog[open]");
}

function act(event) {
  if (event.key === "?") sheet?.showModal();
  else if (event.key === "/") focusSearch(event);
  else if (event.key === "g") goAt = Date.now();
  else if (Date.now() - goAt < GO_WITHIN_MS) go(GO[event.key]);
}

function go(path) {
  const links = [...document.querySelectorAll(".rail a")];
  const link = links.find((entry) => entry.getAttribute("href") === path);
  if (link) location.href = link.href;
}

function focusSearch(event) {
  event.preventDefault();
  const search = document.getElementById("search");
  if (search) search.select();
  else openPalette();
}
