// The chain's editor, made from the tables of stages: cards that are added, removed and moved, options as sliders and
// typed values, the text of it all. The server has the chain; every change is asked of it, and shown as it answers.
import {$, attempt, call, icon, make, newest, open, tell} from "./base.js";
import {showStage, stageShown} from "./view.js";

let tables = new Map(), chain = {chain: "", links: [], undo: 0, redo: 0}, shape = "", ids = 0;
const open_ = new Set(); // cards whose rare options are shown
let hands = new Map();   // "gaussian.sigma" -> when it was last moved here

// First values of options that have no default in their stage's table.
const BEGIN = {"brightness.offset": 20, "contrast.gain": 1.3, "gamma.gamma": 1.4, "gaussian.sigma": 1.4, "box.radius": 2, "threshold.t1": 30,
               "convolve.kernel": "-1 -1 -1/-1 9 -1/-1 -1 -1", "sepconvolve.row": "1 4 6 4 1", "wavelet.scales": "4"};

const failed = $("chain-error");
const key = link => link.stage + (link.number > 1 ? "#" + link.number : "");
const plain = value => typeof value === "number" ? String(Number(value.toPrecision(12))) : Array.isArray(value) ? value.join(":") : String(value ?? "");

export const text = () => chain.chain;

// ---- asking the server ----

async function asked(does) {
  const answer = await attempt(failed, does);
  if (answer?.links)
    update(answer);
  return answer;
}

export const put = wanted => asked(() => call("PUT", "api/chain", {chain: wanted}));
export const undo = () => chain.undo && asked(() => call("POST", "api/undo", {}));
export const redo = () => chain.redo && asked(() => call("POST", "api/redo", {}));
const patch = newest(values => asked(() => call("PATCH", "api/options", values)), (old, values) => ({...old, ...values}));

function set(link, option, value) {
  const name = key(link) + "." + option.name;
  hands.set(name, performance.now());
  patch({[name]: value});
}

// The chain with other links, as text. Focus goes where the hand expects it.
async function relink(links, focus) {
  if (await put(links.map(link => link.text).join(",")))
    focus?.();
}

// ---- sliders: positions from 0 to 1000 for values of any range ----

function curve(option) {
  const {min, max} = option, span = max - min;
  if (min > 0 && max / min > 60) // sigmas, radii, scales: equal steps are equal factors
    return {value: x => min * (max / min) ** x, x: value => Math.log(value / min) / Math.log(max / min)};
  if (span > 600) { // about zero, fine near it
    const most = Math.max(Math.abs(min), Math.abs(max)), low = Math.cbrt(min / most), high = Math.cbrt(max / most);
    return {value: x => most * (low + x * (high - low)) ** 3, x: value => (Math.cbrt(value / most) - low) / (high - low)};
  }
  if (min === 0 && option.type === "real" && max >= 64 && option.unit !== "code values")
    return {value: x => max * x ** 3, x: value => Math.cbrt(value / max)};
  return {value: x => min + x * span, x: value => (value - min) / span};
}

// Three digits are what a hand can set.
function neat(option, value) {
  const digits = Math.max(0, Math.min(3, 2 - Math.floor(Math.log10(Math.abs(value) || 1))));
  const whole = option.type === "int" || (option.unit === "code values" && option.max - option.min > 100);
  const short = whole ? Math.round(value) : Number(value.toFixed(digits));
  return Math.max(option.min, Math.min(option.max, short));
}

function fill(range) {
  range.style.setProperty("--filled", range.value / 10 + "%");
}

function slider(link, option, id, name) {
  const along = curve(option), range = make("input", {type: "range", min: 0, max: 1000, step: 1, "aria-label": `${name}, slider`});
  const number = make("input", {type: "number", id, min: option.min, max: option.max, step: option.type === "int" ? 1 : "any",
                                title: `${plain(option.min)} to ${plain(option.max)} ${option.unit || ""}`});
  const show = value => {
    const known = value !== null && value !== undefined;
    range.value = known ? 1000 * along.x(value) : 0;
    number.value = known ? plain(value) : "";
    number.placeholder = known ? "" : "auto";
    number.removeAttribute("aria-invalid");
    range.setAttribute("aria-valuetext", known ? `${plain(value)} ${option.unit || ""}` : "automatic");
    fill(range);
  };
  const moved = value => { show(value); set(link(), option, value); };
  range.addEventListener("input", () => moved(neat(option, along.value(range.value / 1000))));
  number.addEventListener("change", () => {
    if (number.value.trim() === "" || !number.checkValidity()) {
      number.setAttribute("aria-invalid", "true");
      tell(failed, `${name} may be ${number.title}`);
      return;
    }
    moved(Number(number.value));
  });
  number.addEventListener("keydown", event => stepped(event, option, number, moved));
  return {parts: [range, number, make("span", {class: "unit", title: option.unit || ""}, short(option.unit))], show};
}

// Arrows step by what is neat for the present value, with Shift by ten times that.
function stepped(event, option, number, moved) {
  const way = {ArrowUp: 1, ArrowDown: -1}[event.key];
  if (!way || event.altKey || number.value === "")
    return;
  event.preventDefault();
  const value = Number(number.value), size = option.type === "int" || option.unit === "code values" ? 1 : 10 ** (Math.floor(Math.log10(Math.abs(value) || 1)) - 1);
  moved(Math.max(option.min, Math.min(option.max, Number((value + way * size * (event.shiftKey ? 10 : 1)).toPrecision(6)))));
}

const short = unit => ({pixels: "px", degrees: "°", "code values": "cv", matches: ""})[unit] ?? (unit || "");

function segments(link, option, id, name) {
  const group = make("div", {role: "radiogroup", class: "segments over", "aria-label": name});
  for (const choice of option.choices) {
    const input = make("input", {type: "radio", name: id, value: choice});
    input.addEventListener("change", () => set(link(), option, choice));
    group.append(make("label", {}, input, make("span", {}, choice)));
  }
  return {parts: [group], show: value => group.querySelectorAll("input").forEach(input => { input.checked = input.value === value; })};
}

function select(link, option, id) {
  const list = make("select", {id, class: "over"}, ...option.choices.map(choice => make("option", {value: choice}, choice)));
  list.addEventListener("change", () => set(link(), option, list.value));
  return {parts: [list], show: value => { list.value = value ?? ""; }};
}

function words(link, option, id) {
  const field = make("input", {type: "text", id, class: "over", spellcheck: false, autocomplete: "off", placeholder: option.derived || option.unit || ""});
  const given = () => option.many ? field.value.split(":").map(one => one.trim()).filter(Boolean) : field.value;
  field.addEventListener("change", () => set(link(), option, given()));
  return {parts: [field], show: value => { field.value = plain(value); }};
}

function control(link, option) {
  const id = "option-" + ++ids, name = `${link().stage} ${option.name}`;
  const choices = option.choices?.length, wide = choices && option.choices.join("").length > 22;
  const made = choices ? (wide ? select : segments)(link, option, id, name)
    : option.type === "text" ? words(link, option, id) : slider(link, option, id, name);
  const label = make("label", {title: option.help || "", htmlFor: choices && !wide ? "" : id}, option.name);
  return {...made, option, parts: [label, ...made.parts]};
}

// Rarely turned: what lies beyond the edges, and what follows from other options by itself.
function isRare(option, given) {
  const value = given ?? (option.derived ? null : option.initial) ?? null;
  if (option.required)
    return false;
  if (option.type === "text")
    return !value;
  return value === null || (option.name === "border" && value === option.initial);
}

// ---- cards ----

function button(name, label, does, more = {}) {
  return make("button", {type: "button", class: "bare", "aria-label": label, title: label, onclick: does, ...more}, icon(name));
}

function head(card, at) {
  const {stage, number} = card.link(), table = tables.get(stage), name = number > 1 ? `${stage} ${number}` : stage;
  const grip = make("span", {class: "grip", "aria-hidden": "true", title: "Drag to another place"}, icon("grip"));
  card.eye = button("eye", `Show the picture after ${name}`, () => toggleEye(card), {"aria-pressed": "false"});
  grip.addEventListener("pointerdown", event => drag(event, card));
  return make("div", {class: "link-head"}, grip, make("strong", {}, name),
    make("span", {class: "muted ellipsis", title: [table?.summary, table?.formula].filter(Boolean).join("\n\n")}, table?.summary || ""), card.eye,
    button("up", `Move ${name} up (Alt+↑)`, () => move(at, at - 1, "up"), {disabled: at === 0}),
    button("down", `Move ${name} down (Alt+↓)`, () => move(at, at + 1, "down"), {disabled: at === chain.links.length - 1}),
    button("close", `Remove ${name}`, () => remove(at)));
}

function makeCard(at) {
  const card = {at, link: () => chain.links[at], controls: []}, link = card.link(), table = tables.get(link.stage);
  card.element = make("li", {"aria-label": `${at + 1}, ${link.stage}`}, head(card, at));
  card.element.addEventListener("keydown", event => cardKeys(event, at));
  card.controls = (table?.options || []).map(option => control(card.link, option));
  const rare = card.controls.filter(one => isRare(one.option, link.options[one.option.name]));
  const box = make("div", {class: "options"}, ...card.controls.filter(one => !rare.includes(one)).flatMap(one => one.parts));
  if (rare.length)
    box.append(...more(key(link), rare));
  if (card.controls.length)
    card.element.append(box);
  return card;
}

function more(name, rare) {
  const parts = rare.flatMap(one => one.parts), names = rare.map(one => one.option.name).join(", ");
  const show = shown => {
    parts.forEach(part => { part.hidden = !shown; });
    toggle.setAttribute("aria-expanded", shown);
    toggle.textContent = shown ? "less" : names + " …";
    shown ? open_.add(name) : open_.delete(name);
  };
  const toggle = make("button", {type: "button", class: "more", onclick: () => show(toggle.getAttribute("aria-expanded") !== "true")});
  show(open_.has(name));
  return [...parts, toggle];
}

let cards = [];

function values(card) {
  const link = card.link();
  for (const one of card.controls) {
    const name = key(link) + "." + one.option.name, typed = one.parts.includes(document.activeElement) && document.activeElement.matches("[type=text],[type=number]");
    if (performance.now() - (hands.get(name) || -1e9) < 500 || (patch.busy() && hands.has(name)))
      continue; // a hand is on it
    if (!typed || document.activeElement.value === "" || !document.activeElement.hasAttribute("aria-invalid"))
      one.show(link.options[one.option.name] ?? (one.option.derived ? null : one.option.initial));
  }
}

function eyes() {
  const stage = stageShown();
  cards.forEach((card, at) => {
    card.eye.setAttribute("aria-pressed", stage === at + 1);
    card.element.classList.toggle("viewed", stage === at + 1);
  });
}

function toggleEye(card) {
  const off = stageShown() === card.at + 1;
  showStage(off ? -1 : card.at + 1, off ? "" : card.link().stage);
  eyes();
}

export function wholeChain() {
  showStage(-1, "");
  eyes();
}

// ---- moving, removing ----

function focusCard(at, which) {
  const buttons = cards[Math.max(0, Math.min(at, cards.length - 1))]?.element.querySelectorAll(".link-head button");
  const wanted = buttons && [...buttons].find(one => one.getAttribute("aria-label").startsWith(which) && !one.disabled);
  (wanted || buttons?.[0] || $("add")).focus();
}

function move(from, to, way) {
  if (to < 0 || to >= chain.links.length || from === to)
    return;
  const links = [...chain.links], stage = stageShown(), [link] = links.splice(from, 1);
  links.splice(to, 0, link);
  const name = link.stage;
  relink(links, () => {
    if (stage === from + 1)
      showStage(to + 1, name);
    eyes();
    if (way)
      focusCard(to, `Move ${name}${link.number > 1 ? " " : ""}`);
    $("told").textContent = `${name} is now ${to + 1} of ${links.length}`;
  });
}

function remove(at) {
  relink(chain.links.filter((_, k) => k !== at), () => focusCard(at, "Remove"));
}

function cardKeys(event, at) {
  if (!event.altKey || (event.key !== "ArrowUp" && event.key !== "ArrowDown"))
    return;
  event.preventDefault();
  move(at, at + (event.key === "ArrowUp" ? -1 : 1), "keys");
}

// Drag a card by its grip, with a mouse or a finger: a line shows where it goes.
function drag(event, card) {
  event.preventDefault();
  const grip = event.currentTarget;
  let to = card.at;
  grip.setPointerCapture(event.pointerId);
  const mark = () => cards.forEach(({element}, k) => {
    element.classList.toggle("above", k === to && to < card.at);
    element.classList.toggle("below", k === to && to > card.at);
    element.classList.toggle("dragged", k === card.at);
  });
  const follow = moved => {
    const middles = cards.map(({element}) => { const box = element.getBoundingClientRect(); return box.top + box.height / 2; });
    to = middles.filter((middle, k) => k !== card.at && middle < moved.clientY).length;
    mark();
  };
  const end = dropped => {
    grip.removeEventListener("pointermove", follow);
    cards.forEach(({element}) => element.classList.remove("above", "below", "dragged"));
    if (dropped.type === "pointerup")
      move(card.at, to);
  };
  grip.addEventListener("pointermove", follow);
  grip.addEventListener("pointerup", end, {once: true});
  grip.addEventListener("pointercancel", end, {once: true});
}

// ---- adding ----

// The link that a stage begins as; null: it needs a file, and the page may name none.
function begins(table) {
  const given = [];
  for (const option of table.options.filter(one => one.required)) {
    const value = BEGIN[`${table.name}.${option.name}`] ?? option.initial ?? (option.type === "text" ? null : Math.max(option.min, Math.min(option.max, 1)));
    if (value === null)
      return null;
    given.push(option.many ? String(value) : `${option.name}=${value}`);
  }
  return table.name + (given.length ? "=" + given.join(":") : "");
}

async function add(table) {
  $("add-dialog").close();
  const link = begins(table);
  if (await put(chain.chain ? chain.chain + "," + link : link)) {
    const last = cards[cards.length - 1].element;
    last.scrollIntoView({block: "nearest"});
    (last.querySelector(".options input, .options select") || last.querySelector("button")).focus();
  }
}

function found() {
  const wanted = $("add-search").value.trim().toLowerCase();
  const rows = [...tables.values()].filter(table => `${table.name} ${table.summary}`.toLowerCase().includes(wanted));
  rows.sort((a, b) => b.name.startsWith(wanted) - a.name.startsWith(wanted));
  $("add-list").replaceChildren(...rows.map(table => make("li", {}, make("button", {type: "button", disabled: !begins(table), onclick: () => add(table)},
    make("strong", {}, table.name), make("span", {class: "muted"}, table.summary + (begins(table) ? "" : ". Needs a file: named where sluice is started"))))));
  if (!rows.length)
    $("add-list").append(make("li", {}, make("p", {class: "muted"}, "There is no such stage.")));
  return rows.filter(begins);
}

export function addStage() {
  $("add-search").value = "";
  found();
  open($("add-dialog"));
  $("add-search").focus();
}

// ---- the chain as it is now ----

export function update(now) {
  const links = now.links.map(link => link.stage + "#" + link.number).join(",") + now.links.map(link => key(link)).join();
  chain = now;
  if (links !== shape) {
    shape = links;
    cards = now.links.map((_, at) => makeCard(at));
    $("links").replaceChildren(...cards.map(card => card.element));
    hands = new Map();
    if (stageShown() > cards.length)
      showStage(-1, "");
  }
  cards.forEach(values);
  eyes();
  $("chain-empty").hidden = cards.length > 0;
  for (const name of ["undo", "redo"])
    $(name).disabled = !now[name];
  if (document.activeElement !== $("chain-text") || $("chain-text").value === shown)
    showText();
}

let shown = "";
function showText() {
  $("chain-text").value = shown = chain.chain;
  $("chain-text").removeAttribute("aria-invalid");
}

async function typed() {
  const field = $("chain-text"), wanted = field.value.replace(/\s*\n\s*/g, "").trim();
  if (wanted === chain.chain)
    return;
  const answer = await put(wanted);
  field.setAttribute("aria-invalid", !answer);
  if (answer)
    showText();
}

export function start(stages) {
  tables = new Map(stages.map(table => [table.name, table]));
  $("undo").addEventListener("click", undo);
  $("redo").addEventListener("click", redo);
  $("add").addEventListener("click", addStage);
  $("add-search").addEventListener("input", found);
  $("add-search").addEventListener("keydown", event => {
    if (event.key !== "Enter")
      return;
    event.preventDefault(); // else it would press the button that has the focus next
    if (found()[0])
      add(found()[0]);
  });
  $("chain-text").addEventListener("change", typed);
  $("chain-text").addEventListener("keydown", event => {
    if (event.key === "Enter") {
      event.preventDefault();
      typed();
    }
    if (event.key === "Escape") {
      showText();
      tell(failed, null);
    }
  });
}
