// News of the cluster as a whole, on every page: paused, a tree that is not valid, sessions that do
// not come. The count of notices stands in the title.

import { element, setText } from "./elements.js";
import { live } from "./live.js";
import { announce } from "./parts.js";

export function followCluster() {
  const place = document.getElementById("site-banner");
  if (!place) return;
  live.follow("cluster", ({ rows }) => {
    for (const row of rows) {
      showNotices(place, row.notices);
      tellSession(row);
    }
  });
}

/** Where a page names the last session, it counts on without being fetched again. */
function tellSession({ lastSession, lastSessionAt }) {
  for (const place of document.querySelectorAll("[data-last-session]")) {
    setText(place, String(lastSession ?? ""));
  }
  for (const place of document.querySelectorAll("[data-last-session-at]")) {
    if (lastSessionAt) place.querySelector("time")?.setAttribute("datetime", lastSessionAt);
    announce(place);
  }
}

function showNotices(place, notices) {
  const key = JSON.stringify(notices);
  if (place.dataset.shown !== key) {
    place.dataset.shown = key;
    place.replaceChildren(...notices.map(banner));
    announce(place);
  }
  markIcon(notices.length > 0);
  countInTitle(notices.length);
}

function countInTitle(count) {
  const bare = document.title.replace(/^\(\d+\) /, "");
  const title = count ? `(${count}) ${bare}` : bare;
  if (document.title !== title) document.title = title;
}

/** The tab's icon has a dot while there is something to know. */
function markIcon(isMarked) {
  const icon = document.querySelector('link[rel="icon"]');
  const present = icon.getAttribute("href");
  const name = isMarked ? "favicon-notice.svg" : "favicon.svg";
  const wanted = present.replace(/favicon(-notice)?\.svg/, name);
  if (present !== wanted) icon.setAttribute("href", wanted);
}

function banner({ level, text, at, after, url, link }) {
  const made = element("p", `${text} `, { className: `banner banner-${level}`, role: "status" });
  if (at) made.append(since(at), ` ${after} `);
  if (url) made.append(element("a", link, { href: url }));
  return made;
}

function since(at) {
  const made = element("time", "", { dateTime: at });
  made.dataset.since = "";
  return made;
}
