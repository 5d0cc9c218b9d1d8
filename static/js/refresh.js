// Live parts: when there is news of their topic, or their poll is due, the page is fetched again
// and the parts that differ are put in.

import { askForPage, parsed } from "./ask.js";
import { element } from "./elements.js";
import { holdFocus } from "./focus.js";
import { live } from "./live.js";
import { announce, morph } from "./parts.js";

const SHORTEST_PAUSE_MS = 1500;

let newsTimer = 0;
let pollTimer = 0;
let fetchedAt = 0;
let isFetching = false;

export function followParts() {
  for (const topic of followedTopics()) live.follow(topic, refreshSoon);
  document.addEventListener("visibilitychange", refreshSoon);
  pollLater();
}

function followedTopics() {
  const parts = [...document.querySelectorAll("[data-live-topic]")];
  return new Set(parts.flatMap((part) => part.dataset.liveTopic.split(" ")));
}

export function refreshSoon() {
  if (newsTimer || document.hidden) return;
  const pause = fetchedAt + SHORTEST_PAUSE_MS - Date.now();
  newsTimer = setTimeout(refresh, Math.max(0, pause));
}

/** Parts with data-poll are due again after so many milliseconds, until it is empty. */
function pollLater() {
  const parts = [...document.querySelectorAll("[data-poll]")];
  const pauses = parts.map((part) => Number(part.dataset.poll));
  const shortest = Math.min(...pauses.filter(Boolean));
  clearTimeout(pollTimer);
  if (Number.isFinite(shortest)) pollTimer = setTimeout(poll, shortest);
}

/** A page that nobody sees waits until it is seen again. */
function poll() {
  if (!document.hidden) refresh();
}

async function refresh() {
  clearTimeout(newsTimer);
  newsTimer = 0;
  if (isFetching) return refreshSoon();
  isFetching = true;
  fetchedAt = Date.now();
  try {
    take(await askForPage(pageAddress()));
  } catch {
    // The pill says that the server is away; the next news tries again.
  }
  isFetching = false;
  pollLater();
}

/** While a drawer is open the address is the drawer's; the page below it is still this one. */
function pageAddress() {
  return history.state?.page ?? location.href;
}

function take(answer) {
  if (answer.isRedirected) return;
  const page = parsed(answer.text);
  if (answer.status === 404) return tellGone(page);
  if (!answer.isOk) return; // a server in trouble has nothing to say about this page
  const restoreFocus = holdFocus();
  for (const part of document.querySelectorAll("[data-live-part]")) {
    const fresh = page.getElementById(part.id);
    if (fresh) morph(part, fresh);
  }
  restoreFocus();
  takeTitle(page.title);
  announce(document.body);
  document.dispatchEvent(new Event("refreshed")); // charts take the newest figures with it
}

/** The number of notices in front of the title is site.js's. */
function takeTitle(title) {
  const count = document.title.match(/^\(\d+\) /)?.[0] ?? "";
  document.title = count + title;
}

/** The thing that this page is about was deleted: say so on top, and keep what is shown. */
function tellGone(page) {
  if (document.getElementById("gone")) return;
  const banner = element("p", "", { id: "gone", className: "banner banner-error", role: "alert" });
  banner.append(...wordsOfGone(page));
  document.getElementById("content").prepend(banner);
  announce(banner);
  for (const part of document.querySelectorAll("[data-live-part], .tab-body")) {
    part.classList.add("is-gone");
  }
}

function wordsOfGone(page) {
  const words = page.querySelector("main p:not(.brand)");
  if (!words) return ["This page is about something that was deleted."];
  return document.importNode(words, true).childNodes;
}
