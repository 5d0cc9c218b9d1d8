// A queue's history as lines: allocated, promised, deserved, guarantee, capability. Pending is an
// area on a scale of its own, since it can be many times the capability. States are a strip below
// the lines, edits are markers.

import uPlot from "../vendor/uplot/uPlot.esm.js";

import { axis, clock, colour, keepDrawn, newestInLegend, sayInstead } from "./charts.js";
import { element } from "./elements.js";
import { CLOCK, momentWords } from "./times.js";

const HEIGHT = 320;
const PADDING = 24;
const BAND = 10; // height of the strip of states
const STRIP = 0.05; // of the highest value: room below zero for the strip, so that it hides no line
const DAY_AND_AN_HOUR = 90_000;
const MOST_MARKS = 8;

const LINES = [
  { key: "allocated", label: "Allocated", colour: "--bar-use", width: 2, area: 12 },
  { key: "promised", label: "Promised", colour: "--bar-promise", width: 1.5 },
  { key: "deserved", label: "Deserved", colour: "--bar-tick", width: 1.5, dash: [6, 3] },
  { key: "guarantee", label: "Guarantee", colour: "--good", width: 1.5, dash: [2, 3] },
  { key: "capability", label: "Capability", colour: "--bad", width: 1.5 },
  { key: "pending", label: "Pending", colour: "--bar-ask", width: 1, area: 18, scale: "pending" },
];

const STATE_COLOURS = {
  Open: "--open",
  Closing: "--closing",
  Closed: "--closed",
  Suspended: "--suspended",
  Unknown: "--unknown",
};

const holder = document.getElementById("history");

export async function startHistory() {
  try {
    await load();
  } catch (problem) {
    const words = `The history could not be loaded: ${problem.message}. Reload to try again.`;
    sayInstead(holder, words);
  }
}

async function load() {
  const answer = await fetch(holder.dataset.url);
  if (!answer.ok) throw new Error(`the server answered with ${answer.status}`);
  const data = await answer.json();
  if (data.allocated.every((amount) => amount === null)) {
    sayInstead(holder, emptyWords(data.since));
    return;
  }
  keepDrawn(holder, () => draw(data), { height: HEIGHT, padding: PADDING });
}

function emptyWords(since) {
  if (!since) {
    const when = "the first points appear a minute after the first session";
    return `Nothing has been collected yet; ${when}.`;
  }
  const time = new Date(since * 1000).toLocaleTimeString([], CLOCK);
  return `Collecting since ${time}; the first points appear in a minute.`;
}

function draw(data) {
  holder.replaceChildren();
  const values = [data.times, ...LINES.map(({ key }) => data[key])];
  const plot = new uPlot(options(data), values, holder);
  newestInLegend(plot);
  holder.plot = plot; // tests look at the figures behind the picture
  holder.append(stateKey(data.states), markList(data.markers));
  return plot;
}

function options(data) {
  const time = (at) => moment(at, data.end - data.start);
  return {
    width: holder.clientWidth - PADDING,
    height: HEIGHT,
    scales: {
      x: { min: data.start, max: data.end },
      y: { range: fromZero },
      pending: { range: fromZero },
    },
    axes: [
      { ...axis(), values: (_, times) => times.map(time) },
      { ...axis(), size: 64, label: data.unit, labelSize: 18 },
      pendingAxis(data),
    ],
    series: [
      { label: "At", value: (_, at) => (at == null ? "–" : time(at)) },
      ...LINES.map((line) => series(line, data)),
    ],
    hooks: {
      draw: [(plot) => drawStates(plot, data.states), (plot) => drawMarks(plot, data.markers)],
      setLegend: [newestInLegend],
    },
  };
}

function moment(at, span) {
  if (span <= DAY_AND_AN_HOUR) return clock(at);
  const parts = { day: "numeric", month: "short", timeZone: CLOCK.timeZone };
  return `${new Date(at * 1000).toLocaleDateString([], parts)} ${clock(at)}`;
}

/** Both scales have their zero at the same height, above the strip of states. */
function fromZero(_, __, most) {
  return [-(most * STRIP || STRIP), most * 1.1 || 1];
}

const hasPending = (data) => data.pending.some(Boolean);

/** The right side is pending's; without any there is nothing to read there. */
const pendingAxis = (data) => ({
  ...axis(),
  scale: "pending",
  side: 1,
  size: 64,
  grid: { show: false },
  label: `pending ${data.unit}`,
  labelSize: 18,
  values: (_, amounts) => amounts.map((number) => (number < 0 ? "" : number.toLocaleString([]))),
  show: hasPending(data),
});

function series(line, data) {
  const stroke = colour(line.colour);
  const isRight = line.key === "pending" && hasPending(data);
  return {
    label: isRight ? `${line.label} (right)` : line.label,
    scale: line.scale ?? "y",
    stroke,
    width: line.width,
    dash: line.dash,
    fill: line.area && `color-mix(in srgb, ${stroke} ${line.area}%, transparent)`,
    points: { show: false },
    value: (_, number) => amount(number, data.unit),
  };
}

function amount(number, unit) {
  if (number == null) return "–";
  return `${Number(number.toFixed(2)).toLocaleString([])} ${unit}`;
}

function drawStates(plot, states) {
  plot.ctx.save();
  for (const band of states) drawState(plot, band);
  plot.ctx.restore();
}

function drawState(plot, { start, end, state }) {
  const { ctx, bbox } = plot;
  const from = Math.max(bbox.left, plot.valToPos(start, "x", true));
  const to = Math.min(bbox.left + bbox.width, plot.valToPos(end, "x", true));
  if (to <= from) return;
  const bottom = bbox.top + bbox.height;
  ctx.fillStyle = colour(STATE_COLOURS[state] ?? "--closed");
  ctx.fillRect(from, bottom - BAND, to - from, BAND);
  if (state === "Suspended") drawHatch(ctx, from, to, bottom);
}

function drawHatch(ctx, from, to, bottom) {
  ctx.strokeStyle = colour("--surface");
  for (let x = from; x < to; x += 8) {
    drawLine(ctx, [x, bottom], [Math.min(to, x + BAND), bottom - BAND]);
  }
}

function drawMarks(plot, marks) {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.strokeStyle = colour("--accent");
  ctx.setLineDash([3, 3]);
  for (const { at } of marks) {
    const x = plot.valToPos(at, "x", true);
    const isInside = x >= bbox.left && x <= bbox.left + bbox.width;
    if (isInside) drawLine(ctx, [x, bbox.top], [x, bbox.top + bbox.height]);
  }
  ctx.restore();
}

function drawLine(ctx, from, to) {
  ctx.beginPath();
  ctx.moveTo(...from);
  ctx.lineTo(...to);
  ctx.stroke();
}

/** Which states the strip below the lines shows. */
function stateKey(states) {
  const words = element("p", "The strip below the lines is the state: ");
  words.className = "quiet band-key";
  words.hidden = !states.length;
  for (const state of new Set(states.map((band) => band.state))) {
    const badge = element("span", state, { className: "state" });
    badge.dataset.state = state;
    words.append(badge, " ");
  }
  return words;
}

function markList(markers) {
  const list = element("ul", "", { className: "marks" });
  for (const marker of markers.slice(-MOST_MARKS).reverse()) {
    list.append(element("li", markWords(marker)));
  }
  return list;
}

function markWords({ at, actor, action, message }) {
  const time = momentWords(new Date(at * 1000));
  return `${time} ${action} by ${actor || "the system"}: ${message}`;
}
