// The connection pill: Live, Reconnecting, Stale since when. What is stale is greyed and dated, so that nobody takes it for live.
// While the page is connected but the server misses Redis, it says that.

import { CLOCK } from "./times.js";

const WORDS = { connecting: "Connecting", live: "Live", impaired: "Redis does not answer", reconnecting: "Reconnecting", "signed-out": "Signed out" };

const clock = (time) => new Date(time).toLocaleTimeString([], CLOCK);

export function showConnection(live, pill) {
  const text = pill.querySelector(".pill-text");
  const strip = document.getElementById("as-of");
  let isRedisAway = false;
  const show = () => {
    const isStale = live.state === "stale" || live.state === "signed-out";
    const state = live.state === "live" && isRedisAway ? "impaired" : live.state;
    pill.dataset.state = state;
    text.textContent = state === "stale" ? `Stale since ${clock(live.freshAt)}` : WORDS[state];
    pill.title = explain(live, state);
    document.body.classList.toggle("is-stale", isStale);
    if (strip) showStrip(strip, live, isStale);
  };
  live.addEventListener("state", show);
  live.follow("cluster", ({ rows }) => rows.forEach((row) => {
    isRedisAway = row.isRedisAway;
    show();
  }));
  strip?.querySelector("button").addEventListener("click", () => (live.state === "signed-out" ? location.reload() : live.retry()));
  show();
}

/** Over the page, not in it: nothing moves when the connection comes and goes. */
function showStrip(strip, live, isStale) {
  strip.hidden = !isStale;
  strip.querySelector("span").textContent = `As of ${clock(live.freshAt)}. ${live.state === "stale" ? "The server can not be reached; trying again by itself." : "Your session has ended."}`;
  strip.querySelector("button").textContent = live.state === "stale" ? "Retry now" : "Sign in again";
}

function explain(live, state) {
  const since = `The page shows the state of ${clock(live.freshAt)}.`;
  switch (state) {
    case "impaired": return "Redis does not answer. No sessions run until it is back, and changes appear here every few seconds only.";
    case "live": return "Changes appear here by themselves.";
    case "reconnecting": return `The connection was lost a moment ago. ${since}`;
    case "stale": return `The server can not be reached, or has nothing certain to say. ${since} Trying again by itself.`;
    case "signed-out": return `Your session has ended. ${since}`;
    default: return "Asking the server for the newest state.";
  }
}
