// Live parts: when there is news of their topic, or their poll is due, the page is fetched again
// and the parts that differ are put in.

import { askForPage, parsed } from "./ask.js";
import { element } from "./elements.js";
import { holdFocus } from "./focus.js";
import { live } from "./live.js";
import { announce, morph } from "./parts.js";

const SHORTEST_PAUSE_MS = 1500;
const NOTHING_NEWER = 204;

let newsTimer = 0;
let pollTimer = 0;
let fetchedAt = 0;
let isFetching = false;
let isNewer = false; // the server has something newer than this page, as far as is known

export function followParts() {
  for (const topic of followedTopics()) followTopic(topic);
  document.addEventListener("visibilitychange", () => refreshSoon());
  pollLater();
}

/** The first snapshot may be as old as the page is: then there is nothing to fetch. */
function followTopic(topic) {
  let isFirst = true;
  live.follow(topic, () => {
    refreshSoon({ onlyIfNewer: isFirst });
    isFirst = false;
  });
}

function followedTopics() {
  const parts = [...document.querySelectorAll("[data-live-topic]")];
  return new Set(parts.flatMap((part) => part.dataset.liveTopic.split(" ")));
}

export function refreshSoon({ onlyIfNewer = false } = {}) {
  if (!onlyIfNewer) isNewer = true;
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
  isNewer = true;
  if (!document.hidden) refresh();
}

async function refresh() {
  clearTimeout(newsTimer);
  newsTimer = 0;
  if (isFetching) return refreshSoon({ onlyIfNewer: true });
  isFetching = true;
  fetchedAt = Date.now();
  const headers = { "X-Refresh": "true" };
  if (!isNewer) headers["X-As-Of"] = document.documentElement.dataset.asOf;
  isNewer = false;
  try {
    take(await askForPage(pageAddress(), { headers }));
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
  if (answer.isRedirected || answer.status === NOTHING_NEWER) return;
  const page = parsed(answer.text);
  if (answer.status === 404) return tellGone(page);
  if (!answer.isOk) return; // a server in trouble has nothing to say about this page
  const restoreFocus = holdFocus();
  for (const part of document.querySelectorAll("[data-live-part]")) {
    const fresh = page.getElementById(part.id);
    if (fresh && isToBePutIn(part, fresh)) morph(part, fresh);
  }
  restoreFocus();
  takeTitle(page.title);
  announce(document.body);
  document.dispatchEvent(new Event("refreshed")); // charts take the newest figures with it
}

/** A part that keeps more than the server sends takes what is new by itself. */
function isToBePutIn(part, fresh) {
  return part.dispatchEvent(new CustomEvent("fresh", { detail: fresh, cancelable: true }));
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
