// CPU | GPU | reference: the same frame on every backend, with its speed, and what differs (nothing, or it is a bug).
import {$, attempt, call, make, open} from "./base.js";
import {query} from "./view.js";

const NAMES = {cpu: "CPU", cuda: "GPU", scalar: "Reference"};
const ORDER = ["cpu", "cuda", "scalar"];

function speed(row) {
  const per = row.ms < 10 ? row.ms.toFixed(2) : row.ms.toFixed(1);
  return [make("p", {class: "big figures"}, `${per} ms a frame`), make("p", {class: "muted"},
    `${row.fps < 10 ? row.fps.toFixed(1) : Math.round(row.fps)} frames a second, many at once`)];
}

function factor(row, slowest) {
  const times = slowest / row.ms;
  return times < 1.05 ? "the slowest of these" : `${times < 10 ? times.toFixed(1) : Math.round(times)} times as fast as the slowest`;
}

function equality(row) {
  const where = row.estimated && row.backend !== "scalar" ? ", in a part of the picture" : "";
  return make("p", {class: row.equal ? "good" : "bad"}, (row.equal ? "Difference: none, to the bit" : "Difference: there is one, which is a bug") + where);
}

// Backends that are equal to the bit have one picture; one that differs has none here.
function column(name, answer, picture) {
  const {rows} = answer, row = rows.find(one => one.backend === name), left = (answer.left_out || []).find(one => one.backend === name);
  const title = make("h3", {}, NAMES[name] || name, make("span", {class: "device"}, row?.device || ""));
  if (!row || !(row.ms > 0))
    return make("div", {}, title, make("p", {class: "muted"}, left?.why || "Not measured."));
  const slowest = Math.max(...rows.map(one => one.ms || 0)), share = make("meter", {min: 0, max: 1, value: row.ms / slowest});
  share.setAttribute("aria-label", "Time of a frame, of the slowest's");
  const about = factor(row, slowest) + (row.estimated && row.backend === "scalar" ? ", worked out from a part of the picture" : "");
  const parts = [title, ...speed(row), share, make("p", {class: "muted"}, about), equality(row)];
  if (row.equal)
    parts.splice(1, 0, make("img", {class: "picture", src: picture, alt: `The frame as the ${NAMES[name] || name} filters it`}));
  return make("div", {}, ...parts);
}

async function measure() {
  $("compare-again").disabled = true;
  $("compare-columns").setAttribute("aria-busy", "true");
  if (!$("compare-columns").children.length)
    $("compare-columns").append(...ORDER.map(name => make("div", {}, make("h3", {}, NAMES[name]), make("p", {class: "muted"}, "measuring …"))));
  const answer = await attempt($("compare-error"), () => call("POST", "api/compare", {}));
  $("compare-columns").setAttribute("aria-busy", "false");
  $("compare-again").disabled = false;
  if (!answer)
    return;
  const what = query();
  what.set("kind", "after");
  const names = [...new Set([...ORDER, ...answer.rows.map(row => row.backend)])];
  const picture = "api/snapshot?" + what + "&at=" + Date.now();
  $("compare-columns").replaceChildren(...names.map(name => column(name, answer, picture)));
}

export function compare() {
  open($("compare-dialog"));
  measure();
}

export function start() {
  $("compare").addEventListener("click", compare);
  $("compare-again").addEventListener("click", measure);
}
