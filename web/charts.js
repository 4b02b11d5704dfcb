// Measurements as small graphs on canvases: a minute of figures four times a second, and the last second as a timeline.
import {$, call, make} from "./base.js";

const PARTS = ["demux", "decode", "start", "submit", "upload", "filter", "download", "encode", "mux"]; // as a frame meets them
const KEEP = 240, history = {fps: [], p50: [], p95: [], p99: [], drops: []};
let colour = {}, busy = [], bins = null, spans = [], visible = true;

// ---- drawing ----

function colours() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["text", "muted", "line", "accent", "second", "third", "live"])
    colour[name] = style.getPropertyValue("--" + name).trim();
}

// A canvas, cleared, in CSS pixels.
function sheet(id) {
  const canvas = $(id), scale = devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
  if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
  }
  const paint = canvas.getContext("2d");
  paint.setTransform(scale, 0, 0, scale, 0, 0);
  paint.clearRect(0, 0, width, height);
  paint.font = "10px system-ui, sans-serif";
  return {paint, width, height};
}

// The next of 1, 2, 5, 10, ... so that scales rarely change.
function round(most) {
  const power = 10 ** Math.floor(Math.log10(most || 1));
  return [1, 2, 5, 10].map(step => step * power).find(value => value >= most) || 1;
}

function scale({paint, width, height}, top, unit) {
  paint.fillStyle = colour.muted;
  paint.strokeStyle = colour.line;
  paint.beginPath();
  for (const y of [0.5, Math.round(height / 2) + 0.5, height - 0.5]) {
    paint.moveTo(0, y);
    paint.lineTo(width, y);
  }
  paint.stroke();
  paint.fillText(top + unit, 2, 11);
}

function line({paint, width, height}, values, top, name, filled) {
  const x = k => width - (values.length - 1 - k) * width / (KEEP - 1), y = value => height - 1 - Math.min(1, value / top) * (height - 3);
  paint.beginPath();
  values.forEach((value, k) => paint[k ? "lineTo" : "moveTo"](x(k), y(value)));
  paint.strokeStyle = paint.fillStyle = colour[name];
  paint.lineWidth = 1.3;
  paint.stroke();
  if (filled && values.length) {
    paint.lineTo(width, height);
    paint.lineTo(x(0), height);
    paint.globalAlpha = 0.15;
    paint.fill();
    paint.globalAlpha = 1;
  }
}

function lines(id, series, unit, factor = 1) {
  const on = sheet(id), all = series.map(([values]) => values.map(value => value * factor));
  const top = round(Math.max(1.05 * Math.max(...all.flat()), 1));
  scale(on, top, unit);
  if (all.flat().some(Boolean)) // a flat line of nothing says less than none
    series.forEach(([, name], k) => line(on, all[k], top, name, series.length === 1));
}

const percent = share => (100 * share).toFixed(share < 0.0995 ? 1 : 0) + " %";

// Text beside a bar a row, as many rows as fit.
function bars() {
  const {paint, width, height} = sheet("c-busy"), row = Math.min(16, height / Math.max(1, busy.length)), left = 54;
  busy.forEach(([name, share], k) => {
    const y = k * row, full = width - left - 34;
    paint.fillStyle = colour.muted;
    paint.fillText(name, 0, y + row / 2 + 3.5, left - 4);
    paint.fillStyle = colour.line;
    paint.fillRect(left, y + 2, full, row - 4);
    paint.fillStyle = share > 0.9 ? colour.second : colour.accent;
    paint.fillRect(left, y + 2, full * Math.min(1, share), row - 4);
    paint.fillStyle = colour.text;
    paint.textAlign = "right";
    paint.fillText(percent(share), width, y + row / 2 + 3.5);
    paint.textAlign = "left";
  });
}

// Peaks of black and white alone would leave nothing to see: the scale is that of the square root.
function histogram() {
  const {paint, width, height} = sheet("c-histogram");
  if (!bins)
    return;
  const top = Math.sqrt(Math.max(...bins, 1));
  paint.fillStyle = colour.line;
  paint.fillRect(0, height - 1, width, 1);
  paint.fillStyle = colour.accent;
  for (let x = 0; x < width; x++) { // whole columns: bins that share one, or columns of one bin
    const from = Math.floor(x * bins.length / width), to = Math.max(from + 1, Math.floor((x + 1) * bins.length / width));
    const h = Math.sqrt(Math.max(...bins.slice(from, to))) / top * (height - 2);
    paint.fillRect(x, height - h, 1, h);
  }
}

// A row a part; frames alternate between two colours, so that one can be followed from row to row.
function timeline() {
  const {paint, width, height} = sheet("c-timeline"), left = 54;
  const parts = [...new Set(spans.map(span => span.part))].sort((a, b) => PARTS.indexOf(a) - PARTS.indexOf(b));
  if (!parts.length)
    return;
  const end = Math.max(...spans.map(span => span.end_us)), row = Math.min(22, height / parts.length);
  const x = time => left + Math.max(0, 1 - (end - time) / 1e6) * (width - left);
  parts.forEach((part, k) => {
    paint.fillStyle = colour.muted;
    paint.fillText(part, 0, k * row + row / 2 + 3.5, left - 4);
  });
  for (const span of spans) {
    paint.fillStyle = colour[["accent", "second", "third"][Math.abs(span.frame || 0) % 3]];
    paint.fillRect(x(span.begin_us), parts.indexOf(span.part) * row + 2, Math.max(0.7, x(span.end_us) - x(span.begin_us)), row - 4);
  }
}

// ---- figures ----

const says = (id, text, label) => {
  $("v-" + id).textContent = text;
  $("c-" + id).setAttribute("aria-label", label + ": " + text);
};

function keep(name, value) {
  history[name].push(Number.isFinite(value) ? value : 0);
  if (history[name].length > KEEP)
    history[name].shift();
}

// The last one has the unit of them all.
function quantiles({p50, p95, p99}) {
  const whole = p99 >= 1, digits = whole || p99 < 0.01 ? 1 : 0;
  return [p50, p95, p99].map((seconds, k) => (seconds * (whole ? 1 : 1000)).toFixed(digits) + (k < 2 ? "" : whole ? " s" : " ms"));
}

export function stats(now) {
  const latency = now.latency_s || {}, kinds = {late: now.dropped_late, clock: now.dropped_clock, disk: now.dropped_disk, damaged: now.damaged};
  const drops = Object.entries(kinds).filter(([, count]) => count > 0);
  keep("fps", now.fps_now ?? now.fps);
  for (const name of ["p50", "p95", "p99"])
    keep(name, latency[name]);
  keep("drops", Object.values(kinds).reduce((sum, count) => sum + (count || 0), 0));
  busy = Object.entries(now.busy || {});
  const [most, share] = busy.reduce((a, b) => b[1] > a[1] ? b : a, ["nothing", 0]);
  says("fps", (now.fps_now ?? now.fps ?? 0).toFixed(1), "Frames a second");
  says("latency", latency.p50 ? quantiles(latency).join(" / ") : "of live inputs", "Latency, median, 95 and 99 of a hundred");
  if (latency.p50) // in the colours of their lines
    $("v-latency").replaceChildren(...quantiles(latency).map((text, k) => make("span", {class: ["p50", "p95", "p99"][k]}, text)));
  says("busy", share ? `${most} ${percent(share)}` : "–", "Busiest part");
  says("drops", drops.length ? drops.map(([name, count]) => `${count} ${name}`).join(", ") : "none", "Dropped frames");
  draw();
}

function draw() {
  if (!visible)
    return;
  lines("c-fps", [[history.fps, "accent"]], "");
  lines("c-latency", [[history.p99, "third"], [history.p95, "second"], [history.p50, "accent"]], " ms", 1000);
  lines("c-drops", [[history.drops, "live"]], "");
  bars();
}

function mean(counts) {
  const all = counts.reduce((sum, count) => sum + count, 0);
  return all ? counts.reduce((sum, count, k) => sum + k * count, 0) / all : 0;
}

async function look() {
  if (!visible || document.hidden || $("login-dialog").open)
    return;
  try {
    const [luma, time] = await Promise.all([call("GET", "api/histogram"), call("GET", "api/timeline")]);
    bins = luma.bins;
    spans = time.spans || [];
  } catch { // without a job there is neither
    bins = null;
    spans = [];
  }
  says("histogram", bins ? `mean ${mean(bins).toFixed(0)}` : "–", "Luma of the result");
  says("timeline", spans.length ? `${new Set(spans.map(span => span.frame)).size} frames` : "–", "The last second");
  histogram();
  timeline();
}

export function start() {
  colours();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { colours(); draw(); histogram(); timeline(); });
  new IntersectionObserver(([entry]) => { visible = entry.isIntersecting; }).observe(document.querySelector(".charts"));
  new ResizeObserver(() => { draw(); histogram(); timeline(); }).observe(document.querySelector(".charts"));
  setInterval(look, 1000);
}
