// Parts of a page that are drawn by the server and kept fresh: news of their topic fetches the page again and puts in what is different.

import { holdFocus } from "./focus.js";
import { live } from "./live.js";

const SHORTEST_PAUSE_MS = 1500;

const pageAddress = () => history.state?.page ?? location.href; // a drawer has the address, the page below it is still this one

let timer = 0;
let fetchedAt = 0;
let isFetching = false;

export function refreshSoon() {
  if (timer || document.hidden) return;
  timer = setTimeout(refresh, Math.max(0, fetchedAt + SHORTEST_PAUSE_MS - Date.now()));
}

async function refresh() {
  timer = 0;
  if (isFetching) return refreshSoon();
  isFetching = true;
  fetchedAt = Date.now();
  try {
    const answer = await fetch(pageAddress(), { headers: { "X-Live-Part": "1" }, cache: "no-store" });
    if (answer.redirected) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (answer.status === 404) return void gone(page);
    if (!answer.ok) return; // a server that stumbles has nothing to say about this page, and no title for it
    const restoreFocus = holdFocus();
    for (const part of document.querySelectorAll("[data-live-part]")) {
      const fresh = page.getElementById(part.id);
      if (fresh) morph(part, fresh);
    }
    restoreFocus();
    const count = document.title.match(/^\(\d+\) /)?.[0] || ""; // how many notices there are is told by site.js
    document.title = count + page.title;
    document.dispatchEvent(new CustomEvent("content", { detail: document.body }));
  } catch {
    // the pill tells that the server is away; the next news tries again
  } finally {
    isFetching = false;
  }
}

/** The thing this page is about was deleted: say so on top, keep what is there. */
function gone(page) {
  if (document.getElementById("gone")) return;
  const banner = document.createElement("p");
  banner.id = "gone";
  banner.className = "banner banner-error";
  banner.setAttribute("role", "alert");
  const words = page.querySelector("main p:not(.brand)");
  if (words) banner.append(...document.importNode(words, true).childNodes);
  else banner.textContent = "This page is about something that was deleted.";
  document.getElementById("content").prepend(banner);
  document.dispatchEvent(new CustomEvent("content", { detail: banner }));
  for (const part of document.querySelectorAll("[data-live-part], .tab-body")) part.classList.add("is-gone");
}

/** Make `old` look like `fresh`, touching only what differs; rows with a key stay the same element wherever they go. */
export function morph(old, fresh) {
  for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name) && name !== "open") old.removeAttribute(name);
  const keyed = new Map([...old.children].filter((child) => child.dataset.key).map((child) => [child.dataset.key, child]));
  let place = old.firstChild;
  for (const wanted of "steady" in old.dataset ? asTheyStand(fresh, keyed) : [...fresh.childNodes]) {
    const match = wanted.dataset?.key ? keyed.get(wanted.dataset.key) : sameKind(place, wanted) ? place : null;
    if (!match) {
      old.insertBefore(document.importNode(wanted, true), place);
      continue;
    }
    if (match === place) place = place.nextSibling;
    else old.insertBefore(match, place);
    if (wanted.nodeType === Node.ELEMENT_NODE) {
      if (!match.isEqualNode(wanted)) morph(match, wanted);
    } else if (match.nodeValue !== wanted.nodeValue) match.nodeValue = wanted.nodeValue;
  }
  while (place) {
    const next = place.nextSibling;
    place.remove();
    place = next;
  }
}

/** A table that somebody sorted is not turned over below his pointer: rows stay where they are, new ones come last. */
function asTheyStand(fresh, keyed) {
  const places = new Map([...keyed.keys()].map((key, place) => [key, place]));
  const place = (child) => places.get(child.dataset?.key) ?? places.size;
  return [...fresh.childNodes].sort((one, other) => place(one) - place(other));
}

function sameKind(one, other) {
  return one && one.nodeType === other.nodeType && one.nodeName === other.nodeName && !one.dataset?.key;
}

export function followParts() {
  const topics = new Set([...document.querySelectorAll("[data-live-topic]")].flatMap((part) => part.dataset.liveTopic.split(" ")));
  for (const topic of topics) live.follow(topic, refreshSoon);
  document.addEventListener("visibilitychange", () => document.hidden || refreshSoon());
}
