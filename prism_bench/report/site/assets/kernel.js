"use strict";
// The pictures that are drawn from a kernel's data: a case over all runs, its processes, its place under the roofs.
(() => {
  const { chart, around, words, gap, readable } = prism.plot;
  const view = prism.view();
  const chooser = document.querySelector("form.chooser");
  if (!chooser || !view) return;
  const figures = (kind) => [...document.querySelectorAll(`figure[data-plot=${kind}]`)];
  const named = (metric) => view.stand_in && metric === "wall_time" ? `time of the ${view.stand_in} on the CPU` : metric.replaceAll("_", " ");
  // The lowest sample of a process, its quartiles and the highest, in seconds.
  const quartiles = ([, power, ...values]) => values.map((value) => value * 10 ** power);
  const percent = (share) => `${share >= 0.1 ? Math.round(share * 100) : (share * 100).toFixed(1)} %`;

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

  // The pieces of a history between its steps, or where there is none between GPUs: from, to (exclusive) and level.
  // Every value of an exact series is a level.
  function levels(own, steps, devices, exact) {
    const first = own[0][0], end = own.at(-1)[0] + 1;
    if (!steps.length) {
      const changes = own.filter(([, value], index) => index && value !== own[index - 1][1]).map(([run]) => run);
      const cuts = [first, ...(exact ? changes : devices.filter((at) => at > first && at < end)), end];
      return cuts.slice(0, -1).flatMap((from, index) => {
        const sorted = own.filter(([run]) => run >= from && run < cuts[index + 1]).map(([, value]) => value).sort((a, b) => a - b);
        return sorted.length ? [[from, cuts[index + 1], sorted[Math.floor(sorted.length / 2)]]] : [];
      });
    }
    return [[first, steps[0].night, steps[0].before], ...steps.map((step, index) => [step.night, steps[index + 1]?.night ?? end, step.after])];
  }

  // A line through the points that is broken where another GPU measured.
  function line(points, across, up, devices) {
    return points.map(([run, value], index) => {
      const broken = index && devices.some((at) => at > points[index - 1][0] && at <= run);
      return `${index && !broken ? "L" : "M"}${across(run).toFixed(1)} ${up(value).toFixed(1)}`;
    }).join("");
  }

  function trend(figure, chosen, metric) {
    const own = series(chosen.name, `${metric} kernel`), when = runs(), caption = figure.querySelector("figcaption");
    const peer = chosen.derived.best_peer, other = peer ? series(chosen.name, `${metric} peer:${peer}`) : [];
    const here = chosen.measurements.find((one) => one.metric === metric), aside = here?.median && chosen.night !== null && !own.some(([run]) => run === chosen.night) ? [chosen.night, here.median] : null;
    const because = aside && `the run of ${when[aside[0]]?.[0].slice(0, 10) || "this page"} took ${words.of(metric)(aside[1])} and is set aside: ${here.refused || "the device ran at another clock than in the runs around it"}`;
    caption.hidden = own.length < 2;
    if (own.length < 2) return gap(figure, `${own.length ? `One run so far: ${words.of(metric)(own[0][1])}. A line needs a second one${words.exact(metric) ? "" : ", and a step eleven"}.` : `No run has a ${named(metric)} of this case that can be trusted.`}${aside ? ` ${because[0].toUpperCase()}${because.slice(1)}.` : ""}`);
    const steps = chosen.steps.filter((step) => step.metric === metric && step.subject === "kernel").sort((a, b) => a.night - b.night);
    const noise = view.noise[chosen.name]?.[metric], pieces = levels(own, steps, chosen.devices, words.exact(metric));
    const band = ([from, to, level]) => {
      const inside = own.filter(([run]) => run >= from && run < to).map(([, value]) => value);
      return noise ? [level * (1 - noise), level * (1 + noise)] : [Math.min(level, ...inside), Math.max(level, ...inside)];
    };
    caption.querySelector("[data-band]").textContent = words.exact(metric) ? "exact: one value per run, and every change is a step" : view.single.includes(metric) ? "noisy, one value per compilation: lowest to highest of the level" : noise ? `within ±${percent(noise)} of the level, which this machine cannot tell from noise` : "lowest to highest run of the level; no noise floor was measured";
    caption.querySelector("[data-peer]").hidden = !other.length;
    caption.querySelector("[data-peer] span").textContent = peer || "";
    const outer = [...own, ...other, ...(aside ? [aside] : [])], all = outer.map(([, value]) => value).concat(pieces.flatMap(band));
    const first = Math.min(...outer.map(([run]) => run)), last = Math.max(...outer.map(([run]) => run));
    const few = last - first < 9 ? Array.from({ length: last - first + 1 }, (_, index) => first + index).filter((_, index, all) => innerWidth > 700 || all.length < 4 || index === 0 || index === all.length - 1) : undefined;
    const date = (run) => when[Math.round(run)]?.[0].slice(0, 10) || "";
    const plot = chart(figure, `${named(metric)} of ${chosen.name} over ${own.length} runs, ${steps.length || "no"} step${steps.length === 1 ? "" : "s"}`, {
      height: 280, x: { domain: [first - 0.5, last + 0.5], words: date, ticks: few, title: "run" }, y: { domain: around(all, 0.1), words: words.of(metric), title: named(metric) },
    });
    const { across, up, add, say, inner } = plot, edge = (run) => Math.min(inner.right, Math.max(inner.left, across(run - 0.5)));
    for (const piece of pieces) {
      const [low, high] = band(piece), [left, right] = [edge(piece[0]), edge(piece[1])];
      add("rect", { x: left, y: up(high), width: Math.max(1, right - left), height: Math.max(1, up(low) - up(high)), fill: "var(--second)", "fill-opacity": 0.22, class: "band" });
      add("path", { d: `M${left} ${up(piece[2])}H${right}`, stroke: "var(--accent)", "stroke-width": 1.2, class: "level" });
    }
    for (const at of chosen.devices.filter((run) => run > first && run <= last)) {
      add("path", { d: `M${across(at - 0.5)} ${inner.top}V${inner.bottom}`, stroke: "var(--muted)", "stroke-dasharray": "1 3" });
      if (across(at + 0.5) - across(at - 0.5) > 80) say("another GPU", { x: across(at - 0.5) + 4, y: inner.bottom - 6, "font-size": 10 });
    }
    if (other.length) add("path", { d: line(other, across, up, chosen.devices), fill: "none", stroke: "var(--third)", "stroke-width": 1.2 });
    const dots = (points, stroke) => add("path", { d: points.map(([run, value]) => `M${across(run).toFixed(1)} ${up(value).toFixed(1)}h0`).join(""), stroke, "stroke-width": points.length > 60 ? 3 : 6, "stroke-linecap": "round", class: "runs" });
    if (other.length && own.length <= 200) dots(other, "var(--third)");
    add("path", { d: line(own, across, up, chosen.devices), fill: "none", stroke: "var(--ink)", "stroke-width": 1.3, class: "history" });
    if (own.length <= 200) dots(own, "var(--ink)");
    const processes = chosen.measurements.find((one) => one.metric === metric)?.processes.filter(([count]) => count).map((one) => quartiles(one)[2]) || [];
    if (processes.length > 1) add("path", { d: `M${across(chosen.night ?? last)} ${up(Math.min(...processes))}V${up(Math.max(...processes))}`, stroke: "var(--ink)", "stroke-width": 3, "stroke-opacity": 0.5 });
    if (aside) {
      add("circle", { cx: across(aside[0]), cy: up(aside[1]), r: 4, fill: "var(--paper)", stroke: "var(--ink)", class: "aside" });
      say("set aside", { x: across(aside[0]) - 9, y: up(aside[1]) + 4, "text-anchor": "end" });
    }
    steps.forEach((step) => {
      const colour = step.worse && !step.recovered ? "var(--bad)" : step.worse ? "var(--muted)" : "var(--good)";
      const at = across(step.night - 0.5), right = at > inner.right - 60;
      add("path", { d: `M${at} ${inner.top}V${inner.bottom}`, stroke: colour, "stroke-dasharray": "3 3", class: "step" });
      say(`${step.ratio > 1 ? "+" : "−"}${Math.abs((step.ratio - 1) * 100).toFixed(1)} %`, { x: at + (right ? -5 : 5), y: inner.top + 10, "text-anchor": right ? "end" : "start", fill: colour });
    });
    const cause = new Map(steps.map((step) => [step.night, `; a step: ${step.cause.join("; also ")}`]));
    readable(figure, plot, own.map(([run, value]) => ({ x: across(run), y: up(value), text: `${date(run)} ${when[run]?.[1] || ""}: ${words.of(metric)(value)}${cause.get(run) || ""}` })).concat(aside ? [{ x: across(aside[0]), y: up(aside[1]), text: because }] : []));
  }

  function strips(figure, chosen, metric) {
    if (view.single.includes(metric)) return gap(figure, `A run has one value of ${named(metric)}, and no samples of it.`);
    const own = chosen.measurements.find((one) => one.metric === metric);
    if (!own?.processes.some(([count]) => count)) return gap(figure, own?.refused || `No ${named(metric)} was measured.`);
    const least = view.floors[metric], known = own.processes.filter(([count]) => count), rows = own.processes.length, count = known.reduce((sum, one) => sum + one[0], 0);
    const [low, high] = around(known.flatMap((one) => [quartiles(one)[0], quartiles(one)[4]]), 0.08), near = least && least > low - (high - low) && least < high;
    const plot = chart(figure, `${count} samples of ${chosen.name} in ${rows} processes`, {
      height: 70 + rows * 34, left: 74, bottom: 44, x: { domain: near ? [Math.min(low, least * 0.995), high] : [low, high], words: words.of(metric), title: named(metric) }, y: { domain: [rows, 0], ticks: [], words: String },
    });
    const { across, add, say, inner } = plot, points = [];
    own.processes.forEach((process, row) => {
      const y = inner.top + (row + 0.5) * (inner.bottom - inner.top) / rows, end = (value) => across(value).toFixed(1);
      say(`process ${row + 1}`, { x: inner.left - 8, y: y + 4, "text-anchor": "end" });
      const [samples] = process, [lowest, lower, middle, upper, highest] = quartiles(process);
      if (!samples) return;
      const clock = own.clocks?.[row];
      add("path", { d: `M${end(lowest)} ${y}H${end(highest)}`, stroke: "var(--second)", "stroke-width": 2 });
      add("path", { d: `M${end(lower)} ${y}H${end(upper)}`, stroke: "var(--accent)", "stroke-width": 9, "stroke-opacity": 0.55 });
      add("path", { d: `M${end(middle)} ${y - 8}V${y + 8}`, stroke: "var(--ink)", "stroke-width": 2 });
      points.push({ x: across(middle), y, text: `process ${row + 1}: median ${words.of(metric)(middle)} of ${samples} samples from ${words.of(metric)(lowest)} to ${words.of(metric)(highest)}${clock ? ` at ${clock} MHz` : ""}` });
    });
    add("path", { d: `M${across(own.median)} ${inner.top}V${inner.bottom}`, stroke: "var(--ink)", "stroke-width": 1 });
    if (near) add("path", { d: `M${across(least)} ${inner.top}V${inner.bottom}`, stroke: "var(--muted)", "stroke-dasharray": "3 3" });
    if (own.refused) say(`not to be trusted: ${own.refused}`, { x: inner.left, y: inner.top + 2, fill: "var(--bad)" });
    readable(figure, plot, points);
  }

  function position(figure, chosen) {
    const points = view.cases.map((one) => ({ ...one.derived, case: one.name, label: one.label, variant: one.variant, picked: one.name === chosen.name }));
    prism.plot.roofline(figure, points, view.roofs, { height: 280, peaks: view.peaks });
  }

  function show() {
    const wanted = prism.state(), name = wanted.get("case");
    const chosen = view.cases.find((one) => one.name === name) || view.cases.find((one) => one.name === view.largest) || view.cases[0];
    const metrics = chosen.measurements.map((one) => one.metric).concat(view.single.filter((one) => series(chosen.name, `${one} kernel`).length));
    const metric = metrics.includes(wanted.get("metric")) ? wanted.get("metric") : metrics[0] || "cold_time";
    const [cases, list] = chooser.querySelectorAll("select");
    cases.value = chosen.name;
    list.replaceChildren(...metrics.map((one) => new Option(named(one), one, false, one === metric)));
    document.querySelectorAll("article.case").forEach((article) => {
      article.hidden = article.dataset.case !== chosen.name;
      if (!article.hidden) article.querySelectorAll(":scope > template[data-later]").forEach(() => prism.make(article));
    });
    document.querySelectorAll("#table tbody tr").forEach((row) => row.classList.toggle("chosen", prism.state(row.querySelector("a.name").hash).get("case") === chosen.name));
    figures("trend").forEach((figure) => trend(figure, chosen, metric));
    figures("strips").forEach((figure) => strips(figure, chosen, metric));
    figures("roof").forEach((figure) => position(figure, chosen));
  }

  async function kernel() {
    const [implementation, axes] = [(name) => name.split("[")[0], (name) => (name.match(/\[(.*)\]$/)?.[1] || "").replaceAll(",", ", ")];
    chooser.elements.case.replaceChildren(...view.cases.map(({ name, label }) => new Option(`${implementation(name)} ${label} ${axes(name)}`, name)));
    chooser.hidden = false;
    chooser.addEventListener("submit", (event) => event.preventDefault());
    chooser.addEventListener("input", (event) => { prism.remember(event.target.name, event.target.value); show(); });
    addEventListener("hashchange", show);
    show();
    await Promise.all([...view.data.nights, ...view.data.series].map(([, path]) => prism.load(path)));
    show();
  }

  kernel();
  let width = innerWidth;
  addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; show(); } });
})();
