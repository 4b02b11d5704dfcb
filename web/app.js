// The page as a whole: who may see it, what the server tells of, keys, and what is done with the picture shown.
import {$, ask, attempt, call, clock, copy, dialogs, make, onUnauthorized, open, say, tell} from "./base.js";
import * as chain from "./chain.js";
import * as charts from "./charts.js";
import * as compare from "./compare.js";
import * as inputs from "./inputs.js";
import * as player from "./player.js";
import * as view from "./view.js";

const EVENTS_MS = [500, 1000, 2000, 4000];
let events, tries = 0, input = {state: "none"}, started = false, recording = null, finishing = false, commandOf = null, opens;

// ---- the fragment: #token=... is taken out of the address at once; #chain=... is offered ----

const fragment = new URLSearchParams(location.hash.slice(1));

function cleanAddress() {
  if (location.hash)
    history.replaceState(null, "", location.pathname + location.search);
}

async function login(token) {
  const response = await fetch("login", {method: "POST", body: token, headers: {"Content-Type": "text/plain"}})
    .catch(() => { throw new Error("sluice does not answer; does it still run?"); });
  if (!response.ok)
    throw new Error(response.status === 401 || response.status === 403 ? "That is not the token." : `The server answers ${response.status}.`);
}

function askToken() {
  open($("login-dialog"));
}

$("login-form").addEventListener("submit", async event => {
  event.preventDefault();
  await attempt($("login-error"), async () => {
    await login($("token").value.trim());
    $("token").value = "";
    $("login-dialog").close();
    run();
  });
});

function offerChain() {
  const wanted = fragment.get("chain");
  if (wanted === null || wanted === chain.text())
    return;
  $("offer-chain").textContent = wanted || "(no stages)";
  $("offer").hidden = false;
  $("offer-apply").onclick = async () => { $("offer").hidden = true; await chain.put(wanted); };
  $("offer-ignore").onclick = () => { $("offer").hidden = true; };
}

// ---- what the server tells ----

function since(from) {
  if (!from)
    return "";
  return " since " + new Date(from * 1000).toLocaleTimeString();
}

function tellInput() {
  const {state, name, error} = input, about = [input.width && `${input.width}×${input.height}`, input.pixfmt].filter(Boolean).join(" ");
  $("source-dot").className = "dot " + state;
  $("source-name").textContent = name || "No input";
  $("source-about").textContent = state === "running" ? about : {none: "", opening: "opening", lost: "lost", ended: "ended", failed: "failed"}[state] || state;
  document.title = name ? `${name} – sluice` : "sluice";
  const words = {none: "No input yet.", opening: `Opening ${name} …`, failed: `${name} could not be filtered.\n${error || ""}`};
  clearTimeout(opens);
  if (state === "opening") { // mostly for a moment only, as when a file begins anew
    view.notice("", false);
    opens = setTimeout(() => view.notice(words.opening, false), 700);
  } else
    view.notice(words[state] || "", state === "none" || state === "failed");
  tell($("lost"), state === "lost" ? `${name} is lost${since(input.since)}; sluice connects again. ${error || ""}`.trim() : null);
}

function onInput(now) {
  const again = now.state === "running" && (input.state !== "running" || now.name !== input.name);
  input = now;
  tellInput();
  if (again)
    view.picture.again();
}

function onStats(now) {
  charts.stats(now);
  if (now.recording)
    showRecording(now.recording);
}

async function onChain(now) {
  chain.update(now);
  if (commandOf === now.chain)
    return;
  commandOf = now.chain;
  try {
    $("command").value = (await call("GET", "api/command")).command;
  } catch (error) {
    $("command").value = "";
    $("command").placeholder = error.message;
  }
}

// Some levels are worth a word in passing; the rest is in the program's own log.
function onLog({level, text}) {
  if (level === "error" || level === "warning")
    say(text);
}

function listen() {
  events?.close();
  events = new EventSource("api/events");
  const on = (name, does) => events.addEventListener(name, event => does(JSON.parse(event.data)));
  on("chain", onChain);
  on("stats", onStats);
  on("input", onInput);
  on("player", player.update);
  on("log", onLog);
  events.onopen = () => {
    tries = 0;
    tell($("banner"), null);
    view.picture.again();
  };
  events.onerror = lostServer;
}

// A browser connects again by itself only after some failures; here it is always tried, ever more slowly.
function lostServer() {
  events.close();
  if (tries)
    tell($("banner"), "sluice does not answer; trying again. What is shown may be old.");
  const delay = EVENTS_MS[Math.min(tries++, EVENTS_MS.length - 1)];
  setTimeout(async () => {
    if (document.hidden)
      return;
    try {
      await ask("GET", "api/chain"); // says 401 where events would only fail
    } catch (error) { // listen() tells, but of a token that is missing: login() goes on then
      if (error.status === 401)
        return;
    }
    listen();
  }, delay);
}

// A page that nobody sees asks for nothing: no viewer, no encoding.
function seen() {
  if (!started)
    return;
  if (document.hidden) {
    events?.close();
    view.picture.stop();
  } else {
    listen();
    view.picture.resume();
  }
}

// ---- the picture shown: snapshot, record, link ----

function download(href, name) {
  const link = make("a", {href, download: name});
  document.body.append(link);
  link.click();
  link.remove();
}

async function snapshot() {
  try {
    const picture = await (await ask("GET", "api/snapshot?" + view.query())).blob(), url = URL.createObjectURL(picture);
    const name = `sluice-${new Date().toISOString().slice(0, 19).replace(/[:T]/g, "-")}.png`;
    download(url, name);
    setTimeout(() => URL.revokeObjectURL(url), 10000);
    say(`${name} saved`);
  } catch (error) {
    say("No snapshot: " + error.message);
  }
}

function showRecording(now) {
  if (now.recording && !recording)
    recording = {from: Date.now() - 1000 * (now.seconds || 0)};
  if (!now.recording && recording)
    finishing = true;
  if (!now.recording)
    recording = null;
  if (finishing && !now.recording && !now.finishing) {
    finishing = false;
    const gaps = now.dropped ? `; ${now.dropped} frames are left out, which came faster than they could be recorded` : "";
    now.error ? say("The recording ended: " + now.error)
      : say("Recorded: ", make("a", {href: "api/recordings/" + encodeURIComponent(now.name), download: now.name}, now.name), gaps);
  }
  $("record").setAttribute("aria-pressed", !!recording);
  $("record").setAttribute("aria-label", "Record"); // whether it does is said by aria-pressed
  recordingTime();
}

function recordingTime() {
  $("record-text").textContent = recording ? clock((Date.now() - recording.from) / 1000) : finishing ? "Finishing" : "Record";
}

async function record() {
  try {
    showRecording(await call("POST", "api/record", {action: recording ? "stop" : "start"}));
  } catch (error) {
    say("Recording: " + error.message);
  }
}

function link() {
  copy(`${location.origin}${location.pathname}#chain=${encodeURIComponent(chain.text())}`, "Link with this chain");
}

setInterval(recordingTime, 1000);

function figures() {
  const [width, height] = view.picture.size(), shown = view.picture.count();
  $("picture-about").textContent = shown ? `${width}×${height}` : "";
}

// ---- keys ----

const KEYS = {
  " ": player.toggle, ",": () => player.step(-1), ".": () => player.step(1), l: player.live, 1: () => view.show("after"), 2: () => view.show("before"),
  3: () => view.show("split"), 4: () => view.show("difference"), a: () => view.hold(chain.text()), "+": chain.addStage, s: snapshot, r: record,
  c: compare.compare, o: inputs.choices, f: view.fullScreen, "?": () => open($("keys-dialog")),
};

function keys(event) {
  const typing = event.target.closest("input:not([type=range]):not([type=radio]), textarea, select"), held = event.ctrlKey || event.metaKey;
  if (document.querySelector("dialog[open]") || typing || event.altKey)
    return;
  if (held && event.key.toLowerCase() === "z") {
    event.preventDefault();
    event.shiftKey ? chain.redo() : chain.undo();
  }
  if (held || !Object.hasOwn(KEYS, event.key) || (event.key === " " && event.target.closest("button, a, label, [type=radio]")))
    return;
  event.preventDefault();
  KEYS[event.key]();
}

// ---- the beginning ----

function begin(stages) {
  started = true;
  dialogs();
  chain.start(stages);
  charts.start();
  compare.start();
  inputs.start();
  player.start();
  view.start({
    open: (address, signal) => ask("GET", address, undefined, {signal}),
    state: (word, error) => {
      if (word === "refused" && input.state === "running")
        view.notice(error.message, false);
      if (word === "playing")
        tellInput();
    },
    chain: chain.text, restore: chain.put, wholeChain: chain.wholeChain,
  }, fragment.get("play") ? fragment.get("play").split(",").filter(way => way !== "mjpeg") : undefined);
  $("snapshot").addEventListener("click", snapshot);
  $("record").addEventListener("click", record);
  $("link").addEventListener("click", link);
  $("keys").addEventListener("click", () => open($("keys-dialog")));
  $("copy").addEventListener("click", () => copy($("command").value, "Command line"));
  document.addEventListener("keydown", keys);
  document.addEventListener("visibilitychange", seen);
  setInterval(figures, 500);
}

async function run() {
  try {
    const {stages} = await call("GET", "api/stages");
    if (!started)
      begin(stages);
    tell($("banner"), null);
    await onChain(await call("GET", "api/chain"));
    offerChain();
    if (document.hidden) // opened behind others
      return seen();
    listen();
    view.picture.again();
  } catch (error) {
    if (error.status === 401)
      return;
    tell($("banner"), error);
    setTimeout(run, 2000);
  }
}

async function arrive() {
  const token = fragment.get("token");
  cleanAddress();
  onUnauthorized(askToken);
  if (token)
    await attempt($("login-error"), () => login(token));
  run();
}

arrive();
export const page = {view, chain, player}; // for tests
