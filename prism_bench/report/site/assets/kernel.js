"use strict";
// The pictures that are drawn from a kernel's data: a case over all runs, its processes, its place under the roofs.
(() => {
  const { chart, around, words, gap } = prism.plot;
  const view = JSON.parse(document.getElementById("view").textContent);
  const chooser = document.querySelector("form.chooser");
  if (!chooser) return;
  const figures = (kind) => [...document.querySelectorAll(`figure[data-plot=${kind}]`)];
  const named = (metric) => metric.replaceAll("_", " ");

  const runs = () => Object.assign([], ...parts(`nights`, view.data.nights));
  const parts = (name, listed) => listed.map(([first]) => {
    const chunk = prism.given.get(`${name} ${first}`) || [];
    return Object.fromEntries(chunk.map((run, index) => [first + index, run]));
  });

  function series(name, key) {
    const file = view.data.series[0]?.[1].split("/")[1], found = [];
    for (const [first] of view.data.series) {
      const values = prism.given.get(`${file} ${first}`)?.[name]?.[key] || [];
      values.forEach((value, index) => { if (value !== null) found.push([first + index, value]); });
    }
    return found;
  }

  function trend(figure, chosen, metric) {
    const own = series(chosen.name, `${metric} kernel`), when = runs();
    const peer = chosen.derived.best_peer, other = peer ? series(chosen.name, `${metric} peer:${peer}`) : [];
    if (own.length < 2) return gap(figure, own.length ? `One run so far: ${words.time(own[0][1])}. A line needs a second one.` : `No run has a ${named(metric)} of this case that can be trusted.`);
    const all = [...own, ...other].map(([, value]) => value), first = own[0][0], last = own.at(-1)[0];
    const date = (run) => when[Math.round(run)]?.[0].slice(0, 10) || "";
    const { across, up, add, say, inner } = chart(figure, `${named(metric)} of ${chosen.name} over ${own.length} runs`, {
      height: 280, x: { domain: [first - 0.5, last + 0.5], words: date }, y: { domain: around(all, 0.1), words: words.time },
    });
    const radius = own.length > 400 ? 1.3 : own.length > 100 ? 2 : 3;
    const dots = (points, colour, whose) => points.forEach(([run, value]) =>
      add("circle", { cx: across(run), cy: up(value), r: radius, fill: colour }, `${whose}${date(run)} ${when[run]?.[1] || ""}: ${words.time(value)}`));
    dots(other, "var(--third)", `${peer} `);
    dots(own, "var(--second)", "");
    const mine = chosen.steps.filter((step) => step.metric === metric && step.subject === "kernel").sort((a, b) => a.night - b.night);
    mine.forEach((step, index) => {
      const from = index ? mine[index - 1].night : first, to = mine[index + 1]?.night ?? last + 1;
      const colour = step.worse && !step.recovered ? "var(--bad)" : step.worse ? "var(--muted)" : "var(--good)";
      for (const [start, end, level] of [...(index ? [] : [[from, step.night, step.before]]), [step.night, to, step.after]])
        add("path", { d: `M${across(start - 0.4)} ${up(level)}H${across(end - 0.6)}`, stroke: "var(--accent)", "stroke-width": 1.8 }, words.time(level));
      add("path", { d: `M${across(step.night - 0.5)} ${inner.top}V${inner.bottom}`, stroke: colour, "stroke-dasharray": "3 3" }, `${date(step.night)}: ${step.cause.join("; also ")}`);
      say(`${step.ratio > 1 ? "+" : "−"}${Math.abs((step.ratio - 1) * 100).toFixed(1)} %`, { x: across(step.night - 0.5) + 5, y: inner.top + 10, fill: colour });
    });
    if (other.length) say(peer, { x: inner.right, y: up(other.at(-1)[1]) - 6, "text-anchor": "end" });
  }

  function strips(figure, chosen, metric) {
    const found = chosen.measurements.filter((one) => one.metric === metric && one.processes.length);
    if (!found.length) return gap(figure, chosen.measurements.find((one) => one.metric === metric)?.reason || `No ${named(metric)} was measured.`);
    const own = found.find((one) => one.subject === "kernel") || found[0];
    const least = view.floors[metric], samples = own.processes.flat(), rows = own.processes.length;
    const [low, high] = around(samples, 0.08), near = least && least > low - (high - low) && least < high;
    const { across, add, say, inner } = chart(figure, `${samples.length} samples of ${chosen.name} in ${rows} processes`, {
      height: 60 + rows * 34, left: 74, x: { domain: near ? [Math.min(low, least * 0.995), high] : [low, high], words: words.time }, y: { domain: [rows, 0], ticks: [], words: String },
    });
    own.processes.forEach((process, row) => {
      const middle = inner.top + (row + 0.5) * (inner.bottom - inner.top) / rows;
      say(`process ${row + 1}`, { x: inner.left - 8, y: middle + 4, "text-anchor": "end" });
      process.forEach((value, index) => add("circle", { cx: across(value), cy: middle + ((index * 7) % 11 - 5) * 1.1, r: 2.6, fill: "var(--accent)", "fill-opacity": 0.55 },
        `${words.time(value)}${own.clocks[row]?.[index] ? ` at ${own.clocks[row][index]} MHz` : ""}`));
    });
    add("path", { d: `M${across(own.median)} ${inner.top}V${inner.bottom}`, stroke: "var(--ink)", "stroke-width": 1.2 }, `median ${words.time(own.median)}`);
    if (near) add("path", { d: `M${across(least)} ${inner.top}V${inner.bottom}`, stroke: "var(--muted)", "stroke-dasharray": "3 3" }, `launch overhead ${words.time(least)}`);
    if (!own.valid) say(`not to be trusted: ${own.reason}`, { x: inner.left, y: inner.top + 2, fill: "var(--bad)" });
  }

  function position(figure, chosen) {
    const points = view.cases.map((one) => ({ ...one.derived, case: one.name, label: one.label, picked: one.name === chosen.name }));
    prism.plot.roofline(figure, points, view.roofs, { height: 260 });
  }

  function show() {
    const wanted = prism.state();
    const chosen = view.cases.find((one) => one.name === wanted.get("case")) || view.cases.find((one) => one.measurements.some((two) => two.processes.length)) || view.cases[0];
    const metrics = [...new Set(chosen.measurements.filter((one) => one.subject === "kernel").map((one) => one.metric))];
    const metric = metrics.includes(wanted.get("metric")) ? wanted.get("metric") : metrics[0] || "cold_time";
    const [cases, list] = chooser.querySelectorAll("select");
    cases.value = chosen.name;
    list.replaceChildren(...metrics.map((one) => new Option(named(one), one, false, one === metric)));
    document.querySelectorAll("article.case").forEach((article) => { article.hidden = article.dataset.case !== chosen.name; });
    document.querySelectorAll("tr[data-choose]").forEach((row) => row.classList.toggle("chosen", row.dataset.choose === chosen.name));
    figures("trend").forEach((figure) => trend(figure, chosen, metric));
    figures("strips").forEach((figure) => strips(figure, chosen, metric));
    figures("roof").forEach((figure) => position(figure, chosen));
  }

  async function kernel() {
    chooser.hidden = false;
    chooser.addEventListener("submit", (event) => event.preventDefault());
    chooser.addEventListener("input", (event) => { prism.remember(event.target.name, event.target.value); show(); });
    addEventListener("hashchange", show);
    show();
    await Promise.all([...view.data.nights, ...view.data.series].map(([, path]) => prism.load(path)));
    show();
    document.body.dataset.loaded = "data";
  }

  kernel();
  let width = innerWidth;
  addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; show(); } });
})();
