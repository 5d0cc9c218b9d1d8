// What the charts share: colours of the style sheet, times as everywhere else, and a legend that
// is never empty.

import { element } from "./elements.js";
import { CLOCK } from "./times.js";

const TO_THE_MINUTE = { hour: "2-digit", minute: "2-digit" };

export const colour = (name) =>
  getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export const axis = () => ({
  stroke: colour("--ink-muted"),
  grid: { stroke: colour("--line"), width: 1 },
  ticks: { stroke: colour("--line") },
});

export function clock(at, parts = TO_THE_MINUTE) {
  return new Date(at * 1000).toLocaleTimeString([], { ...parts, ...CLOCK });
}

/** While nothing is pointed at, the legend shows the newest values. */
export function newestInLegend(plot) {
  const last = plot.data[0].length - 1;
  if (plot.legend.idx == null && last >= 0) plot.setLegend({ idx: last }, false);
}

/** Draw now, and again in the colours of another theme; the chart is as wide as its holder. */
export function keepDrawn(holder, draw, { height, padding = 0 }) {
  const chart = { plot: draw() };
  document.documentElement.addEventListener("themechange", () => {
    chart.plot.destroy(); // or it goes on listening to the window
    chart.plot = draw();
  });
  const resize = () => chart.plot.setSize({ width: holder.clientWidth - padding, height });
  new ResizeObserver(resize).observe(holder);
  return chart;
}

export function sayInstead(holder, words) {
  holder.replaceChildren(element("p", words, { className: "empty" }));
}
