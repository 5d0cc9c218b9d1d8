// Times in the reader's own zone, the exact one on hover; "38 min" counts on while the page is open.

const timeZone = document.documentElement.dataset.timeZone || undefined; // as set on the account page, else the browser's own
export const CLOCK = { hourCycle: "h23", timeZone }; // not hour12: that makes midnight 24:00 in some languages
const ZONED = new Intl.DateTimeFormat("en", {
  ...CLOCK, year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit", second: "2-digit", timeZoneName: "short",
});
const STEPS = [[86_400, "d"], [3600, "h"], [60, "min"]];

function inWords(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  for (const [size, unit] of STEPS) if (whole >= size * (size > 60 ? 2 : 1)) return `${Math.floor(whole / size)} ${unit}`;
  return `${whole} s`;
}

function put(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** A moment as a record names it: the day as 2026-11-17, since 11/12 is read in two ways, the time, and the zone that both are in. */
function parts(when) {
  const found = Object.fromEntries(ZONED.formatToParts(when).map(({ type, value }) => [type, value]));
  return { day: `${found.year}-${found.month}-${found.day}`, minute: `${found.hour}:${found.minute}`, second: found.second, zone: found.timeZoneName };
}

/** The time alone where the moment is of today: "12:03:10 GMT+1", else "2026-11-16 12:03 GMT+1". */
export function momentWords(when) {
  const { day, minute, second, zone } = parts(when);
  return day === parts(new Date()).day ? `${minute}:${second} ${zone}` : `${day} ${minute} ${zone}`;
}

function exact(element) {
  const { day, minute, second, zone } = parts(new Date(element.dateTime));
  return `${day} ${minute}:${second} ${zone} (${element.dateTime})`;
}

function localise(root) {
  for (const element of root.querySelectorAll("time[data-moment]")) {
    put(element, momentWords(new Date(element.dateTime)));
    element.title = exact(element);
  }
  for (const element of root.querySelectorAll("time[data-since]")) {
    put(element, inWords((Date.now() - new Date(element.dateTime)) / 1000));
    element.title = `since ${exact(element)}`;
  }
}

export function keepTimes() {
  localise(document);
  document.addEventListener("content", (event) => localise(event.detail));
  setInterval(() => document.hidden || localise(document), 10_000);
}
