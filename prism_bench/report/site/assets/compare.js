"use strict";
// Any two records next to each other: the choice, which the link remembers, and the table of the result of the verdict's script.
(async () => {
  const { words } = prism.plot, view = prism.view();
  const lists = view.shelves, { rules, look } = view;
  const section = document.getElementById("pair"), form = section.querySelector("form.chooser"), gap = section.querySelector("p.gap-words");
  const found = section.querySelector(".found"), table = section.querySelector("table"), selects = { a: form.elements.a, b: form.elements.b };
  const fixed = document.getElementById("against-1");
  const part = (name) => found.querySelector(`[data-part=${name}]`);
  const made = (tag, attributes = {}, ...children) => {
    const element = document.createElement(tag);
    for (const [key, value] of Object.entries(attributes)) if (value !== undefined && value !== null) element.setAttribute(key, value);
    element.append(...children);
    return element;
  };
  const explain = (text) => { gap.textContent = text; gap.hidden = false; found.hidden = true; };

  // One file after the other: the lists of two machines have the same names, and each is taken before the next one comes.
  async function listed() {
    const all = [];
    for (const list of lists)
      for (const [first, path] of list.nights) {
        const rows = await prism.load(path) && prism.given.get(`nights ${first}`) || [];
        for (const [created, commit, side] of rows) if (side) all.push({ list, created, commit, side, key: `${list.machine} ${list.backend} ${created} ${commit}`.trim() });
      }
    return all;
  }

  const title = (one) => `${one.created.slice(0, 16).replace("T", " ")}${one.commit ? ` ${one.commit}` : ""}`;
  const whose = (list) => `${list.machine}, ${list.backend}${look.stand_ins[list.backend] ? ` (times of the ${look.stand_ins[list.backend]})` : ""}`;

  function offer(select, all) {
    for (const list of lists) {
      const own = all.filter((one) => one.list === list).reverse();
      select.append(made("optgroup", { label: whose(list) }, ...own.map((one) => new Option(lists.length > 1 ? `${title(one)}, ${list.machine}` : title(one), one.key))));
    }
  }

  async function side(one) {
    if (!prism.given.has(`${one.side} 0`)) await prism.load(`data/records/${one.side}.js`);
    return prism.given.get(`${one.side} 0`);
  }

  async function noise(list) {
    if (list.noise && list.floors === undefined) list.floors = await prism.load(list.noise) && prism.given.get("noise 0") || null;
    return list.floors;
  }

  // ---- the table
  const TONES = { slower: "bad", faster: "good" };
  const quantity = (text) => {
    const [number, unit] = text.split(" ");
    return made("span", { class: "q" }, number, ...(unit ? [made("span", { class: "u" }, unit)] : []));
  };
  const share = (value) => `${(value * 100).toFixed(value >= 0.1 ? 0 : 1)} %`;
  const time = (seconds, spread) => {
    if (seconds === null) return made("td", { class: "gap" }, "–");
    return made("td", { "data-sort": seconds }, quantity(words.whole(seconds)), ...(spread === null || spread === undefined ? [] : [made("small", {}, `±${share(spread)}`)]));
  };

  function whisker({ ratio, low, high }, tone) {
    const at = (value) => (50 + 50 * Math.max(-1, Math.min(1, Math.log(value) / look.reach))).toFixed(1);
    const holder = document.createElement("template");
    holder.innerHTML = `<svg class="whisker ${tone}" viewBox="0 0 100 12" preserveAspectRatio="none" role="img"><path class="zero" d="M50 0V12"/><path class="reach" d="M${at(low)} 6H${at(high)}"/><path class="dot" d="M${at(ratio)} 2V10"/></svg>`;
    const text = prism.changeRange(low, high);
    holder.content.firstChild.setAttribute("aria-label", text);
    return [holder.content.firstChild, made("small", {}, text)];
  }

  function named(one, list) {
    const [kernel, axes] = [one.case.split("[")[0], one.case.includes("[") ? one.case.slice(one.case.indexOf("[") + 1, -1) : ""];
    const page = look.pages[kernel.split(":")[0]], link = page && list === lists[0];
    const name = link ? made("a", { href: `${document.body.dataset.root}${page}#case=${encodeURIComponent(one.case)}` }, kernel) : made("span", { class: "name" }, kernel);
    const parts = axes.split(",").filter(Boolean).flatMap((axis, index) => [...(index ? [" "] : []), made("span", {}, axis)]);
    return made("th", { scope: "row", class: "text", "data-sort": one.case }, name, ...(parts.length ? [made("small", { class: "axes" }, ...parts)] : []));
  }

  function row(one, list) {
    const tone = TONES[one.verdict] || "muted", known = one.ratio !== undefined, whole = known && isFinite(one.high), [a, b] = one.seconds, [first, second] = one.spreads || [];
    const why = [one.reason, one.build?.[1]].filter(Boolean).join("; ");
    const interval = made("td", { class: "text", "data-csv": whole ? `${one.low.toFixed(4)} to ${one.high.toFixed(4)}` : undefined },
      ...(whole ? whisker(one, tone) : [made("span", { class: "muted" }, "none")]));
    return made("tr", { "data-verdict": one.verdict }, named(one, list), made("td", { class: "text" }, one.metric.replaceAll("_", " ")),
      time(a, first), time(b, second),
      made("td", { "data-sort": known ? one.ratio : "" }, ...(known ? [prism.change(one.ratio), ...(one.machine.toFixed(3) === "1.000" ? [] : [made("small", {}, `machine ${prism.change(one.machine)}`)])] : ["–"])), interval,
      made("td", { "data-sort": known && isFinite(one.floor) ? one.floor : "" }, ...(known && isFinite(one.floor) ? [quantity(share(one.floor))] : ["–"])),
      made("td", { class: `text ${tone}` }, one.verdict, ...(why ? [made("small", { class: "why" }, why.replace(/(\d) us\b/g, "$1 µs"))] : [])));
  }

  function refusal({ word, values }, a, b) {
    const both = `${values[0]} and ${values[1]}`;
    if (word === "machine") return ["Two different machines.", `These records are of ${both}. What differs between them is the machines, whatever the code did: there is no verdict, and no noise floor holds across machines. The intervals are of the processes on each side alone.`];
    return [`No verdict: the ${word} differs.`, `One record has ${both}. Only records of one backend, device and protocol can be held against each other; what stands below is what each of them measured.`];
  }

  const rank = (one) => [look.order.indexOf(one.verdict), -Math.abs(Math.log(one.ratio ?? 1))];

  function show(result, [a, b], names) {
    const counts = new Map(look.order.map((word) => [word, result.cases.filter((one) => one.verdict === word).length]).filter(([, count]) => count));
    part("names").textContent = `${names[1]} (B) against ${names[0]} (A), ${a.list === b.list ? whose(a.list) : `B of ${whose(b.list)}, A of ${whose(a.list)}`}`;
    const [strong, rest] = result.refused ? refusal(result.refused, a, b) : ["", ""];
    part("refused").replaceChildren(made("strong", {}, strong), ` ${rest}`);
    part("refused").hidden = !result.refused;
    part("counts").replaceChildren(...(result.refused ? [] : [...counts].map(([word, count]) => made("li", { class: TONES[word] || "muted" }, `${count} ${word}`))));
    part("notes").replaceChildren(...result.notes.map((note) => made("p", { class: "missing" }, note)));
    const { cases, shift, widening, excess, changed, used, factor, offset } = result.control;
    const parts = [...(offset ? [`${offset > 0 ? "+" : "-"}${Math.abs(offset * 1e6).toFixed(2)} us a launch`] : []), ...(Math.abs(factor - 1) > 0.001 ? [`${((factor - 1) * 100).toFixed(1)} %`] : [])];
    part("control").textContent = cases ? `Control: ${cases} cases of identical code, median change ${prism.change(shift)}${used && parts.length ? `; divided out: ${parts.join(" and ")}` : ""}${widening > 1 ? `; every error was widened ${widening.toFixed(2)}x by what they differ` : ""}.${excess ? ` ${changed} of them have times that differ beyond chance: the machine changed between the two, and none of these verdicts can be trusted.` : ""}` : "";
    part("control").classList.toggle("warn", excess);
    [...table.tHead.rows[0].cells].forEach((head) => { const index = ["a", "b"].indexOf(head.dataset.key); if (index >= 0) (head.querySelector("button") || head).textContent = names[index]; });
    table.dataset.name = `${names[1]} against ${names[0]}`;
    const ordered = [...result.cases].sort((x, y) => { const [i, s] = rank(x), [j, t] = rank(y); return i - j || s - t; });
    table.tBodies[0].replaceChildren(...ordered.map((one) => row(one, b.list)));
    [gap.hidden, found.hidden] = [true, false];
    if (!fixed || prism.state().has("a") || prism.state().has("b")) found.open = true; // else a fixed comparison below shows the same pair
    if (!result.cases.length) explain("The two records have no case in common.");
    table.dispatchEvent(new Event("filled"));
  }

  // ---- the choice
  const all = await listed();
  if (all.length < 2) return; // the page explains it
  Object.values(selects).forEach((select) => offer(select, all));

  let turn = 0;
  async function chosen() {
    const mine = ++turn, pair = ["a", "b"].map((name) => all.find((one) => one.key === selects[name].value));
    if (pair[0] === pair[1]) return explain("This is the same record twice: choose another one on either side.");
    const sides = await Promise.all(pair.map(side)), known = await noise(pair[1].list);
    if (mine !== turn) return undefined;
    const lost = pair.find((_, index) => !sides[index]);
    if (lost) return explain(`The record of ${title(lost)} could not be read when this site was made.`);
    const apart = pair[0].list.machine !== pair[1].list.machine, names = pair.map((one) => apart ? `${one.list.machine} ${title(one)}` : title(one));
    return show(prism.compare(...sides, known, rules, names), pair, names);
  }

  function recall() {
    const own = all.filter((one) => one.list === lists[0]), state = prism.state(), last = own.at(-1) || all.at(-1);
    const others = all.filter((one) => one !== last).sort((x, y) => (x.created < y.created ? -1 : 1)); // the newest one of another machine, where this one has no earlier
    const start = { b: last, a: own.at(-2) || others.at(-1) };
    for (const [name, select] of Object.entries(selects)) {
      select.value = state.get(name) || "";
      if (!select.value) select.value = start[name].key;
    }
    return chosen();
  }

  const remember = () => { for (const [name, select] of Object.entries(selects)) prism.remember(name, select.value); return chosen(); };
  form.addEventListener("input", remember);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.elements.swap.addEventListener("click", () => { [selects.a.value, selects.b.value] = [selects.b.value, selects.a.value]; remember(); });
  addEventListener("hashchange", recall);
  form.hidden = false;
  await recall();
})();
