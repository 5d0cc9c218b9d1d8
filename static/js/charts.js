// What the charts have in common: colours from the style sheet, times as everywhere else, a legend that is never empty.

import { CLOCK } from "./times.js";

export const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export const axis = () => ({ stroke: colour("--ink-muted"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line") } });

export const clock = (at, parts = { hour: "2-digit", minute: "2-digit" }) => new Date(at * 1000).toLocaleTimeString([], { ...parts, ...CLOCK });

/** While nothing is pointed at, the legend tells the newest values. */
export function newestInLegend(plot) {
  const last = plot.data[0].length - 1;
  if (plot.legend.idx == null && last >= 0) plot.setLegend({ idx: last }, false);
}
