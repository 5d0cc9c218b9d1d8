// Amounts that add up, over time, as areas on top of each other. The figures come with the page; a
// table below the chart has them too.

import uPlot from "../vendor/uplot/uPlot.esm.js";

import { axis, colour, keepDrawn, newestInLegend, sayInstead } from "./charts.js";

const HEIGHT = 280;
const PADDING = 24;
const COLOURS = 6;

export function startStacked() {
  for (const holder of document.querySelectorAll("[data-stacked]")) start(holder);
}

function start(holder) {
  const data = JSON.parse(document.getElementById(holder.dataset.stacked).textContent);
  if (data.series.length === 0) {
    sayInstead(holder, "Nothing to draw in this time.");
    return;
  }
  keepDrawn(holder, () => draw(holder, data), { height: HEIGHT, padding: PADDING });
}

function draw(holder, data) {
  holder.replaceChildren();
  // The largest area is drawn first, and the others over it. The last step has a width too.
  const sums = stacked(data).map((values) => [...values, values.at(-1)]);
  const times = [...data.times, data.end];
  const plot = new uPlot(options(holder, data), [times, ...sums.toReversed()], holder);
  newestInLegend(plot);
  holder.plot = plot; // tests look at the figures behind the picture
  return plot;
}

/** Each series with all those below it. Where nothing is known there is a gap, not 0. */
function stacked(data) {
  let below = data.times.map(() => 0);
  return data.series.map(({ values }) => {
    below = below.map((sum, place) => (values[place] === null ? null : sum + values[place]));
    return below;
  });
}

function options(holder, data) {
  const moment = (at) => timeOf(at, data.step);
  const most = data.most;
  return {
    width: holder.clientWidth - PADDING,
    height: HEIGHT,
    scales: { y: { range: (_, __, top) => [0, most ?? (top * 1.05 || 1)] } },
    axes: [
      { ...axis(), values: (_, times) => times.map(moment), space: 90 },
      { ...axis(), size: 64, label: data.unit, labelSize: 18 },
    ],
    series: [
      {
        label: "From",
        value: (_, __, ___, at) => (at == null ? "–" : moment(nearest(data.times, at))),
      },
      ...data.series.map((entry, place) => series(entry, place, data)).toReversed(),
    ],
    hooks: { setLegend: [newestInLegend] },
  };
}

function series(entry, place, data) {
  const own = colour(entry.colour ?? (place < COLOURS ? `--series-${place}` : "--grey"));
  return {
    label: entry.label,
    stroke: own,
    fill: own,
    width: 1,
    paths: uPlot.paths.stepped({ align: 1 }),
    points: { show: false },
    value: (_, __, ___, at) => (at == null ? "–" : amount(nearest(entry.values, at), data.unit)),
  };
}

function amount(value, unit) {
  if (value === null) return "no data";
  return `${Number(value.toPrecision(4)).toLocaleString()} ${unit}`;
}

/** The end of the last step belongs to it. */
const nearest = (values, at) => values[Math.min(at, values.length - 1)];

function timeOf(at, step) {
  const moment = new Date(at * 1000);
  const day = moment.toLocaleDateString([], { day: "numeric", month: "short", timeZone: "UTC" });
  return step === "hour" ? `${day} ${moment.toISOString().slice(11, 16)}` : day;
}
