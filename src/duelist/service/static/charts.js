// Small charts, drawn by hand. Each has a sentence for those who cannot see it.

import { percent, svg } from "./dom.js";

const HIGH = 170;
const EDGE = { left: 46, right: 8, top: 12, bottom: 26 };

// One scale for all rows, so that their bars can be compared; zero is the mean of the active items.
export function scaleOf(rows) {
  const low = Math.min(0, ...rows.map((row) => row.low ?? 0));
  const high = Math.max(0, ...rows.map((row) => row.high ?? 0));
  const margin = 0.04 * (high - low || 1);
  return { low: low - margin, high: high + margin };
}

export function intervalBar(row, scale) {
  if (row.low === null) return "not offered yet";
  const x = (value) => (240 * (value - scale.low)) / (scale.high - scale.low);
  const words = `${row.utility.toFixed(2)}, between ${row.low.toFixed(2)} and ${row.high.toFixed(2)}`;
  return svg(
    "svg",
    { viewBox: "0 0 240 24", role: "img", "aria-label": words },
    svg("title", {}, words),
    svg("line", { class: "zero", x1: x(0), x2: x(0), y1: 1, y2: 23 }),
    svg("line", { class: "span", x1: x(row.low), x2: x(row.high), y1: 12, y2: 12 }),
    svg("circle", { class: "dot", cx: x(row.utility), cy: 12, r: 5 }),
  );
}

function niceTop(value) {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 1)));
  // Tops whose half is a whole number: half a vote is no label.
  return [2, 4, 6, 10].map((step) => step * power).find((step) => step >= value);
}

// As wide as its place, so that a unit is a pixel and the letters keep their size on a phone.
function frame(words, top, label, timeline, wide) {
  const inner = { width: wide - EDGE.left - EDGE.right, height: HIGH - EDGE.top - EDGE.bottom };
  const y = (value) => EDGE.top + inner.height * (1 - value / top);
  const picture = svg("svg", { viewBox: `0 0 ${wide} ${HIGH}`, role: "img", "aria-label": words });
  for (const value of [0, top / 2, top]) {
    picture.append(
      svg("line", { class: "axis", x1: EDGE.left, x2: wide - EDGE.right, y1: y(value), y2: y(value) }),
      svg("text", { x: EDGE.left - 6, y: y(value) + 4, "text-anchor": "end" }, label(value)),
    );
  }
  const { buckets, width } = timeline;
  const stamp = (time) => new Date(time).toLocaleString([], width >= 86_400_000 ? { month: "short", day: "numeric" } : { hour: "2-digit", minute: "2-digit", second: width < 60_000 ? "2-digit" : undefined });
  if (buckets.length) {
    picture.append(svg("text", { x: EDGE.left, y: HIGH - 6 }, stamp(buckets[0].start)));
    if (buckets.length > 1) picture.append(svg("text", { x: wide - EDGE.right, y: HIGH - 6, "text-anchor": "end" }, stamp(buckets.at(-1).start + width)));
  }
  return { picture, y, step: inner.width / Math.max(buckets.length, 1) };
}

export function votesChart(timeline, wide) {
  const counts = timeline.buckets.map((bucket) => bucket.votes);
  const most = Math.max(0, ...counts);
  const total = counts.reduce((sum, n) => sum + n, 0);
  const words = `${total} votes over time, at most ${most} in one stretch of ${span(timeline.width)}.`;
  const { picture, y, step } = frame(words, niceTop(Math.max(most, 2)), (value) => value.toFixed(0), timeline, wide);
  counts.forEach((n, i) => {
    if (!n) return;
    picture.append(svg("rect", { class: "column", x: EDGE.left + i * step + step * 0.1, width: Math.max(step * 0.8, 1), y: y(n), height: y(0) - y(n), rx: 1.5 }));
  });
  return picture;
}

export function explorationChart(timeline, wide) {
  const words = timeline.explored === null
    ? "Exploration over time; unknown, because the policy gives no estimate."
    : `Exploration over time; ${percent(timeline.explored)} of all candidates shown so far were not among the two leading ones.`;
  const { picture, y, step } = frame(words, 1, (value) => percent(value), timeline, wide);
  const points = timeline.buckets.map((bucket, i) => [EDGE.left + (i + 0.5) * step, bucket]).filter(([, bucket]) => bucket.asks > 0 && bucket.explored !== null);
  if (points.length > 1) picture.append(svg("polyline", { class: "line", points: points.map(([x, bucket]) => `${x},${y(bucket.explored)}`).join(" ") }));
  if (points.length && points.length < 25) for (const [x, bucket] of points) picture.append(svg("circle", { class: "dot", cx: x, cy: y(bucket.explored), r: 3 }));
  return picture;
}

export function span(milliseconds) {
  const units = [[86_400_000, "day"], [3_600_000, "hour"], [60_000, "minute"], [1000, "second"]];
  const [size, name] = units.find(([length]) => milliseconds >= length) || units.at(-1);
  const n = Math.round(milliseconds / size);
  return n === 1 ? `one ${name}` : `${n} ${name}s`;
}
