// A queue's history as lines: allocated, promised, deserved, guarantee, capability; pending as an area on a scale of its own, since it can be many times the capability;
// states as a band; edits as markers.

import uPlot from "../vendor/uplot/uPlot.esm.js";

import { axis, clock, colour, newestInLegend } from "./charts.js";
import { CLOCK, momentWords } from "./times.js";

const holder = document.getElementById("history");
const BAND = 10;
const STRIP = 0.05; // of the highest value: room below zero for the band, so that it hides no line

const LINES = [
  ["allocated", "Allocated", "--bar-use", { width: 2, fill: true }],
  ["promised", "Promised", "--bar-promise", { width: 1.5 }],
  ["deserved", "Deserved", "--bar-tick", { width: 1.5, dash: [6, 3] }],
  ["guarantee", "Guarantee", "--good", { width: 1.5, dash: [2, 3] }],
  ["capability", "Capability", "--bad", { width: 1.5 }],
  ["pending", "Pending", "--bar-ask", { width: 1, fill: true, scale: "pending" }],
];

const COLOURS = { Open: "--open", Closing: "--closing", Closed: "--closed", Suspended: "--suspended", Unknown: "--unknown" };

function moment(at, span) {
  const day = new Date(at * 1000).toLocaleDateString([], { day: "numeric", month: "short", timeZone: CLOCK.timeZone });
  return span > 90_000 ? `${day} ${clock(at)}` : clock(at);
}

const amount = (number, unit) => (number == null ? "–" : `${Number(number.toFixed(2)).toLocaleString([])} ${unit}`);

function bands(states) {
  return (plot) => {
    const { ctx, bbox } = plot;
    const right = bbox.left + bbox.width;
    ctx.save();
    for (const { start, end, state } of states) {
      const from = Math.max(bbox.left, plot.valToPos(start, "x", true));
      const to = Math.min(right, plot.valToPos(end, "x", true));
      if (to <= from) continue;
      ctx.fillStyle = colour(COLOURS[state] || "--closed");
      ctx.fillRect(from, bbox.top + bbox.height - BAND, to - from, BAND);
      if (state !== "Suspended") continue;
      ctx.strokeStyle = colour("--surface");
      for (let x = from; x < to; x += 8) line(ctx, x, bbox.top + bbox.height, Math.min(to, x + BAND), bbox.top + bbox.height - BAND);
    }
    ctx.restore();
  };
}

function markers(marks) {
  return (plot) => {
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.strokeStyle = colour("--accent");
    ctx.setLineDash([3, 3]);
    for (const { at } of marks) {
      const x = plot.valToPos(at, "x", true);
      if (x >= bbox.left && x <= bbox.left + bbox.width) line(ctx, x, bbox.top, x, bbox.top + bbox.height);
    }
    ctx.restore();
  };
}

function line(ctx, x1, y1, x2, y2) {
  ctx.beginPath();
  ctx.moveTo(x1, y1);
  ctx.lineTo(x2, y2);
  ctx.stroke();
}

/** Both scales have their zero at the same height, above the band. */
const fromZero = (_, __, most) => [-(most * STRIP || STRIP), most * 1.1 || 1];

/** The right side is pending's; without any there is nothing to read off it. */
const rightAxis = (data) => ({
  ...axis(),
  scale: "pending",
  side: 1,
  size: 64,
  grid: { show: false },
  label: `pending ${data.unit}`,
  labelSize: 18,
  values: (_, amounts) => amounts.map((number) => (number < 0 ? "" : number.toLocaleString([]))),
  show: data.pending.some(Boolean),
});

function draw(data) {
  const span = data.end - data.start;
  const options = {
    width: holder.clientWidth - 24,
    height: 320,
    scales: { x: { min: data.start, max: data.end }, y: { range: fromZero }, pending: { range: fromZero } },
    axes: [{ ...axis(), values: (_, times) => times.map((at) => moment(at, span)) }, { ...axis(), size: 64, label: data.unit, labelSize: 18 }, rightAxis(data)],
    series: [{ label: "At", value: (_, at) => (at == null ? "–" : moment(at, span)) }, ...LINES.map((line) => series(line, data))],
    hooks: { draw: [bands(data.states), markers(data.markers)], setLegend: [newestInLegend] },
  };
  holder.replaceChildren();
  const plot = new uPlot(options, [data.times, ...LINES.map(([key]) => data[key])], holder);
  newestInLegend(plot);
  holder.plot = plot; // for whoever looks at the figures behind the picture
  holder.append(strip(data.states), keys(data));
  return plot;
}

function series([key, label, name, { width, dash, fill, scale = "y" }], data) {
  const stroke = colour(name);
  const area = fill ? `color-mix(in srgb, ${stroke} ${key === "pending" ? 18 : 12}%, transparent)` : undefined;
  const words = key === "pending" && data.pending.some(Boolean) ? `${label} (right)` : label;
  return { label: words, scale, stroke, width, dash, fill: area, points: { show: false }, value: (_, number) => amount(number, data.unit) };
}

/** Which states the strip below the lines shows. */
function strip(states) {
  const words = Object.assign(document.createElement("p"), { className: "quiet band-key", textContent: "The strip below the lines is the state: " });
  for (const state of new Set(states.map((band) => band.state))) {
    const badge = Object.assign(document.createElement("span"), { className: "state", textContent: state });
    badge.dataset.state = state;
    words.append(badge, " ");
  }
  words.hidden = !states.length;
  return words;
}

function keys(data) {
  const list = document.createElement("ul");
  list.className = "marks";
  for (const { at, actor, action, message } of data.markers.slice(-8).reverse()) {
    const item = document.createElement("li");
    item.textContent = `${momentWords(new Date(at * 1000))} ${action} by ${actor || "the system"}: ${message}`;
    list.append(item);
  }
  return list;
}

function empty(since) {
  const words = document.createElement("p");
  words.className = "empty";
  words.textContent = since
    ? `Collecting since ${new Date(since * 1000).toLocaleTimeString([], CLOCK)}; the first points appear in a minute.`
    : "Nothing has been collected yet; the first points appear a minute after the first session.";
  holder.replaceChildren(words);
}

async function load() {
  const answer = await fetch(holder.dataset.url);
  if (!answer.ok) throw new Error(`the server answered with ${answer.status}`);
  const data = await answer.json();
  if (!data.times.length || data.allocated.every((amount) => amount === null)) return empty(data.since);
  let plot = draw(data);
  const again = () => {
    plot.destroy();
    plot = draw(data);
  };
  document.documentElement.addEventListener("themechange", again);
  new ResizeObserver(() => plot.setSize({ width: holder.clientWidth - 24, height: 320 })).observe(holder);
}

export const startHistory = () =>
  load().catch((problem) => (holder.innerHTML = "", holder.append(Object.assign(document.createElement("p"), { className: "empty", textContent: `The history could not be loaded: ${problem.message}. Reload to try again.` }))));
