// Times in the reader's own zone, the exact one on hover; "38 min" counts on while the page is open.

const timeZone = document.documentElement.dataset.timeZone || undefined; // as set on the account page, else the browser's own
export const CLOCK = { hourCycle: "h23", timeZone }; // not hour12: that makes midnight 24:00 in some languages
const STEPS = [[86_400, "d"], [3600, "h"], [60, "min"]];

function inWords(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  for (const [size, unit] of STEPS) if (whole >= size * (size > 60 ? 2 : 1)) return `${Math.floor(whole / size)} ${unit}`;
  return `${whole} s`;
}

function put(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function localise(root) {
  const day = (when) => when.toLocaleDateString([], { timeZone });
  const today = day(new Date());
  for (const element of root.querySelectorAll("time[data-moment]")) {
    const when = new Date(element.dateTime);
    const time = when.toLocaleTimeString([], CLOCK);
    put(element, day(when) === today ? time : `${day(when)} ${time.slice(0, 5)}`);
    element.title = `${when.toLocaleString([], CLOCK)} (${element.dateTime})`;
  }
  for (const element of root.querySelectorAll("time[data-since]")) {
    put(element, inWords((Date.now() - new Date(element.dateTime)) / 1000));
    element.title = `since ${new Date(element.dateTime).toLocaleString([], CLOCK)} (${element.dateTime})`;
  }
}

export function keepTimes() {
  localise(document);
  document.addEventListener("content", (event) => localise(event.detail));
  setInterval(() => document.hidden || localise(document), 10_000);
}
