// The connection pill: Live, Reconnecting, Stale since when. What is stale is greyed and dated, so
// that nobody takes it for live. While the page is connected but the server misses Redis, or the
// cluster, it says that.

import { setText } from "./elements.js";
import { CLOCK } from "./times.js";

const WORDS = {
  connecting: "Connecting",
  live: "Live",
  impaired: "Redis does not answer",
  reconnecting: "Reconnecting",
  "signed-out": "Signed out",
};

const clock = (time) => new Date(time).toLocaleTimeString([], CLOCK);

export function showConnection(live) {
  const pill = document.getElementById("pill");
  if (!pill) return;
  const strip = document.getElementById("as-of");
  let isRedisAway = false;
  let silentSince = null;
  const stateNow = () => {
    if (live.state !== "live") return live.state;
    if (isRedisAway) return "impaired";
    return silentSince ? "silent" : "live";
  };
  const show = () => {
    const state = stateNow();
    const isStale = state === "stale" || state === "signed-out";
    showPill(pill, state, live.freshAt, silentSince);
    document.body.classList.toggle("is-stale", isStale);
    if (strip) showStrip(strip, live, isStale);
  };
  live.addEventListener("state", show);
  live.follow("cluster", ({ rows }) => {
    for (const row of rows) {
      isRedisAway = row.isRedisAway;
      silentSince = row.silentSince;
    }
    show();
  });
  strip?.querySelector("button").addEventListener("click", () => {
    if (live.state === "signed-out") location.reload();
    else live.retry();
  });
  setInterval(() => silentSince && show(), 1000); // the seconds of its silence go on
  show();
}

function wordsFor(state, freshAt, silentSince) {
  if (state === "stale") return `Stale since ${clock(freshAt)}`;
  if (state !== "silent") return WORDS[state];
  const seconds = Math.max(0, Math.round((Date.now() - new Date(silentSince)) / 1000));
  return `Cluster not heard for ${seconds} s`;
}

function showPill(pill, state, freshAt, silentSince) {
  const words = wordsFor(state, freshAt, silentSince);
  pill.dataset.state = state;
  pill.title = explain(state, `The page shows the state of ${clock(freshAt)}.`);
  setText(pill.querySelector(".pill-text"), words);
}

/** Over the page, not in it: nothing moves when the connection comes and goes. */
function showStrip(strip, { state, freshAt }, isStale) {
  const isAway = state === "stale";
  const why = isAway
    ? "The server cannot be reached; trying again by itself."
    : "Your session has ended.";
  strip.hidden = !isStale;
  setText(strip.querySelector("span"), `As of ${clock(freshAt)}. ${why}`);
  setText(strip.querySelector("button"), isAway ? "Retry now" : "Sign in again");
}

function explain(state, since) {
  switch (state) {
    case "impaired":
      return (
        "Redis does not answer. No sessions run until it is back, and changes appear here every " +
        "few seconds only."
      );
    case "silent":
      return (
        "The API server of the cluster does not answer, or its watcher does not run. What is " +
        "shown of the cluster may be old."
      );
    case "live":
      return "Changes appear here by themselves.";
    case "reconnecting":
      return `The connection was lost a moment ago. ${since}`;
    case "stale":
      return (
        "The server cannot be reached, or has nothing certain to say. " +
        `${since} Trying again by itself.`
      );
    case "signed-out":
      return `Your session has ended. ${since}`;
    default:
      return "Asking the server for the newest state.";
  }
}
