"use strict";
// The pictures that carry their own numbers: steps of a trend, a run's telemetry, chains before and after, kernels next to their rivals and under the roofs.
(() => {
  const { chart, around, words } = prism.plot;
  const view = prism.view();
  const figures = (kind) => [...document.querySelectorAll(`figure[data-plot=${kind}]`)];
  const named = (metric) => metric.replaceAll("_", " ");

  const steps = () => figures("step").forEach((figure) => {
    const one = JSON.parse(figure.dataset.view);
    const { across, up, add, inner } = chart(figure, `${named(one.metric)} around the step`, {
      height: 130, bottom: 12, x: { domain: [one.nights[0] - 0.5, one.nights.at(-1) + 0.5] }, y: { domain: around(one.values, 0.15), words: words.of(one.metric) },
    });
    one.values.forEach((value, index) => add("circle", { cx: across(one.nights[index]), cy: up(value), r: 2.2, fill: "var(--second)" }));
    for (const [from, to, level] of [[one.nights[0], one.step - 1, one.before], [one.step, one.nights.at(-1), one.after]])
      add("path", { d: `M${across(from - 0.4)} ${up(level)}H${across(to + 0.4)}`, stroke: "var(--accent)", "stroke-width": 1.8 }, words.of(one.metric)(level));
    add("path", { d: `M${across(one.step - 0.5)} ${inner.top}V${inner.bottom}`, stroke: "var(--muted)", "stroke-dasharray": "3 3", "stroke-width": 0.8 });
  });

  const telemetry = () => figures("telemetry").forEach((figure) => {
    const spans = view.quantities[figure.dataset.quantity], unit = figure.dataset.unit;
    const known = spans.map((span, index) => [index, span]).filter(([, span]) => span);
    const write = unit === "1" ? words.share : unit === "Hz" ? words.rate("Hz") : (value) => `${Math.round(value)} ${unit}`;
    const { across, up, add, inner } = chart(figure, `${figure.querySelector("h3").textContent} over the run`, {
      height: 200, bottom: 26, x: { domain: [-0.5, spans.length - 0.5], title: `${view.windows} windows of measuring, in their order` },
      y: { domain: around(known.flatMap(([, span]) => [span[0], span[2]])), words: write },
    });
    const path = (points) => `M${points.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`).join("L")}`;
    const edge = (part) => known.flatMap(([index, span]) => [[across(index - 0.5), up(span[part])], [across(index + 0.5), up(span[part])]]);
    add("path", { d: `${path([...edge(2), ...edge(0).reverse()])}Z`, fill: "var(--second)", "fill-opacity": 0.35 });
    add("path", { d: path(edge(1)), fill: "none", stroke: "var(--accent)", "stroke-width": 1.4 });
    for (const [index, [low, middle, high]] of known) {
      const [first, last] = view.columns[index];
      add("rect", { x: across(index - 0.5), y: inner.top, width: across(1) - across(0), height: inner.bottom - inner.top, fill: "transparent" },
        `${first}${last === first ? "" : ` to ${last}`}: ${write(middle)} (${write(low)} to ${write(high)})`);
    }
  });

  const SERIES = [["cold_time", "kernel", "var(--accent)"], ["best_peer_time", "best peer", "var(--second)"], ["cpu", "CPU reference", "var(--third)"]];
  const rivals = () => figures("rivals").forEach((figure) => {
    const rows = view.cases.filter((one) => one.label === figure.dataset.label);
    const bars = rows.map((row) => SERIES.filter(([key]) => row[key]).map(([key, whose, colour]) => [row[key], whose, colour]));
    const times = bars.flat().map(([seconds]) => seconds), low = 10 ** Math.floor(Math.log10(Math.min(...times)) - 0.2);
    const narrow = figure.getBoundingClientRect().width < 600, BAR = 11, GAP = 11;
    const height = bars.reduce((sum, group) => sum + group.length * BAR + GAP, 0);
    const { across, add, say, inner } = chart(figure, `Times of ${rows.length} cases at ${figure.dataset.label}: kernel, best peer, CPU`, {
      height: height + 44, left: narrow ? 140 : 220, right: 62, top: 4, bottom: 30,
      x: { kind: "log", domain: [low, Math.max(...times) * 1.05], words: words.time }, y: { domain: [0, 1], ticks: [] },
    });
    let top = inner.top + GAP / 2;
    rows.forEach((row, index) => {
      const name = narrow && row.implementation.length > 22 ? `${row.implementation.slice(0, 21)}…` : row.implementation;
      say(name, { x: inner.left - 8, y: top + bars[index].length * BAR / 2 + 4, "text-anchor": "end", fill: "var(--ink)" });
      for (const [seconds, whose, colour] of bars[index]) {
        add("rect", { x: inner.left, y: top, width: Math.max(0.5, across(seconds) - inner.left), height: BAR - 2, fill: colour }, `${row.case}, ${whose}: ${words.time(seconds)}`);
        say(words.time(seconds), { x: across(seconds) + 4, y: top + BAR - 3, "font-size": 9.5 });
        top += BAR;
      }
      top += GAP;
    });
  });

  const waterfalls = () => figures("waterfall").forEach((figure) => {
    const { unit, bars } = JSON.parse(figure.dataset.view), write = unit === "s" ? words.time : words.rate(unit), BAR = 22;
    const ends = bars.flatMap((bar) => [bar.start, bar.end]), narrow = figure.getBoundingClientRect().width < 600;
    const longest = Math.max(...bars.map((bar) => bar.words.length)), names = Math.max(...bars.map((bar) => bar.name.length));
    const { across, add, say, inner } = chart(figure, figure.dataset.label, {
      height: bars.length * BAR + 36, left: Math.max(narrow ? 112 : 132, Math.min(names * 6 + 12, narrow ? 150 : 240)), right: narrow ? Math.min(160, longest * 6.2 + 8) : 150, top: 4, bottom: 28, widest: 760,
      x: { domain: [Math.min(0, ...ends), Math.max(...ends)], words: write }, y: { domain: [0, 1], ticks: [] },
    });
    bars.forEach((bar, index) => {
      const top = inner.top + index * BAR, [left, right] = [bar.start, bar.end].map(across).sort((a, b) => a - b);
      add("rect", { x: left, y: top + 4, width: Math.max(0.8, right - left), height: BAR - 8, fill: `var(--${bar.ink})` }, `${bar.name}: ${bar.words}`);
      say(bar.name, { x: inner.left - 8, y: top + BAR / 2 + 4, "text-anchor": "end", fill: "var(--ink)" });
      say(bar.words.replace(/ us/g, " µs"), { x: right + 5, y: top + BAR / 2 + 4 });
    });
  });

  const languages = () => figures("languages").forEach((figure) => {
    const { least, rows } = JSON.parse(figure.dataset.view), BAR = 13, GAP = 12;
    const bars = rows.map((row) => [[row.cold, "cold", "var(--accent)"], [row.hot, "hot", "var(--second)"]].filter(([time]) => time));
    const narrow = figure.getBoundingClientRect().width < 600, longest = Math.max(...rows.map((row) => row.title.length));
    const { across, add, say, inner } = chart(figure, `Times of ${rows.length} languages, ${figure.dataset.name}`, {
      height: bars.reduce((sum, own) => sum + own.length * BAR + GAP, 0) + 40, left: longest * 7.6 + 14, right: narrow ? 62 : 90, top: 4, bottom: 30, widest: 860,
      x: { domain: [0, Math.max(least || 0, ...bars.flat().map(([time]) => Math.min(time.high, 1.5 * time.seconds)))], words: words.time }, y: { domain: [0, 1], ticks: [] },
    });
    if (least) add("path", { d: `M${across(least)} ${inner.top}V${inner.bottom}`, stroke: "var(--muted)", "stroke-dasharray": "3 3", "stroke-width": 1 }, `the limit: ${words.time(least)}`);
    let top = inner.top + GAP / 2;
    rows.forEach((row, index) => {
      say(row.title, { x: inner.left - 8, y: top + bars[index].length * BAR / 2 + 4, "text-anchor": "end", fill: "var(--ink)" });
      for (const [time, which, colour] of bars[index]) {
        const end = Math.min(inner.right, across(time.high)), middle = top + (BAR - 3) / 2;
        add("rect", { x: inner.left, y: top, width: Math.max(0.5, across(time.seconds) - inner.left), height: BAR - 3, fill: colour }, `${row.title}, ${which}: ${words.time(time.seconds)} (${words.time(time.low)} to ${words.time(time.high)})`);
        if (time.high > time.low) add("path", { d: `M${across(time.low)} ${middle}H${end}M${across(time.low)} ${middle - 3}v6M${end} ${middle - 3}v6`, stroke: "var(--ink)", "stroke-width": 1, fill: "none" });
        say(words.time(time.seconds), { x: Math.max(end, across(time.seconds)) + 5, y: top + BAR - 3.5, "font-size": 9.5, stroke: "var(--paper)", "stroke-width": 3, "paint-order": "stroke" });
        top += BAR;
      }
      top += GAP;
    });
  });

  // Points are kept as a list for each thing that is known of them.
  const points = view?.points?.case.map((_, index) => Object.fromEntries(Object.entries(view.points).map(([key, values]) => [key, values[index]])));

  // The form above the picture chooses both its points and the rows of its table.
  const roofs = () => figures("roofs").forEach((figure) => {
    const form = document.querySelector("form[data-for=roofline]"), value = (key) => form.elements[key]?.value || "";
    const sought = value("q").toLowerCase().split(/\s+/).filter(Boolean);
    const found = points.filter((one) => sought.every((word) => `${one.case} ${one.label} ${one.bound || ""} ${one.arithmetic}`.toLowerCase().includes(word))
      && (!value("label") || one.label === value("label")) && (!value("bound") || one.bound === value("bound")) && (!value("kind") || (value("kind") === "variant") === Boolean(one.variant)));
    const linked = found.map((one) => ({ ...one, link: one.link && `${one.link}#case=${encodeURIComponent(one.case)}` }));
    prism.plot.roofline(figure, linked, view.roofs, { height: innerWidth < 700 ? 440 : 560, names: true, zoom: roofs, peaks: view.peaks });
  });
  document.getElementById("roofline")?.addEventListener("shown", roofs);

  const draw = () => { steps(); waterfalls(); languages(); if (view?.quantities) telemetry(); if (view?.cases) rivals(); if (points) roofs(); };
  draw();
  addEventListener("made", () => { steps(); waterfalls(); });
  let width = innerWidth;
  addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; draw(); } });
})();
