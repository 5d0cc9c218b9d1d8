// The keyboard: / search, ? the sheet of shortcuts, g then a letter to go somewhere, Ctrl-K the palette.

const sheet = document.getElementById("shortcuts");
const palette = document.getElementById("palette");
const field = document.getElementById("palette-field");
const list = document.getElementById("palette-list");

let wentTo = 0;
let choices = null;

const isTyping = (target) => target.closest?.("input, textarea, select, [contenteditable]");

function places() {
  return [...document.querySelectorAll(".rail a")].map((link) => ({ title: link.textContent.trim(), hint: "page", href: link.getAttribute("href") }));
}

async function load() {
  const answer = await fetch("/queues/-/names.json");
  const { queues, mayCreate } = answer.ok ? await answer.json() : { queues: [], mayCreate: false };
  const actions = mayCreate ? [{ title: "New queue", hint: "action", href: "/queues/-/new/" }] : [];
  return [...places(), ...actions, ...queues.map((name) => ({ title: name, hint: "queue", href: `/queues/${encodeURIComponent(name)}/` }))];
}

/** Every letter in order, those that begin a word or stand together count more. */
function score(query, title) {
  let at = -1;
  let points = 0;
  for (const letter of query) {
    const next = title.indexOf(letter, at + 1);
    if (next < 0) return 0;
    points += next === at + 1 ? 3 : next === 0 || "-./ ".includes(title[next - 1]) ? 2 : 1;
    at = next;
  }
  return points / (1 + title.length / 50);
}

function show() {
  const query = field.value.trim().toLowerCase();
  const found = query ? choices.map((choice) => [score(query, choice.title.toLowerCase()), choice]).filter(([points]) => points).sort((a, b) => b[0] - a[0]).map(([, choice]) => choice) : choices;
  list.replaceChildren(...found.slice(0, 10).map(item));
  if (!found.length) list.replaceChildren(nothing());
  choose(0);
}

function nothing() {
  const made = document.createElement("li");
  made.className = "quiet";
  made.setAttribute("role", "option");
  made.setAttribute("aria-disabled", "true");
  made.textContent = `Nothing is called “${field.value}”.`;
  return made;
}

function item({ title, hint, href }, index) {
  const made = document.createElement("li");
  made.setAttribute("role", "option");
  made.id = `choice-${index}`;
  made.dataset.href = href;
  made.append(title, Object.assign(document.createElement("small"), { textContent: hint }));
  made.addEventListener("click", () => (location.href = href));
  return made;
}

function choose(index) {
  const options = [...list.querySelectorAll("[data-href]")];
  const chosen = options[(index + options.length) % options.length];
  for (const option of options) option.setAttribute("aria-selected", String(option === chosen));
  if (chosen) field.setAttribute("aria-activedescendant", chosen.id);
  chosen?.scrollIntoView({ block: "nearest" });
}

async function openPalette() {
  if (!palette || palette.open) return;
  choices ??= places();
  field.value = "";
  show();
  palette.showModal();
  field.focus();
  choices = await load().catch(places);
  if (palette.open) show();
}

function inPalette(event) {
  const options = [...list.querySelectorAll("[data-href]")];
  const now = options.findIndex((option) => option.getAttribute("aria-selected") === "true");
  if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    event.preventDefault();
    choose(now + (event.key === "ArrowDown" ? 1 : -1));
  } else if (event.key === "Enter") {
    event.preventDefault();
    if (options[now]) location.href = options[now].dataset.href;
  }
}

const GO = { o: "/", q: "/queues/", j: "/jobs/", n: "/nodes/", a: "/activity/", s: "/sessions/" };

function go(key) {
  const link = [...document.querySelectorAll(".rail a")].find((entry) => entry.getAttribute("href") === GO[key]);
  if (link) location.href = link.href;
}

export function listenToKeys() {
  field?.addEventListener("input", show);
  palette?.addEventListener("keydown", inPalette);
  document.querySelector("[data-open-palette]")?.addEventListener("click", openPalette);
  for (const dialog of [sheet, palette]) dialog?.addEventListener("click", (event) => event.target === dialog && dialog.close());
  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
      event.preventDefault();
      return void openPalette();
    }
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target) || document.querySelector("dialog[open]")) return;
    if (event.key === "?") sheet?.showModal();
    else if (event.key === "/") focusSearch(event);
    else if (event.key === "g") wentTo = Date.now();
    else if (Date.now() - wentTo < 1200) go(event.key);
  });
}

function focusSearch(event) {
  const search = document.getElementById("search");
  event.preventDefault();
  if (search) search.select();
  else openPalette();
}
