// The picture on show: which one, the divider between two, a setting that is held as A, the picture after a stage.
import {$, tell, say} from "./base.js";
import {Stream} from "./video.js";

const canvas = $("picture"), paint = canvas.getContext("2d", {alpha: false});
const kept = document.createElement("canvas"), keep = kept.getContext("2d", {alpha: false}); // the last picture, both halves
const view = {kind: "after", stage: -1, other: ""};
let stream, held = null, split = 0.5, keptView = view, drawn = 0;

// ---- drawing ----

function resize(element, width, height) {
  if (element.width === width && element.height === height)
    return false;
  element.width = width;
  element.height = height;
  return true;
}

function draw(image, width, height, of) {
  resize(kept, width, height);
  keep.drawImage(image, 0, 0, width, height);
  keptView = of;
  drawn++;
  redraw();
}

// A split picture shows the stream's left half to the left of the divider, its right half to the right.
function redraw() {
  const both = keptView.kind === "split", width = both ? kept.width >> 1 : kept.width, height = kept.height;
  if (resize(canvas, width, height))
    place();
  if (!both) {
    paint.drawImage(kept, 0, 0);
    return;
  }
  const cut = Math.round(split * width);
  if (cut)
    paint.drawImage(kept, 0, 0, cut, height, 0, 0, cut, height);
  if (cut < width)
    paint.drawImage(kept, width + cut, 0, width - cut, height, cut, 0, width - cut, height);
}

// The picture's place within the screen: all of it is seen.
function box() {
  const screen = $("screen"), scale = Math.min(screen.clientWidth / canvas.width, screen.clientHeight / canvas.height);
  const width = canvas.width * scale, height = canvas.height * scale;
  return {left: (screen.clientWidth - width) / 2, top: (screen.clientHeight - height) / 2, width, height};
}

// ---- the divider ----

function place() {
  const at = box(), divider = $("divider"), percent = Math.round(100 * split);
  divider.hidden = view.kind !== "split";
  divider.style.left = at.left + split * at.width + "px";
  divider.style.top = at.top + "px";
  divider.style.height = at.height + "px";
  divider.setAttribute("aria-valuenow", percent);
  divider.setAttribute("aria-valuetext", `${$("side-left").textContent} on the left ${percent} %`);
}

function divide(share) {
  split = Math.max(0, Math.min(1, share));
  place();
  redraw();
}

function dividerKeys(event) {
  const steps = {ArrowLeft: -0.01, ArrowDown: -0.01, ArrowRight: 0.01, ArrowUp: 0.01, PageDown: -0.1, PageUp: 0.1, Home: -1, End: 1};
  if (!(event.key in steps))
    return;
  event.preventDefault();
  event.stopPropagation();
  divide(split + steps[event.key] * (event.shiftKey ? 10 : 1));
}

function dividerDrags() {
  const divider = $("divider"), screen = $("screen");
  const follow = event => {
    const at = box();
    divide((event.clientX - screen.getBoundingClientRect().left - at.left) / at.width);
  };
  divider.addEventListener("pointerdown", event => {
    divider.setPointerCapture(event.pointerId);
    divider.focus({preventScroll: true});
    event.preventDefault();
  });
  divider.addEventListener("pointermove", event => divider.hasPointerCapture(event.pointerId) && follow(event));
  divider.addEventListener("keydown", dividerKeys);
  screen.addEventListener("dblclick", () => view.kind === "split" && divide(0.5));
}

// ---- which picture ----

const LABELS = {after: "The filtered picture", before: "The picture before filtering", split: "Before and after, parted by a divider",
                difference: "What differs"};

function refresh() {
  const compares = view.kind === "difference" || view.kind === "split";
  $("against").hidden = !compares || held === null;
  $("restore").hidden = held === null;
  const toHeld = compares && held !== null && document.querySelector("[name=other]:checked").value === "held";
  view.other = toHeld ? held : "";
  $("side-left").textContent = toHeld ? "A" : "before";
  canvas.setAttribute("aria-label", LABELS[view.kind] + (compares && toHeld ? ", compared with A" : ""));
  place();
  stream.show({...view});
}

export function show(kind) {
  view.kind = kind;
  document.querySelector(`[name=kind][value=${kind}]`).checked = true;
  refresh();
}

// Show the picture after so many stages; -1: after all. `name` is that of the last one.
export function showStage(stage, name) {
  view.stage = stage;
  const chip = $("stage-shown");
  chip.hidden = stage < 0;
  chip.textContent = stage < 0 ? "" : "after " + name;
  if (view.kind === "before" && stage >= 0)
    show("after");
  else
    refresh();
}

export const stageShown = () => view.stage;
export const query = () => {
  const what = new URLSearchParams({kind: view.kind});
  if (view.stage >= 0)
    what.set("stage", view.stage);
  if (view.other)
    what.set("other", view.other);
  return what;
};

export function hold(chain) {
  held = chain;
  $("hold").title = "A: " + (chain || "no stages");
  say("A is " + (chain || "the input, without stages"));
  refresh();
}

// ---- the notice over the picture ----

export function notice(text, choose) {
  tell($("notice-text"), text);
  $("notice").hidden = !text;
  $("notice-choose").hidden = !choose;
}

export const picture = {again: () => stream.again(), stop: () => stream.stop(), resume: () => stream.show({...view}),
                        count: () => drawn, by: () => stream.shownBy, behind: () => stream.way?.behind() || 0,
                        size: () => [canvas.width, canvas.height]};

// `hooks`: open(address, signal) gives a response; state(word, error); chain() the present chain's text; restore(text).
export function start(hooks, ways) {
  stream = new Stream({...hooks, draw}, ways);
  for (const input of document.querySelectorAll("[name=kind]"))
    input.addEventListener("change", () => show(input.value));
  for (const input of document.querySelectorAll("[name=other]"))
    input.addEventListener("change", refresh);
  $("hold").addEventListener("click", () => hold(hooks.chain()));
  $("restore").addEventListener("click", () => hooks.restore(held));
  $("stage-shown").addEventListener("click", () => hooks.wholeChain());
  $("full").addEventListener("click", fullScreen);
  dividerDrags();
  new ResizeObserver(place).observe($("screen"));
  refresh();
}

export function fullScreen() {
  if (document.fullscreenElement)
    document.exitFullscreen();
  else
    document.querySelector(".viewer").requestFullscreen?.().catch(() => say("this browser allows no full screen here"));
}
