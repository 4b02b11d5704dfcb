// Choosing an input: a file of the media folder, a camera, an address, an upload with its progress.
import {$, attempt, bytes, call, make, open, say, tell} from "./base.js";

let upload, about = {};

async function choose(kind, name) {
  const answer = await attempt($("inputs-error"), () => call("POST", "api/input", {kind, name}));
  if (!answer)
    return;
  $("inputs-dialog").close();
  say("Opening " + name);
}

function choice(kind, name, beside) {
  return make("li", {}, make("button", {type: "button", onclick: () => choose(kind, name)},
    make("span", {class: "ellipsis"}, name), make("span", {class: "muted figures"}, beside)));
}

function list(element, rows, none) {
  element.replaceChildren(...(rows.length ? rows : [make("li", {}, make("p", {class: "muted"}, none))]));
}

function show(inputs) {
  about = inputs;
  $("inputs-fixed").hidden = inputs.chooses;
  $("inputs-choice").hidden = !inputs.chooses;
  const media = inputs.media || [], cameras = inputs.cameras || [];
  list($("inputs-media"), media.map(file => choice("media", file.name, bytes(file.bytes))), "There is no file in the media folder (--media).");
  list($("inputs-cameras"), cameras.map(one => choice("camera", one.name || one, one.trouble || one.about || "")), "No camera was found.");
}

export async function choices() {
  tell($("inputs-error"), null);
  open($("inputs-dialog"));
  const inputs = await attempt($("inputs-error"), () => call("GET", "api/inputs"));
  if (inputs)
    show(inputs);
}

// ---- uploads: XMLHttpRequest, because fetch tells no progress of what is sent ----

function progress(done, total) {
  $("upload-progress").value = total ? done / total : 0;
  $("upload-text").textContent = `${bytes(done)} of ${bytes(total)}`;
}

function uploading(is) {
  $("upload-progress").hidden = $("upload-cancel").hidden = !is;
  $("file").disabled = is;
  if (!is)
    $("upload-text").textContent = "";
}

function answered(request) {
  let answer = {};
  try {
    answer = JSON.parse(request.responseText);
  } catch { /* an answer without words: the status says it */ }
  if (request.status >= 200 && request.status < 300 && answer.ok !== false)
    return answer;
  throw new Error(answer.error || `the server answers ${request.status} to the upload`);
}

function send(file) {
  return new Promise((resolve, reject) => {
    upload = new XMLHttpRequest();
    upload.upload.onprogress = event => progress(event.loaded, event.total || file.size);
    upload.onload = () => { try { resolve(answered(upload)); } catch (error) { reject(error); } };
    upload.onerror = () => reject(new Error("the upload was cut off: the server refused it or went away"));
    upload.onabort = () => reject(new DOMException("", "AbortError"));
    upload.open("POST", "api/upload?name=" + encodeURIComponent(file.name));
    upload.setRequestHeader("Content-Type", "application/octet-stream");
    upload.send(file);
  });
}

async function chosen(file) {
  if (about.upload_max && file.size > about.upload_max) {
    tell($("inputs-error"), `${file.name} has ${bytes(file.size)}; uploads may have ${bytes(about.upload_max)}`);
    return;
  }
  uploading(true);
  const answer = await attempt($("inputs-error"), () => send(file));
  uploading(false);
  $("file").value = "";
  if (answer)
    choose("upload", answer.name || file.name);
}

export function start() {
  for (const id of ["source", "notice-choose"])
    $(id).addEventListener("click", choices);
  $("inputs-address").addEventListener("submit", event => {
    event.preventDefault();
    if ($("address").value.trim())
      choose("address", $("address").value.trim());
  });
  $("file").addEventListener("change", () => $("file").files[0] && chosen($("file").files[0]));
  $("upload-cancel").addEventListener("click", () => upload.abort());
}
