// Time: pause, step, scrub, live. The server's player holds what just happened; this shows where it is.
import {$, attempt, call, clock, newest} from "./base.js";

let state = {mode: "live"}, dragged = 0;

const seconds = (from, name) => from[name] ?? (from[name + "_us"] ?? 0) / 1e6;

// Answers name the mode "mode" or "state"; times are seconds.
function normal(from) {
  return {mode: from.mode || from.state || "live", at: seconds(from, "at"), begin: seconds(from, "begin"), end: seconds(from, "end"),
          rate: from.rate || 1, frameRate: from.frame_rate || from.fps || 25, behind: from.behind || 0, whole: !!from.whole,
          error: from.error};
}

const order = newest(async what => {
  const answer = await attempt($("player-error"), () => call("POST", "api/player", what));
  if (answer)
    update(answer);
});

export const live = () => order({action: "live"});
export const step = frames => order({action: "step", frames});
export const toggle = () => order(state.mode === "playing" || state.mode === "live"
  ? {action: "pause"} : {action: "play", rate: Number($("rate").value)});

function scrub() {
  dragged = performance.now();
  order({action: "seek", at: Number($("scrub").value)});
  times(Number($("scrub").value));
}

function times(at) {
  const bar = $("scrub"), length = state.end - state.begin;
  $("at").textContent = clock(at - (state.whole ? 0 : state.begin), 2);
  $("end").textContent = clock(length);
  bar.style.setProperty("--filled", (length > 0 ? 100 * (at - state.begin) / length : 100) + "%");
  bar.setAttribute("aria-valuetext", clock(at, 2) + (state.mode === "live" ? ", live" : `, ${(state.end - at).toFixed(1)} seconds before the newest`));
}

function bar(begin, end, value) {
  const scrub = $("scrub");
  scrub.disabled = !(end > begin);
  scrub.min = begin;
  scrub.max = Math.max(end, begin + 0.001);
  scrub.step = 1 / (state.frameRate * 4);
  scrub.value = value;
}

export function update(from) {
  state = normal(from);
  const isLive = state.mode === "live", runs = isLive || state.mode === "playing";
  $("play-icon").setAttribute("href", runs ? "#i-pause" : "#i-play");
  $("play").setAttribute("aria-label", runs ? "Pause" : "Play");
  $("live").setAttribute("aria-pressed", isLive);
  $("live").title = isLive ? "At the live edge" : `${state.behind.toFixed(1)} s behind; to the live edge (l)`;
  if (from.error)
    attempt($("player-error"), () => { throw new Error(from.error); });
  if (performance.now() - dragged < 400 || order.busy())
    return; // the hand is where the picture will be
  const at = isLive && !state.whole ? state.end : state.at;
  bar(state.begin, state.end, at);
  times(at);
}

export function start() {
  $("play").addEventListener("click", toggle);
  $("step-back").addEventListener("click", () => step(-1));
  $("step").addEventListener("click", () => step(1));
  $("live").addEventListener("click", live);
  $("scrub").addEventListener("input", scrub);
  $("rate").addEventListener("change", () => state.mode === "playing" && order({action: "play", rate: Number($("rate").value)}));
}
