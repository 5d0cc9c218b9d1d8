// How long the last sessions took, by part, one upon the other.

import uPlot from "../vendor/uplot/uPlot.esm.js";

import { axis, clock, colour, newestInLegend } from "./charts.js";

const holder = document.querySelector("[data-durations]");
const LONGEST_PAUSE_SECONDS = 30;
const COLOURS = ["--run", "--wait", "--accent", "--ok", "--starting"];
const WITH_SECONDS = { hour: "2-digit", minute: "2-digit", second: "2-digit" };

/** Each part on top of those before it, so that the uppermost line is the whole. */
function stacked(parts) {
  const sums = [];
  for (const { ms } of parts) sums.push(ms.map((one, place) => (one === null ? null : one + (sums.at(-1)?.[place] ?? 0))));
  return sums;
}

/** Where no session ran for a while the lines break off instead of leading across. */
function withGaps(data) {
  const times = [];
  const numbers = [];
  const parts = data.parts.map((part) => ({ ...part, ms: [] }));
  data.times.forEach((time, place) => {
    if (place && time - data.times[place - 1] > LONGEST_PAUSE_SECONDS) {
      times.push(data.times[place - 1] + 1);
      numbers.push(null);
      for (const part of parts) part.ms.push(null);
    }
    times.push(time);
    numbers.push(data.numbers[place]);
    parts.forEach((part, which) => part.ms.push(data.parts[which].ms[place]));
  });
  return { times, numbers, parts };
}

function draw(data) {
  const sums = stacked(data.parts).reverse(); // the largest first: the smaller ones are painted over it
  const ms = (part, at) => data.parts[part].ms[at]; // asked for when it is shown: the data are replaced while the chart stays
  const series = data.parts.map(({ title }, part) => {
    const stroke = colour(COLOURS[part % COLOURS.length]);
    return { label: title, stroke, width: 1, fill: `color-mix(in srgb, ${stroke} 65%, ${colour("--surface")})`, points: { show: false }, value: (_, __, ___, at) => (ms(part, at) == null ? "–" : `${ms(part, at).toFixed(1)} ms`) };
  }).reverse();
  const options = {
    width: holder.clientWidth,
    height: 220,
    scales: { y: { range: (_, __, most) => [0, most * 1.1 || 1] } },
    axes: [{ ...axis(), space: 80, values: (_, times) => times.map((at) => clock(at, WITH_SECONDS)) }, { ...axis(), size: 58, label: "ms", labelSize: 18 }],
    series: [{ value: (_, __, ___, at) => (data.numbers[at] == null ? "–" : String(data.numbers[at])), label: "Session" }, ...series],
    hooks: { setLegend: [newestInLegend] },
  };
  holder.replaceChildren();
  const plot = new uPlot(options, [data.times, ...sums], holder);
  newestInLegend(plot);
  return plot;
}

export async function drawDurations() {
  const answer = await fetch(holder.dataset.durations);
  if (!answer.ok) return void (holder.textContent = `The durations could not be read: the server answered with ${answer.status}.`);
  const data = withGaps(await answer.json());
  if (!data.times.length) return void (holder.textContent = "No session has ended yet.");
  let plot = draw(data);
  addEventListener("resize", () => plot.setSize({ width: holder.clientWidth, height: 220 }));
  new MutationObserver(() => {
    plot.destroy(); // or it goes on listening to the window
    plot = draw(data);
  }).observe(document.documentElement, { attributeFilter: ["data-bs-theme"] });
  setInterval(async () => {
    if (document.hidden) return;
    const again = await fetch(holder.dataset.durations).catch(() => null);
    if (!again?.ok) return;
    Object.assign(data, withGaps(await again.json()));
    plot.setData([data.times, ...stacked(data.parts).reverse()]);
  }, 5000);
}
