"use strict";
// The pictures that carry their own numbers: steps of a trend, a run's telemetry, chains before and after, kernels next to their rivals and under the roofs.
(() => {
  const { chart, around, words } = prism.plot;
  const view = JSON.parse(document.getElementById("view")?.textContent || "null");
  const figures = (kind) => [...document.querySelectorAll(`figure[data-plot=${kind}]`)];
  const named = (metric) => metric.replaceAll("_", " ");

  const steps = () => figures("step").forEach((figure) => {
    const one = JSON.parse(figure.dataset.view);
    const { across, up, add, inner } = chart(figure, `${named(one.metric)} around the step`, {
      height: 130, bottom: 12, x: { domain: [one.nights[0] - 0.5, one.nights.at(-1) + 0.5] }, y: { domain: around(one.values, 0.15), words: words.time },
    });
    one.values.forEach((value, index) => add("circle", { cx: across(one.nights[index]), cy: up(value), r: 2.2, fill: "var(--second)" }));
    for (const [from, to, level] of [[one.nights[0], one.step - 1, one.before], [one.step, one.nights.at(-1), one.after]])
      add("path", { d: `M${across(from - 0.4)} ${up(level)}H${across(to + 0.4)}`, stroke: "var(--accent)", "stroke-width": 1.8 }, words.time(level));
    add("path", { d: `M${across(one.step - 0.5)} ${inner.top}V${inner.bottom}`, stroke: "var(--muted)", "stroke-dasharray": "3 3", "stroke-width": 0.8 });
  });

  const telemetry = () => figures("telemetry").forEach((figure) => {
    const spans = view.quantities[figure.dataset.quantity], unit = figure.dataset.unit;
    const known = spans.map((span, index) => [index, span]).filter(([, span]) => span);
    const write = unit === "1" ? words.share : unit === "Hz" ? words.rate("Hz") : (value) => `${Math.round(value)} ${unit}`;
    const { across, up, add } = chart(figure, `${figure.querySelector("h3").textContent} over the run`, {
      height: 200, bottom: 26, x: { domain: [-1, spans.length], title: `${spans.length} windows` },
      y: { domain: around(known.flatMap(([, span]) => [span[0], span[2]])), words: write },
    });
    for (const [index, [low, , high]] of known)
      if (high > low) add("path", { d: `M${across(index)} ${up(low)}V${up(high)}`, stroke: "var(--second)", "stroke-width": 1.2, "stroke-opacity": 0.6 });
    for (const [index, [low, middle, high]] of known)
      add("circle", { cx: across(index), cy: up(middle), r: 1.6, fill: "var(--accent)" },
        `${view.windows[index][0]}, ${named(view.windows[index][1])}: ${write(middle)} (${write(low)} to ${write(high)})`);
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
    const longest = Math.max(...bars.map((bar) => bar.words.length));
    const { across, add, say, inner } = chart(figure, `${figure.dataset.name.replaceAll("-", " ")}: separate launches against fused ones`, {
      height: bars.length * BAR + 36, left: narrow ? 112 : 132, right: narrow ? Math.min(160, longest * 6.2 + 8) : 150, top: 4, bottom: 28, widest: 760,
      x: { domain: [Math.min(0, ...ends), Math.max(...ends)], words: write }, y: { domain: [0, 1], ticks: [] },
    });
    bars.forEach((bar, index) => {
      const top = inner.top + index * BAR, [left, right] = [bar.start, bar.end].map(across).sort((a, b) => a - b);
      add("rect", { x: left, y: top + 4, width: Math.max(0.8, right - left), height: BAR - 8, fill: `var(--${bar.ink})` }, `${bar.name}: ${bar.words}`);
      say(bar.name, { x: inner.left - 8, y: top + BAR / 2 + 4, "text-anchor": "end", fill: "var(--ink)" });
      say(bar.words.replace(/ us/g, " µs"), { x: right + 5, y: top + BAR / 2 + 4 });
    });
  });

  const roofs = () => figures("roofs").forEach((figure) => {
    const shown = new Set([...figure.querySelectorAll("[type=checkbox]:checked")].map((box) => box.value));
    const points = view.cases.filter((one) => shown.has(one.label) && (shown.has("variants") || !one.variant));
    prism.plot.roofline(figure, points, view.roofs, { height: innerWidth < 700 ? 440 : 560, names: true });
  });
  document.querySelectorAll("figure[data-plot=roofs] fieldset").forEach((choice) => { choice.hidden = false; choice.addEventListener("input", roofs); });

  const draw = () => { steps(); waterfalls(); if (view?.quantities) telemetry(); if (view?.cases) { rivals(); roofs(); } };
  draw();
  let width = innerWidth;
  addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; draw(); } });
})();
