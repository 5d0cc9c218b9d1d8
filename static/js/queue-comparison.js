// What up to four queues had allocated over time: a line each, on one scale.

import uPlot from "../vendor/uplot/uPlot.esm.js";

import { axis, clock, colour, keepDrawn, newestInLegend, sayInstead } from "./charts.js";

const HEIGHT = 280;
const PADDING = 24;
const LOOKS = [
  { colour: "--bar-use" },
  { colour: "--bar-borrow", dash: [8, 3] },
  { colour: "--good", dash: [2, 3] },
  { colour: "--bad", dash: [10, 3, 2, 3] },
];

const holder = document.getElementById("queue-comparison");

export function startComparison() {
  const data = JSON.parse(document.getElementById("comparison-data").textContent);
  if (data.lines.every(({ values }) => values.every((amount) => amount === null))) {
    sayInstead(holder, "Nothing has been collected yet; the first points appear in a minute.");
    return;
  }
  keepDrawn(holder, () => draw(data), { height: HEIGHT, padding: PADDING });
}

function draw(data) {
  holder.replaceChildren();
  const values = [data.times, ...data.lines.map((line) => line.values)];
  const plot = new uPlot(options(data), values, holder);
  newestInLegend(plot);
  holder.plot = plot; // tests look at the figures behind the picture
  return plot;
}

function options(data) {
  return {
    width: holder.clientWidth - PADDING,
    height: HEIGHT,
    scales: {
      x: { min: data.start, max: data.end },
      y: { range: (_, __, most) => [0, most * 1.1 || 1] },
    },
    axes: [
      { ...axis(), values: (_, times) => times.map((at) => clock(at)) },
      { ...axis(), size: 64, label: data.unit, labelSize: 18 },
    ],
    series: [
      { label: "At", value: (_, at) => (at == null ? "–" : clock(at)) },
      ...data.lines.map((line, place) => series(line.queue, LOOKS[place], data.unit)),
    ],
    hooks: { setLegend: [newestInLegend] },
  };
}

const series = (label, look, unit) => ({
  label,
  stroke: colour(look.colour),
  dash: look.dash,
  width: 2,
  points: { show: false },
  value: (_, amount) => (amount == null ? "–" : `${Number(amount.toFixed(2))} ${unit}`),
});
