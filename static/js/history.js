// A queue's history as lines: allocated, deserved, guarantee, limit; pending as an area; states as a band; edits as markers.

import uPlot from "../vendor/uplot/uPlot.esm.js";

import { CLOCK } from "./times.js";

const holder = document.getElementById("history");
const value = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const BAND = 10;

const LINES = [
  ["allocated", "Allocated", "--bar-use", { width: 2, fill: true }],
  ["deserved", "Deserved", "--bar-tick", { width: 1.5, dash: [6, 3] }],
  ["guarantee", "Guarantee", "--good", { width: 1.5, dash: [2, 3] }],
  ["capability", "Limit", "--bad", { width: 1.5 }],
  ["pending", "Pending", "--bar-ask", { width: 1, fill: true }],
];

const COLOURS = { Open: "--open", Closing: "--closing", Closed: "--closed", Suspended: "--suspended", Unknown: "--unknown" };

function clock(at, span) {
  const when = new Date(at * 1000);
  const time = when.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", ...CLOCK });
  return span > 90_000 ? `${when.toLocaleDateString([], { day: "numeric", month: "short", timeZone: CLOCK.timeZone })} ${time}` : time;
}

function bands(states) {
  return (plot) => {
    const { ctx, bbox } = plot;
    const right = bbox.left + bbox.width;
    ctx.save();
    for (const { start, end, state } of states) {
      const from = Math.max(bbox.left, plot.valToPos(start, "x", true));
      const to = Math.min(right, plot.valToPos(end, "x", true));
      if (to <= from) continue;
      ctx.fillStyle = value(COLOURS[state] || "--closed");
      ctx.fillRect(from, bbox.top + bbox.height - BAND, to - from, BAND);
      if (state !== "Suspended") continue;
      ctx.strokeStyle = value("--surface");
      for (let x = from; x < to; x += 8) line(ctx, x, bbox.top + bbox.height, Math.min(to, x + BAND), bbox.top + bbox.height - BAND);
    }
    ctx.restore();
  };
}

function markers(marks) {
  return (plot) => {
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.strokeStyle = value("--accent");
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

function draw(data) {
  const axis = { stroke: value("--ink-muted"), grid: { stroke: value("--line"), width: 1 }, ticks: { stroke: value("--line") } };
  const options = {
    width: holder.clientWidth - 24,
    height: 320,
    scales: { x: { min: data.start, max: data.end }, y: { range: (_, __, most) => [0, most * 1.1 || 1] } },
    axes: [{ ...axis, values: (_, times) => times.map((at) => clock(at, data.end - data.start)) }, { ...axis, size: 64, label: data.unit, labelSize: 18 }],
    series: [{}, ...LINES.map(([key, label, colour, style]) => series(key, label, value(colour), style))],
    hooks: { draw: [bands(data.states), markers(data.markers)] },
  };
  holder.replaceChildren();
  const plot = new uPlot(options, [data.times, ...LINES.map(([key]) => data[key])], holder);
  holder.append(keys(data));
  return plot;
}

function series(key, label, colour, { width, dash, fill }) {
  return { label, stroke: colour, width, dash, fill: fill ? `color-mix(in srgb, ${colour} ${key === "pending" ? 18 : 12}%, transparent)` : undefined, points: { show: false } };
}

function keys(data) {
  const list = document.createElement("ul");
  list.className = "marks";
  for (const { at, actor, action, message } of data.markers.slice(-8).reverse()) {
    const item = document.createElement("li");
    item.textContent = `${new Date(at * 1000).toLocaleTimeString([], CLOCK)} ${action} by ${actor || "the system"}: ${message}`;
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
