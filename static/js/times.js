// Times in the reader's own zone, with the exact one on hover. "38 min" counts on while the page is
// open.

import { setText } from "./elements.js";

const COUNT_EVERY_MS = 10_000;

// The zone is set on the account page; without one it is the browser's.
const timeZone = document.documentElement.dataset.timeZone || undefined;

// Not hour12: that makes midnight 24:00 in some languages.
export const CLOCK = { hourCycle: "h23", timeZone };

const ZONED = new Intl.DateTimeFormat("en", {
  ...CLOCK,
  year: "numeric",
  month: "2-digit",
  day: "2-digit",
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  timeZoneName: "short",
});

const UNITS = [
  { name: "d", seconds: 86_400, from: 2 * 86_400 },
  { name: "h", seconds: 3600, from: 2 * 3600 },
  { name: "min", seconds: 60, from: 60 },
];

export function keepTimes() {
  showTimes(document);
  document.addEventListener("content", (event) => showTimes(event.detail));
  setInterval(() => {
    if (!document.hidden) showTimes(document);
  }, COUNT_EVERY_MS);
}

/** The time alone where the moment is of today: "12:03:10 GMT+1", else "2026-11-16 12:03 GMT+1". */
export function momentWords(when) {
  const { day, minute, second, zone } = parts(when);
  const isToday = day === parts(new Date()).day;
  return isToday ? `${minute}:${second} ${zone}` : `${day} ${minute} ${zone}`;
}

function showTimes(root) {
  for (const element of root.querySelectorAll("time[data-moment]")) {
    setText(element, momentWords(new Date(element.dateTime)));
    element.title = exactWords(element);
  }
  for (const element of root.querySelectorAll("time[data-since]")) {
    const seconds = (Date.now() - new Date(element.dateTime)) / 1000;
    setText(element, durationWords(seconds));
    element.title = `since ${exactWords(element)}`;
  }
  for (const element of root.querySelectorAll("time[data-until]")) {
    const seconds = (new Date(element.dateTime) - Date.now()) / 1000;
    setText(element, durationWords(seconds));
    element.title = `until ${exactWords(element)}`;
  }
}

function durationWords(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  const unit = UNITS.find(({ from }) => whole >= from);
  return unit ? `${Math.floor(whole / unit.seconds)} ${unit.name}` : `${whole} s`;
}

function exactWords({ dateTime }) {
  const { day, minute, second, zone } = parts(new Date(dateTime));
  return `${day} ${minute}:${second} ${zone} (${dateTime})`;
}

/** The day as 2026-11-17, since 11/12 is read in two ways; the time; and the zone of both. */
function parts(when) {
  const found = {};
  for (const { type, value } of ZONED.formatToParts(when)) found[type] = value;
  return {
    day: `${found.year}-${found.month}-${found.day}`,
    minute: `${found.hour}:${found.minute}`,
    second: found.second,
    zone: found.timeZoneName,
  };
}
