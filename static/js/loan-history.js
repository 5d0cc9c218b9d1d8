// What a queue borrowed and lent over time, as two lines. The table below it has the same figures.

import uPlot from "../vendor/uplot/uPlot.esm.js";

import { axis, clock, colour, keepDrawn, newestInLegend, sayInstead } from "./charts.js";
import { CLOCK } from "./times.js";

const HEIGHT = 240;
const PADDING = 24;
const DAY_AND_AN_HOUR = 90_000;
const LINES = [
  { key: "borrowed", label: "Borrowed", colour: "--bar-borrow" },
  { key: "lent", label: "Lent", colour: "--bar-use" },
];

const holder = document.getElementById("loan-history");

export async function startLoanHistory() {
  try {
    await load();
  } catch (problem) {
    sayInstead(holder, `The history could not be loaded: ${problem.message}. Reload to try again.`);
  }
}

async function load() {
  const answer = await fetch(holder.dataset.url);
  if (!answer.ok) throw new Error(`the server answered with ${answer.status}`);
  const data = await answer.json();
  if (data.borrowed.every((amount) => amount === null)) {
    sayInstead(holder, "Nothing has been collected yet; the first points appear in a minute.");
    return;
  }
  keepDrawn(holder, () => draw(data), { height: HEIGHT, padding: PADDING });
}

function draw(data) {
  holder.replaceChildren();
  const lines = LINES.filter(({ key }) => data[key]);
  const drawn = [data.times, ...lines.map(({ key }) => data[key])];
  const plot = new uPlot(options(data, lines), drawn, holder);
  newestInLegend(plot);
  holder.plot = plot; // tests look at the figures behind the picture
  return plot;
}

function options(data, lines) {
  const time = (at) => moment(at, data.end - data.start);
  return {
    width: holder.clientWidth - PADDING,
    height: HEIGHT,
    scales: {
      x: { min: data.start, max: data.end },
      y: { range: (_, __, most) => [0, most * 1.1 || 1] },
    },
    axes: [
      { ...axis(), values: (_, times) => times.map(time) },
      { ...axis(), size: 64, label: data.unit, labelSize: 18 },
    ],
    series: [
      { label: "At", value: (_, at) => (at == null ? "–" : time(at)) },
      ...lines.map((line) => series(line, data.unit)),
    ],
    hooks: { setLegend: [newestInLegend] },
  };
}

function moment(at, span) {
  if (span <= DAY_AND_AN_HOUR) return clock(at);
  const parts = { day: "numeric", month: "short", timeZone: CLOCK.timeZone };
  return `${new Date(at * 1000).toLocaleDateString([], parts)} ${clock(at)}`;
}

const series = (line, unit) => ({
  label: line.label,
  stroke: colour(line.colour),
  width: 2,
  points: { show: false },
  value: (_, amount) => (amount == null ? "–" : `${Number(amount.toFixed(2))} ${unit}`),
});
