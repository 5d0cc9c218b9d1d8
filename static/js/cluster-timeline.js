// The timeline of the cluster: arrow keys and + and - move and zoom, a drag across the lanes zooms
// to what was dragged over, a click between marks opens the session of that moment.

const KEYS = {
  ArrowLeft: "earlier",
  ArrowRight: "later",
  "+": "nearer",
  "=": "nearer",
  "-": "wider",
};
const LEAST = 8; // pixels: less is a click
const BY_KEY = "timeline-moved-by-key"; // the next page is another part of the same timeline

export function startClusterTimeline(place) {
  if (sessionStorage.getItem(BY_KEY)) place.focus({ preventScroll: true });
  sessionStorage.removeItem(BY_KEY);
  place.addEventListener("keydown", (event) => onKey(event, place));
  let from = null;
  place.addEventListener("pointerdown", (event) => {
    const lane = event.target.closest(".lane-marks");
    from = lane && event.button === 0 && !event.target.closest("a") ? event.clientX : null;
    if (from !== null) event.preventDefault();
  });
  place.addEventListener("pointerup", (event) => {
    if (from === null) return;
    release(place, from, event.clientX);
    from = null;
  });
}

function onKey(event, place) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target !== place && !event.target.closest("a.mark")) return;
  const move = KEYS[event.key];
  if (!move) return;
  event.preventDefault();
  const link = document.querySelector(`[data-move="${move}"]`);
  if (!link) return;
  sessionStorage.setItem(BY_KEY, "yes");
  link.click();
}

function release(place, from, to) {
  const first = momentAt(place, Math.min(from, to));
  const last = momentAt(place, Math.max(from, to));
  if (Math.abs(to - from) >= LEAST) go(place, { start: first, end: last });
  else go(place, { start: place.dataset.start, end: place.dataset.end, at: first }, "#moment");
}

function momentAt(place, x) {
  const lane = place.querySelector(".lane-marks").getBoundingClientRect();
  const part = Math.min(Math.max((x - lane.left) / lane.width, 0), 1);
  const start = Date.parse(place.dataset.start);
  const end = Date.parse(place.dataset.end);
  return new Date(start + part * (end - start)).toISOString();
}

function go(place, values, hash = "") {
  const query = new URLSearchParams(place.dataset.kept);
  for (const [name, value] of Object.entries(values)) query.set(name, value);
  location.href = `?${query}${hash}`;
}
