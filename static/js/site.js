// News of the cluster as a whole, on every page: paused, a tree that is not valid, sessions that do not come; and the count in the title.

import { live } from "./live.js";


export function followCluster() {
  const place = document.getElementById("site-banner");
  if (!place) return;
  live.follow("cluster", ({ rows }) => rows.forEach((row) => {
    show(place, row);
    tellSession(row);
  }));
}

/** Where a page says which session looked last, it goes on counting without being fetched anew. */
function tellSession({ lastSession, lastSessionAt }) {
  for (const place of document.querySelectorAll("[data-last-session]")) place.textContent = lastSession;
  for (const place of document.querySelectorAll("[data-last-session-at]")) {
    if (lastSessionAt) place.querySelector("time")?.setAttribute("datetime", lastSessionAt);
    document.dispatchEvent(new CustomEvent("content", { detail: place }));
  }
}

function show(place, row) {
  const words = row.notices.map(({ level, text, at, after, url, link }) => [level, text, at, after, url, link]);
  const key = JSON.stringify(words);
  if (place.dataset.shown !== key) {
    place.dataset.shown = key;
    place.replaceChildren(...words.map(banner));
    document.dispatchEvent(new CustomEvent("content", { detail: place })); // the times in it
  }
  markIcon(row.notices.length > 0);
  const count = row.notices.length ? `(${row.notices.length}) ` : "";
  const title = count + document.title.replace(/^\(\d+\) /, "");
  if (document.title !== title) document.title = title;
}

/** The tab's icon wears a dot while there is something to know. */
function markIcon(isMarked) {
  const icon = document.querySelector('link[rel="icon"]');
  const wanted = icon.getAttribute("href").replace(/favicon(-notice)?\.svg/, isMarked ? "favicon-notice.svg" : "favicon.svg");
  if (icon.getAttribute("href") !== wanted) icon.setAttribute("href", wanted);
}

function banner([level, text, at, after, url, link]) {
  const made = document.createElement("p");
  made.className = `banner banner-${level}`;
  made.setAttribute("role", "status");
  made.textContent = `${text} `;
  if (at) made.append(since(at), ` ${after} `);
  if (url) made.append(Object.assign(document.createElement("a"), { href: url, textContent: link }));
  return made;
}

function since(at) {
  const made = Object.assign(document.createElement("time"), { dateTime: at });
  made.dataset.since = "";
  return made;
}
