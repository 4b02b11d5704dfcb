// Common to all parts of the page: elements, requests, errors in words, announcements for screen readers.

export const $ = id => document.getElementById(id);

// An element: make("button", {type: "button", onclick: f}, "text", child). Names with a dash and "role" are attributes.
export function make(name, properties = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties))
    if (key.includes("-") || key === "role" || key === "class") element.setAttribute(key, value);
    else element[key] = value;
  element.append(...children);
  return element;
}

export function icon(name) {
  const space = "http://www.w3.org/2000/svg", svg = document.createElementNS(space, "svg");
  const use = document.createElementNS(space, "use");
  use.setAttribute("href", "#i-" + name);
  svg.setAttribute("aria-hidden", "true");
  svg.append(use);
  return svg;
}

// A refusal of the server's, in its words.
export class Refusal extends Error {
  constructor(text, status) {
    super(text);
    this.status = status;
  }
}

let refused = () => {};
export function onUnauthorized(does) { refused = does; }

async function refusal(response) {
  if (response.status === 401)
    refused();
  const text = await response.text();
  try {
    return new Refusal(JSON.parse(text).error || response.statusText, response.status);
  } catch {
    return new Refusal(`the server answers ${response.status} ${response.statusText}`, response.status);
  }
}

// Ask, and wait for a response that is good; throws a Refusal with a sentence.
export async function ask(method, path, body, more = {}) {
  const options = {method, ...more};
  if (body !== undefined) {
    options.body = JSON.stringify(body);
    options.headers = {"Content-Type": "application/json"};
  }
  let response;
  try {
    response = await fetch(path, options);
  } catch (error) {
    throw error.name === "AbortError" ? error : new Refusal("sluice does not answer; does it still run?", 0);
  }
  if (!response.ok)
    throw await refusal(response);
  return response;
}

export async function call(method, path, body) {
  const answer = await (await ask(method, path, body)).json();
  if (answer.ok === false)
    throw new Refusal(answer.error || "refused", 400);
  return answer;
}

// The marked part of a text and a few words around it: a chain may be longer than a line is.
function marked(text, marks) {
  const from = Math.max(0, marks.search(/\^/) - 14), to = marks.trimEnd().length + 14;
  const before = from ? "…" : "", behind = to < text.length ? "…" : "";
  return before + text.slice(from, to) + behind + "\n" + before.replace("…", " ") + marks.slice(from);
}

// Show an error where it belongs, or nothing. Lines behind a sentence mark a place, in letters of one width.
export function tell(element, error) {
  const text = error ? error.message || String(error) : "", [sentence, line, marks] = text.split("\n");
  if (element.dataset.text === text)
    return;
  element.dataset.text = text;
  element.replaceChildren(...(/^ *\^+ *$/.test(marks || "") ? [sentence, make("code", {}, marked(line, marks))] : [text]));
  element.hidden = !text;
}

// Run what may be refused; where it is, say so there. Returns undefined then.
export async function attempt(element, does) {
  try {
    const result = await does();
    tell(element, null);
    return result;
  } catch (error) {
    if (error.name !== "AbortError")
      tell(element, error);
  }
}

let fades;
// Say something in passing: text, or elements.
export function say(...what) {
  $("said").replaceChildren(...what);
  $("said").classList.add("shown");
  clearTimeout(fades);
  const links = what.some(part => typeof part !== "string"); // to be reached by keys, too
  fades = setTimeout(() => $("said").classList.remove("shown"), links ? 30000 : 5000);
}

// The newest value counts: `send` runs once at a time, and at the end with what came last. `add` merges what waits.
export function newest(send, add = (old, value) => value) {
  let waits, waiting = false, running = false;
  const run = async () => {
    running = true;
    while (waiting) {
      const value = waits;
      waiting = false;
      waits = undefined;
      await send(value);
    }
    running = false;
  };
  const put = value => {
    waits = waiting ? add(waits, value) : value;
    waiting = true;
    if (!running)
      run();
  };
  put.busy = () => running || waiting;
  return put;
}

export async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
  } catch { // not a secure context
    const field = make("textarea", {value: text, class: "hidden"});
    (document.querySelector("dialog[open]") || document.body).append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
  }
  say(what + " copied");
}

export function clock(seconds, digits = 0) {
  const rounded = Number(Math.max(0, seconds).toFixed(digits)), m = Math.floor(rounded / 60);
  const h = Math.floor(m / 60), s = (rounded - 60 * m).toFixed(digits).padStart(digits ? 3 + digits : 2, "0");
  return (h ? h + ":" + String(m % 60).padStart(2, "0") : m) + ":" + s;
}

export function bytes(count) {
  const units = ["bytes", "kB", "MB", "GB", "TB"];
  let k = 0;
  for (; count >= 1000 && k < 4; k++)
    count /= 1000;
  return `${k && count < 100 ? count.toFixed(1) : Math.round(count)} ${units[k]}`;
}

// Dialogs close by their cross, by Escape, and by a press beside them.
export function dialogs() {
  for (const dialog of document.querySelectorAll("dialog")) {
    dialog.querySelector("[data-close]")?.addEventListener("click", () => dialog.close());
    if (dialog.id !== "login-dialog")
      dialog.addEventListener("pointerdown", event => {
        const box = dialog.getBoundingClientRect();
        if (event.target === dialog && (event.clientX < box.left || event.clientX > box.right ||
                                        event.clientY < box.top || event.clientY > box.bottom))
          dialog.close();
      });
  }
}

export function open(dialog) {
  if (!dialog.open)
    dialog.showModal();
}
