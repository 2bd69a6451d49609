(() => {
  "use strict";
  const form = document.querySelector("form"), { id, done } = document.body.dataset, key = "forms:" + id;
  const $ = name => document.getElementById(name);
  const attempt = (action, otherwise) => { try { return action() } catch { return otherwise } };
  const tell = event => parent !== window && parent.postMessage({ forms: event, id, height: document.documentElement.offsetHeight }, "*");
  new ResizeObserver(() => tell("height")).observe(document.documentElement);
  addEventListener("message", event => event.data?.forms === "ask" && tell("height"));
  if (done !== undefined) { attempt(() => localStorage.removeItem(key)); tell("done") }
  if (!form) return;

  const { decimal, steps, draft, sent } = form.dataset, send = $("-send");
  const all = (selector, within = form) => [...within.querySelectorAll(selector)];
  const fill = (text, values) => text.replace(/{(\w+)}/g, (_, name) => values[name]);

  // Answers, as conditions compare them.
  const number = text => {
    let plain = text.trim().replace(/[\s'’]/g, "").replace("−", "-"), signs = plain.match(/[.,]/g) || [];
    const last = Math.max(plain.lastIndexOf("."), plain.lastIndexOf(","));
    const groups = signs.length > 1 ? signs[0] === signs.at(-1)
      : signs[0] !== decimal && /^[-+]?0*[1-9]\d*[.,]\d{3}$/.test(plain);
    if (last >= 0) plain = plain.slice(0, last).replace(/[.,]/g, "") + (groups ? "" : ".") + plain.slice(last + 1);
    return plain && isFinite(plain) ? +plain : text.trim() || undefined;
  };
  const values = (box, name) => all("input,select,textarea", box)
    .filter(field => field.name === name && (!/radio|checkbox/.test(field.type) || field.checked))
    .map(field => field.value).filter(value => value.trim());
  const readers = {
    text: (box, name) => values(box, name)[0] ?? (values(box, name + ".other")[0] && {}),
    number: (box, name) => number(values(box, name)[0] ?? ""),
    boolean: (box, name) => ({ true: true, false: false })[values(box, name)[0]],
    list: (box, name) => { const list = [...values(box, name), ...values(box, name + ".other").map(() => ({}))]; return list.length ? list : undefined },
    datetime: (box, name) => values(box, name).map(value => Date.parse(value + (/T..:..$/.test(value) ? ":00" : "") + (values(box, name + ".offset")[0] || "Z")))[0],
    matrix: box => all(":checked", box).length ? {} : undefined,
    untyped: box => box.value.trim() ? box.value : undefined,
  };
  const points = text => [...text].map(character => character.codePointAt());
  const order = (one, other) => {
    if (typeof one !== "string") return one - other;
    const [a, b] = [points(one), points(other)], at = a.findIndex((point, place) => point !== b[place]);
    return at < 0 ? a.length - b.length : at < b.length ? a[at] - b[at] : 1;
  };
  const time = text => /^\d\d:\d\d$/.test(text) ? text + ":00" : text;
  const test = (operator, value, operand, kind) => {
    if (value === undefined) return operator === "ne" || operator === "answered" && operand === false;
    const alike = other => kind === "datetime" ? Date.parse(other) : kind === "time" ? time(other) : other;
    const right = alike(operand), left = kind === "time" ? time(value) : value;
    const same = other => kind === "untyped" ? String(left) === String(other) : left === alike(other);
    const ordered = typeof left === typeof right ? order(left, right) : NaN;
    return {
      eq: () => same(operand), ne: () => !same(operand), in: () => operand.some(same), answered: () => operand,
      lt: () => ordered < 0, lte: () => ordered <= 0, gt: () => ordered > 0, gte: () => ordered >= 0,
      includes: () => (typeof left === "string" || Array.isArray(left)) && left.includes(operand),
    }[operator]();
  };
  const holds = (condition, answers) => Object.entries(condition).every(([name, wanted]) => {
    if (name === "all") return wanted.every(part => holds(part, answers));
    if (name === "any") return wanted.some(part => holds(part, answers));
    if (name === "not") return !holds(wanted, answers);
    const tests = Array.isArray(wanted) ? { in: wanted } : wanted instanceof Object ? wanted : { eq: wanted };
    const [value, kind] = answers[name] || [];
    return Object.entries(tests).every(([operator, operand]) => test(operator, value, operand, kind));
  });
  const show = () => {
    const answers = {};
    for (const box of all("section,.q,[data-t=untyped]")) {
      const condition = box.dataset.if && JSON.parse(box.dataset.if);
      const shown = !box.parentElement.closest("[data-off]") && (!condition || holds(condition, answers));
      box.toggleAttribute("data-off", !shown);
      box.hidden = !shown || box.hasAttribute("data-later");
      const { q, t } = box.dataset;
      if (q && shown) answers[q] = [readers[t](box, q), t === "text" && box.querySelector("[type=time]") ? "time" : t];
    }
  };
  all("[data-if] .if").forEach(hint => { if (hint.closest("[data-if]").contains(hint) && hint.closest("section,.q")?.dataset.if) hint.hidden = true });

  // The offset of the visitor's time zone at each date and time.
  all("[type=datetime-local]").forEach(field => {
    const offset = document.createElement("input"), hint = all(".hint p", field.closest(".q")).at(-1);
    Object.assign(offset, { type: "hidden", name: field.name + ".offset" });
    field.after(offset);
    const update = () => {
      const minutes = -(field.value ? new Date(field.value) : new Date()).getTimezoneOffset(), two = part => String(Math.trunc(part)).padStart(2, "0");
      offset.value = (minutes < 0 ? "-" : "+") + two(Math.abs(minutes) / 60) + ":" + two(Math.abs(minutes) % 60);
      if (hint) hint.textContent = fill(form.dataset.zone, { offset: "UTC" + offset.value });
    };
    field.addEventListener("input", update);
    update();
  });

  // Steps: the shown sections, or without sections the shown questions.
  const parts = steps === undefined ? [] : all("section").length > 1 ? all("section") : all(".q");
  let step = 0;
  const open = () => parts.filter(part => !part.hasAttribute("data-off") && part.querySelector("input,select,textarea,h2"));
  const go = (to, focus = true) => {
    show(); // an answer adds and removes steps
    const shown = open();
    step = Math.min(Math.max(to, 0), shown.length - 1);
    parts.forEach(part => part.toggleAttribute("data-later", part !== shown[step]));
    show();
    const last = step >= shown.length - 1, text = fill(steps, { step: step + 1, steps: shown.length }), bar = $("-step");
    bar.hidden = shown.length < 2;
    bar.firstElementChild.textContent = text;
    Object.assign(bar.lastElementChild, { max: shown.length, value: step + 1 });
    $("-back").hidden = !step;
    $("-next").hidden = last;
    send.hidden = !last;
    document.title = text + " – " + document.querySelector("h1").textContent;
    if (focus) shown[step]?.querySelector("input:not([type=hidden]),select,textarea")?.focus();
  };
  const forward = () => { go(step + 1); history.pushState({ step }, "") };
  if (parts.length > 1 && sent === undefined) {
    history.replaceState({ step }, "");
    $("-next").onclick = forward;
    $("-back").onclick = () => history.back();
    addEventListener("popstate", event => go(event.state?.step ?? 0));
    form.addEventListener("keydown", event => {
      if (event.key === "Enter" && event.target.tagName === "INPUT" && !$("-next").hidden) { event.preventDefault(); forward() }
    });
  }

  // Unsent answers stay on this device for a week.
  const kept = () => all("[name]:not([type=hidden])").filter(field => field.name[0] !== "_");
  const save = () => attempt(() => localStorage.setItem(key, JSON.stringify({ at: Date.now(),
    values: kept().map(field => /radio|checkbox/.test(field.type) ? [field.name, field.value, field.checked] : [field.name, field.value]) })));
  const restore = () => {
    const { at, values } = attempt(() => JSON.parse(localStorage.getItem(key)), null) || {};
    const fields = kept(), filled = fields.some(field => /radio|checkbox/.test(field.type) ? field.checked : field.value);
    if (!values || Date.now() - at > 7 * 864e5 || filled) return;
    values.forEach(([name, value, checked], place) => {
      const field = fields[place]?.name === name ? fields[place] : fields.find(field => field.name === name && (checked === undefined || field.value === value));
      if (field && checked === undefined) field.value = value;
      else if (field && field.value === value) field.checked = checked;
    });
    const note = $("-draft");
    note.hidden = !values.some(([, value, checked]) => checked ?? value);
    note.querySelector("button").onclick = () => { attempt(() => localStorage.removeItem(key)); form.reset(); note.hidden = true; update() };
  };
  if (draft !== undefined && sent === undefined) restore();
  let timer;
  const count = () => all("[data-max]").forEach(note => {
    const left = note.dataset.max - [...note.previousElementSibling.value].length;
    note.textContent = fill(left < 0 ? form.dataset.over : form.dataset.left, { count: Math.abs(left) });
  });
  const update = () => { count(); parts.length > 1 && sent === undefined ? go(step, false) : show() };
  form.addEventListener("input", () => {
    update();
    if (draft !== undefined) { clearTimeout(timer); timer = setTimeout(save, 400) }
  });

  // Sent once: the page stays as it is until the answer comes.
  const label = send.textContent;
  const ready = () => { send.textContent = label; send.removeAttribute("aria-disabled") };
  form.addEventListener("submit", event => {
    if (send.hasAttribute("aria-disabled")) return event.preventDefault();
    save.call && draft !== undefined && save();
    send.setAttribute("aria-disabled", "true");
    send.textContent = form.dataset.sending;
  });
  addEventListener("pageshow", () => { ready(); update() });
  update();
  document.querySelector(".sum")?.focus();
})();
