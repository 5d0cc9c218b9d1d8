// How long the last sessions took, by part, one upon the other.

import uPlot from "../vendor/uplot/uPlot.esm.js";

import { axis, clock, colour, keepDrawn, newestInLegend } from "./charts.js";

const HEIGHT = 220;
const LONGEST_PAUSE_SECONDS = 30;
const COLOURS = ["--run", "--wait", "--accent", "--ok", "--starting"];
const WITH_SECONDS = { hour: "2-digit", minute: "2-digit", second: "2-digit" };

const holder = document.querySelector("[data-durations]");

export async function startDurations() {
  const answer = await fetch(holder.dataset.durations);
  if (!answer.ok) {
    const why = `the server answered with ${answer.status}`;
    holder.textContent = `The durations could not be read: ${why}.`;
    return;
  }
  const data = withGaps(await answer.json());
  if (!data.times.length) {
    holder.textContent = "No session has ended yet.";
    return;
  }
  const chart = keepDrawn(holder, () => draw(data), { height: HEIGHT });
  document.addEventListener("refreshed", () => takeNewest(data, chart));
}

async function takeNewest(data, chart) {
  const answer = await fetch(holder.dataset.durations).catch(() => null);
  if (!answer?.ok) return;
  Object.assign(data, withGaps(await answer.json()));
  chart.plot.setData([data.times, ...layers(data)]);
}

/** Where no session ran for a while the lines break off instead of leading across. */
function withGaps(data) {
  const spread = { times: [], numbers: [], parts: data.parts.map((part) => ({ ...part, ms: [] })) };
  const add = (time, number, msOf) => {
    spread.times.push(time);
    spread.numbers.push(number);
    spread.parts.forEach((part, which) => part.ms.push(msOf(which)));
  };
  data.times.forEach((time, place) => {
    const before = data.times[place - 1];
    if (place && time - before > LONGEST_PAUSE_SECONDS) add(before + 1, null, () => null);
    add(time, data.numbers[place], (which) => data.parts[which].ms[place]);
  });
  return spread;
}

/** Each part on top of those before it. The largest comes first: the others are painted over it. */
function layers({ parts }) {
  const sums = [];
  for (const { ms } of parts) sums.push(onTopOf(sums.at(-1), ms));
  return sums.reverse();
}

function onTopOf(below, ms) {
  return ms.map((one, place) => (one === null ? null : one + (below?.[place] ?? 0)));
}

function draw(data) {
  holder.replaceChildren();
  const plot = new uPlot(options(data), [data.times, ...layers(data)], holder);
  newestInLegend(plot);
  return plot;
}

function options(data) {
  const series = data.parts.map(({ title }, part) => partSeries(title, part, data));
  return {
    width: holder.clientWidth,
    height: HEIGHT,
    scales: { y: { range: (_, __, most) => [0, most * 1.1 || 1] } },
    axes: [timeAxis(), { ...axis(), size: 58, label: "ms", labelSize: 18 }],
    series: [sessionSeries(data), ...series.reverse()],
    hooks: { setLegend: [newestInLegend] },
  };
}

const timeAxis = () => ({
  ...axis(),
  space: 80,
  values: (_, times) => times.map((at) => clock(at, WITH_SECONDS)),
});

const sessionSeries = (data) => ({
  label: "Session",
  value: (_, __, ___, at) => String(data.numbers[at] ?? "–"),
});

/** Values are looked up when they are shown: the data are replaced while the chart stays. */
function partSeries(title, part, data) {
  const stroke = colour(COLOURS[part % COLOURS.length]);
  return {
    label: title,
    stroke,
    width: 1,
    fill: `color-mix(in srgb, ${stroke} 65%, ${colour("--surface")})`,
    points: { show: false },
    value: (_, __, ___, at) => duration(data.parts[part].ms[at]),
  };
}

const duration = (ms) => (ms == null ? "–" : `${ms.toFixed(1)} ms`);
