// Runs on every page, after logic.js where a form needs that.
const main = document.querySelector("main"), { id, done } = document.body.dataset, key = "forms:" + id;
const attempt = action => { try { return action() } catch { return } }; // storage may be blocked in a frame
const tell = event => parent !== window && parent.postMessage({ forms: event, id, height: document.documentElement.offsetHeight }, "*");
new ResizeObserver(() => tell("height")).observe(document.documentElement);
addEventListener("message", event => event.data?.forms === "ask" && tell("height"));
if (done !== undefined) { attempt(() => localStorage.removeItem(key)); tell("done") }
if (!document.getElementById("-send")) return;

// Not the form: the names of its fields would hide its own members.
const { v, draft, sent, left, over, sending, zone, away } = main.dataset;
const $ = name => document.getElementById(name), send = $("-send"), label = send.textContent;
const all = (selector, within = main) => [...within.querySelectorAll(selector)];
const fill = (text, values) => text.replace(/{(\w+)}/g, (_, name) => values[name]);
const isBox = field => /radio|checkbox/.test(field.type);

const change = typeof logic === "undefined" ? () => {} : logic({ main, all, fill, isBox, $, send });

// Dates with times are in the visitor's time zone.
all("[type=datetime-local]").forEach(field => {
  const offset = Object.assign(document.createElement("input"), { type: "hidden", name: field.name + ".offset" });
  field.after(offset);
  (field.oninput = () => {
    const minutes = -(field.value ? new Date(field.value) : new Date()).getTimezoneOffset(), size = Math.abs(minutes);
    offset.value = (minutes < 0 ? "-" : "+") + new Date(size * 6e4).toISOString().slice(11, 16);
    $(field.name + "-z").textContent = fill(zone, { offset: "UTC" + offset.value });
  })();
});

// Answers that were not sent stay on this device for a week.
const kept = all("[name]:not([type=hidden],[name^=_])"), state = field => isBox(field) ? field.checked : field.value;
let isGone = false;
const save = () => draft !== undefined && !isGone && attempt(() => localStorage.setItem(key, JSON.stringify([v, Date.now(), ...kept.map(field => [field.name, state(field)])])));
const [version, at, ...old] = draft !== undefined && sent === undefined && attempt(() => JSON.parse(localStorage.getItem(key))) || [];
if (version === v && Date.now() - at < 6048e5 && !kept.some(state) && old.length === kept.length && old.every(([name, value], place) => kept[place].name === name)) {
  kept.forEach((field, place) => field[isBox(field) ? "checked" : "value"] = old[place][1]);
  const note = $("-draft");
  note.hidden = !old.some(([, value]) => value);
  note.lastElementChild.onclick = () => { attempt(() => localStorage.removeItem(key)); HTMLFormElement.prototype.reset.call(document.forms[0]); note.hidden = true; update() };
}
const update = () => {
  all("[data-max]").forEach(note => {
    const rest = note.dataset.max - [...note.previousElementSibling.value].length;
    note.textContent = fill(rest < 0 ? over : left, { count: Math.abs(rest) });
  });
  change();
};
let timer;
main.oninput = () => { update(); clearTimeout(timer); timer = setTimeout(save, 400) };

// What is sent once is not sent again.
main.onsubmit = event => {
  if (send.ariaDisabled) return event.preventDefault();
  // A page of another site cannot remove them.
  if (away !== undefined) { attempt(() => localStorage.removeItem(key)); isGone = true }
  save();
  send.ariaDisabled = "true";
  send.textContent = sending;
};
addEventListener("pagehide", save);
addEventListener("pageshow", () => { isGone = false; send.ariaDisabled = null; send.textContent = label; update() });
update();
document.querySelector(".sum")?.focus();
