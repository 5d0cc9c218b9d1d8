// The connection pill: Live, Reconnecting, Stale since when. What is stale is greyed, so that nobody takes it for live.

const WORDS = { connecting: "Connecting", live: "Live", reconnecting: "Reconnecting", "signed-out": "Signed out" };

const clock = (time) => new Date(time).toLocaleTimeString([], { hour12: false });

export function showConnection(live, pill) {
  const text = pill.querySelector(".pill-text");
  const show = () => {
    pill.dataset.state = live.state;
    text.textContent = live.state === "stale" ? `Stale since ${clock(live.freshAt)}` : WORDS[live.state];
    pill.title = explain(live);
    document.body.classList.toggle("is-stale", live.state === "stale" || live.state === "signed-out");
    if (live.state === "signed-out") pill.onclick = () => location.reload();
  };
  live.addEventListener("state", show);
  show();
}

function explain(live) {
  const since = `The page shows the state of ${clock(live.freshAt)}.`;
  switch (live.state) {
    case "live": return "Changes appear here by themselves.";
    case "reconnecting": return `The connection was lost a moment ago. ${since}`;
    case "stale": return `The server can not be reached, or has nothing certain to say. ${since} Trying again by itself.`;
    case "signed-out": return `Your session has ended. ${since} Click to sign in again.`;
    default: return "Asking the server for the newest state.";
  }
}
