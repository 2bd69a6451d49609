// Conditions and steps: part of the script of forms that have them. Returns what runs after each change.
const logic = ({ main, all, fill, isBox, $, send }) => {
const { decimal, steps, sent } = main.dataset, next = $("-next");

// The answers of the questions that are shown, as conditions compare them.
const number = text => {
  let plain = text.trim().replace(/[\s'’]/g, "").replace(/[٠-٩۰-۹０-９]/g, digit => digit.charCodeAt() & 15).replace("−", "-");
  const at = plain.search(/[.,٫][^.,٫]*$/), others = plain.slice(0, at);
  if (at >= 0) {
    const isGroup = others.includes(plain[at]) || plain[at] !== decimal && /^[-+]?[1-9]\d{0,2}[.,]\d{3}$/.test(plain);
    plain = others.replace(/[.,]/g, "") + (isGroup ? "" : ".") + plain.slice(at + 1);
  }
  plain = plain.replaceAll("٬", "");
  return isNaN(plain) ? text : +plain;
};
const read = ({ q, t }, box) => {
  if (box.dataset.value) return JSON.parse(box.dataset.value);
  const of = name => (box.matches("input") ? [box] : all("input,select,textarea", box))
    .filter(field => field.name === name && (!isBox(field) || field.checked)).map(field => field.value).filter(value => value.trim());
  const own = of(q), list = [...own, ...of(q + ".other").map(() => ({}))], [first] = list;
  if (t === "matrix") return all(":checked", box)[0] && {};
  if (t === "list") return first && list;
  if (t === "number") return first && number(first);
  if (t === "boolean") return first && first === "true";
  if (t === "datetime") return first && Date.parse(first + (of(q + ".offset")[0] || "Z"));
  if (t === "url") return first && (/^[^/?#]*:/.test(first) || !first.includes(".") ? first : "https://" + first);
  return first;
};
const test = (operator, value, operand, kind) => {
  if (value === undefined) return operator === "ne" || operator === "answered" && !operand;
  const as = other => kind === "datetime" ? Date.parse(other) : kind === "time" ? (other + ":00").slice(0, 8) : other;
  const one = kind === "datetime" ? value : as(value), other = as(operand), same = item => one === as(item), alike = typeof one === typeof other;
  return {
    eq: () => same(operand), ne: () => !same(operand), in: () => operand.some(same), answered: () => operand,
    lt: () => alike && one < other, lte: () => alike && one <= other, gt: () => alike && one > other, gte: () => alike && one >= other,
    includes: () => !!value.includes?.(operand),
  }[operator]();
};
const holds = (condition, answers) => Object.entries(condition).every(([name, wanted]) => {
  if (name === "all") return wanted.every(part => holds(part, answers));
  if (name === "any") return wanted.some(part => holds(part, answers));
  if (name === "not") return !holds(wanted, answers);
  const tests = Array.isArray(wanted) ? { in: wanted } : wanted instanceof Object ? wanted : { eq: wanted };
  return Object.entries(tests).every(([operator, operand]) => test(operator, answers[name]?.[0], operand, answers[name]?.[1]));
});
const show = () => {
  const answers = {};
  for (const box of all("section,.q,[data-q]")) {
    const { q, t, if: condition } = box.dataset;
    // What the server has asked for is shown, whatever the script would say.
    box.removeAttribute("data-off");
    const isAsked = box.querySelector(".msg") || !box.closest("[data-off]") && (!condition || holds(JSON.parse(condition), answers));
    box.toggleAttribute("data-off", !isAsked);
    box.hidden = !isAsked || "later" in box.dataset;
    if (q && isAsked) answers[q] = [read(box.dataset, box), t];
  }
};
all("[data-if]>.if,[data-if]>.hint>.if").forEach(hint => hint.hidden = true);

// Steps are the sections that are shown; in a form without sections, the questions.
const parts = steps === undefined || sent !== undefined ? [] : all("section")[1] ? all("section") : all(".q");
let step = 0;
const go = (to, focus) => {
  show();
  const shown = parts.filter(part => all(".q:not([data-off])", part.parentElement).some(box => part.contains(box))), count = shown.length, bar = $("-step");
  step = Math.max(0, Math.min(to, count - 1));
  parts.forEach(part => part.hidden = part.toggleAttribute("data-later", part !== shown[step]) || "off" in part.dataset);
  bar.hidden = count < 2;
  bar.firstChild.textContent = fill(steps, { step: step + 1, steps: count });
  Object.assign(bar.lastChild, { max: count, value: step + 1 });
  $("-back").hidden = !step;
  send.hidden = !(next.hidden = step > count - 2);
  document.title = bar.textContent + " – " + document.querySelector("h1").textContent;
  if (focus) all("input:not([type=hidden]),select,textarea", shown[step])[0]?.focus({ focusVisible: false });
};
if (parts[1]) {
  next.onclick = () => {
    const missing = all(":required", parts.find(part => !part.hidden)).find(field => field.validity.valueMissing && field.checkVisibility());
    if (missing) return missing.reportValidity();
    go(step + 1, true);
    history.pushState(step, "");
  };
  $("-back").onclick = () => history.back();
  addEventListener("popstate", event => go(event.state ?? 0, true));
  main.addEventListener("keydown", event => event.key === "Enter" && event.target.matches("input") && !next.hidden && (event.preventDefault(), next.click()));
}

return () => parts[1] ? go(step) : show();
};
