// Runs on every page, after logic.js where a form needs that.
const form = document.forms[0], { id, done } = document.body.dataset, key = "forms:" + id;
const attempt = action => { try { return action() } catch { return } }; // storage may be blocked in a frame
const tell = event => parent !== window && parent.postMessage({ forms: event, id, height: document.documentElement.offsetHeight }, "*");
new ResizeObserver(() => tell("height")).observe(document.documentElement);
addEventListener("message", event => event.data?.forms === "ask" && tell("height")); // from embed.js
if (done !== undefined) { attempt(() => localStorage.removeItem(key)); tell("done") }
if (!form) return;

const { draft, sent, left, over, sending } = form.dataset;
const $ = name => document.getElementById(name), send = $("-send"), label = send.textContent;
const all = (selector, within = form) => [...within.querySelectorAll(selector)];
const fill = (text, values) => text.replace(/{(\w+)}/g, (_, name) => values[name]);
const isBox = field => /radio|checkbox/.test(field.type);

const change = typeof logic === "undefined" ? () => {} : logic({ form, all, fill, isBox, $, send });

// Answers that were not sent stay on this device for a week.
const kept = all("[name]:not([type=hidden],[name^=_])"), state = field => isBox(field) ? field.checked : field.value;
const save = () => draft !== undefined && attempt(() => localStorage.setItem(key, JSON.stringify([Date.now(), ...kept.map(field => [field.name, state(field)])])));
const [at, ...old] = draft !== undefined && sent === undefined && attempt(() => JSON.parse(localStorage.getItem(key))) || [];
if (Date.now() - at < 6048e5 && !kept.some(state) && old.length === kept.length && old.every(([name, value], place) => kept[place].name === name)) {
  kept.forEach((field, place) => field[isBox(field) ? "checked" : "value"] = old[place][1]);
  const note = $("-draft");
  note.hidden = !old.some(([, value]) => value);
  note.lastElementChild.onclick = () => { attempt(() => localStorage.removeItem(key)); form.reset(); note.hidden = true; update() };
}
const update = () => {
  all("[data-max]").forEach(note => {
    const rest = note.dataset.max - [...note.previousElementSibling.value].length;
    note.textContent = fill(rest < 0 ? over : left, { count: Math.abs(rest) });
  });
  change();
};
let timer;
form.oninput = () => { update(); clearTimeout(timer); timer = setTimeout(save, 400) };

// What is sent once is not sent again.
form.onsubmit = event => {
  if (send.ariaDisabled) return event.preventDefault();
  save();
  send.ariaDisabled = "true";
  send.textContent = sending;
};
addEventListener("pageshow", () => { send.ariaDisabled = null; send.textContent = label; update() });
update();
document.querySelector(".sum")?.focus();
