// The palette: type a few letters of a page or a queue, and go there.

import { element } from "./elements.js";

const MOST_SHOWN = 10;

const palette = document.getElementById("palette");
const field = document.getElementById("palette-field");
const list = document.getElementById("palette-list");

let choices = null;

export function watchPalette() {
  if (!palette) return;
  field.addEventListener("input", show);
  palette.addEventListener("keydown", onKey);
  palette.addEventListener("click", (event) => {
    if (event.target === palette) palette.close();
  });
  document.querySelector("[data-open-palette]")?.addEventListener("click", openPalette);
}

export async function openPalette() {
  if (!palette || palette.open) return;
  choices ??= pages();
  field.value = "";
  show();
  palette.showModal();
  field.focus();
  choices = await pagesAndQueues().catch(pages);
  if (palette.open) show();
}

function pages() {
  const links = [...document.querySelectorAll(".rail a")];
  return links.map((link) => ({
    title: link.textContent.trim(),
    hint: "page",
    href: link.getAttribute("href"),
  }));
}

async function pagesAndQueues() {
  const answer = await fetch("/queues/-/names.json");
  if (!answer.ok) return pages();
  const { queues, mayCreate } = await answer.json();
  const actions = [{ title: "New queue", hint: "action", href: "/queues/-/new/" }];
  return [...pages(), ...(mayCreate ? actions : []), ...queues.map(queueChoice)];
}

function queueChoice(name) {
  return { title: name, hint: "queue", href: `/queues/${encodeURIComponent(name)}/` };
}

function show() {
  const found = matching(field.value.trim().toLowerCase());
  const items = found.slice(0, MOST_SHOWN).map(item);
  list.replaceChildren(...(items.length ? items : [nothingFound()]));
  choose(0);
}

/** The best first. */
function matching(query) {
  if (!query) return choices;
  const scored = choices.map((choice) => ({
    choice,
    points: score(query, choice.title.toLowerCase()),
  }));
  const found = scored.filter(({ points }) => points > 0);
  found.sort((one, other) => other.points - one.points);
  return found.map(({ choice }) => choice);
}

/** Every letter in order; those that begin a word or stand together count more. */
function score(query, title) {
  let at = -1;
  let points = 0;
  for (const letter of query) {
    const next = title.indexOf(letter, at + 1);
    if (next < 0) return 0;
    points += pointsFor(title, at, next);
    at = next;
  }
  return points / (1 + title.length / 50);
}

function pointsFor(title, last, next) {
  if (next === last + 1) return 3;
  const beginsWord = next === 0 || "-./ ".includes(title[next - 1]);
  return beginsWord ? 2 : 1;
}

function item({ title, hint, href }, index) {
  const made = element("li", title, { id: `choice-${index}`, role: "option" });
  made.dataset.href = href;
  made.append(element("small", hint));
  made.addEventListener("click", () => (location.href = href));
  return made;
}

function nothingFound() {
  const words = `Nothing is called “${field.value}”.`;
  return element("li", words, { className: "quiet", role: "option", ariaDisabled: "true" });
}

const options = () => [...list.querySelectorAll("[data-href]")];

/** Past the end it begins again. */
function choose(index) {
  const all = options();
  const chosen = all[(index + all.length) % all.length];
  for (const option of all) option.setAttribute("aria-selected", String(option === chosen));
  if (!chosen) return;
  field.setAttribute("aria-activedescendant", chosen.id);
  chosen.scrollIntoView({ block: "nearest" });
}

function onKey(event) {
  const all = options();
  const now = all.findIndex((option) => option.getAttribute("aria-selected") === "true");
  const act = {
    ArrowDown: () => choose(now + 1),
    ArrowUp: () => choose(now - 1),
    Enter: () => all[now]?.click(),
  }[event.key];
  if (!act) return;
  event.preventDefault();
  act();
}
