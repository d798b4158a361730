"use strict";
// Points under the roofs that a run measured: names next to them, a zoom, and a place for pointer, finger and keyboard.
(() => {
  const { make, chart, words, gap, readable } = prism.plot;
  const NAMES = { fp32: "FP32", fp64: "FP64", tensor: "tensor cores", tf32: "TF32", float8: "FP8", three_tf32: "three TF32 products", three_bfloat16: "six bfloat16 products" };
  const SHORT = { ...NAMES, tensor: "tensor", three_tf32: "3 x TF32", three_bfloat16: "6 x BF16" }; // where there is little width
  const LOOKS = { S0: ["var(--paper)", 3.6], S1: ["var(--second)", 4.2], S2: ["var(--accent)", 4.8] };
  let clips = 0;

  // Names next to points, each at the first free place around its own; one without a free place is left out.
  function name(plot, points, taken) {
    const PLACES = [[7, 4, "start"], [5, 14, "start"], [-5, -6, "end"], [5, -6, "start"], [0, 17, "middle"], [0, -8, "middle"], [-7, 4, "end"], [-5, 14, "end"]];
    const free = ([x0, y0, x1, y1]) => x0 >= plot.inner.left && x1 <= plot.inner.right && y0 >= plot.inner.top && y1 <= plot.inner.bottom
      && !taken.some(([a0, b0, a1, b1]) => x0 <= a1 && a0 <= x1 && y0 <= b1 && b0 <= y1);
    for (const [x, y, text] of points) {
      const width = text.length * 6 + 2;
      for (const [dx, dy, anchor] of PLACES) {
        const left = x + dx - { start: 0, middle: width / 2, end: width }[anchor], box = [left, y + dy - 9, left + width, y + dy + 3];
        if (!free(box)) continue;
        plot.say(text, { x: x + dx, y: y + dy, "text-anchor": anchor, fill: "var(--ink)" });
        taken.push(box);
        break;
      }
    }
  }

  // The roofs, in as far as they are in the picture; returns the boxes that their names take, and what writes these
  // names on top of the points.
  function roof({ svg, across, up, say, inner }, bandwidth, roofs, peaks, [x, y]) {
    const clip = `roofs-${clips += 1}`, taken = [], named = [], labels = [], narrow = inner.right - inner.left < 420;
    const label = (text, attributes) => labels.push(() => say(text, { fill: "var(--ink)", "font-size": 10, stroke: "var(--paper)", "stroke-width": 3, "paint-order": "stroke", ...attributes }));
    svg.append(make("clipPath", { id: clip }, make("rect", { x: inner.left, y: inner.top, width: inner.right - inner.left, height: inner.bottom - inner.top })));
    const add = (attributes) => svg.append(make("path", { fill: "none", "clip-path": `url(#${clip})`, ...attributes }));
    const highest = Math.max(...Object.values(roofs), ...Object.values(peaks), 0) || y[1], start = Math.max(x[0], y[0] / bandwidth), end = Math.min(x[1], highest / bandwidth);
    if (end > start) {
      add({ d: `M${across(start)} ${up(start * bandwidth)}L${across(end)} ${up(end * bandwidth)}`, stroke: "var(--ink)", "stroke-width": 1.3, class: "roof" });
      const slope = Math.atan2(up(start * 10 * bandwidth) - up(start * bandwidth), across(start * 10) - across(start)), from = start * (end / start) ** 0.04;
      const [sx, sy] = [across(from), up(from * bandwidth) - 6], memory = `memory ${words.rate("B/s")(bandwidth)}`;
      if (from * bandwidth < y[1] / 4) {
        label(memory, { x: sx, y: sy, transform: `rotate(${slope * 180 / Math.PI} ${sx} ${sy})` });
        taken.push(...[...memory].map((_, index) => [sx + index * 6 * Math.cos(slope), sy + index * 6 * Math.sin(slope)]).map(([x, y]) => [x - 6, y - 12, x + 10, y + 4]));
      }
      for (let step = 0; step <= 60; step += 1) {
        const at = start * (end / start) ** (step / 60);
        taken.push([across(at) - 2, up(at * bandwidth) - 2, across(at) + 2, up(at * bandwidth) + 2]);
      }
    }
    for (const [title, rate] of [...Object.entries(roofs), ...Object.entries(peaks)]) {
      if (rate <= y[0] || rate >= y[1]) continue;
      const text = narrow ? SHORT[title] || title : `${NAMES[title] || title}${title in peaks ? " at most" : ""} ${words.rate("FLOP/s")(rate)}`, left = Math.max(inner.left, across(Math.max(x[0], Math.min(x[1], rate / bandwidth))));
      add({ d: `M${left} ${up(rate)}H${inner.right}`, stroke: title in peaks ? "var(--muted)" : "var(--ink)", "stroke-width": title in peaks ? 1 : 1.3, "stroke-dasharray": title in peaks ? "5 4" : undefined, class: title in peaks ? "peak" : "roof" });
      taken.push([left, up(rate) - 1, inner.right, up(rate) + 1]);
      const end = Math.min(inner.right, ...named.filter(([y]) => Math.abs(y - up(rate)) < 12).map(([, begin]) => begin - 8)), begin = end - text.length * 6;
      if (begin < left) continue; // the caption has it
      named.push([up(rate), begin]);
      label(text, { x: end, y: up(rate) - 4, "text-anchor": "end" });
      taken.push([begin, up(rate) - 14, end, up(rate) + 2]);
    }
    return [taken, () => labels.forEach((write) => write())];
  }

  // Buttons, keys and a rectangle drawn by the mouse change the part that is shown, `figure.chosenPart`; `draw` shows it.
  function zooming(figure, { svg, inner, back }, whole, draw) {
    const part = figure.chosenPart || whole, between = (pair, at) => pair[0] * (pair[1] / pair[0]) ** at;
    const change = (next) => { figure.chosenPart = next; const had = svg === document.activeElement; draw(); if (had) figure.querySelector("svg.chart")?.focus({ preventScroll: true }); };
    const by = (factor) => {
      const ring = svg.querySelector(".ring[visibility=visible]");
      const centre = ring ? back(Number(ring.getAttribute("cx")), Number(ring.getAttribute("cy"))) : part.map((pair) => between(pair, 0.5));
      const next = part.map((pair, axis) => { const half = Math.sqrt(pair[1] / pair[0]) ** factor; return [centre[axis] / half, centre[axis] * half]; });
      const outside = next.every((pair, axis) => pair[0] <= whole[axis][0] && pair[1] >= whole[axis][1]);
      change(outside ? null : next);
    };
    const move = (across, up) => change(part.map((pair, axis) => pair.map((end) => end * (pair[1] / pair[0]) ** (0.2 * [across, up][axis]))));
    figure.zoom = { in: () => by(0.5), out: () => by(2), whole: () => change(null) };
    let bar = figure.querySelector(".zoom");
    if (!bar) {
      bar = document.createElement("p");
      bar.className = "zoom";
      for (const [what, text, label] of [["in", "+", "Zoom in"], ["out", "−", "Zoom out"], ["whole", "All", "Show the whole picture"]]) {
        const made = Object.assign(document.createElement("button"), { type: "button", textContent: text });
        made.setAttribute("aria-label", label);
        made.addEventListener("click", () => figure.zoom[what]());
        bar.append(made);
      }
      figure.prepend(bar);
    }
    svg.addEventListener("keydown", (event) => {
      const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "+" || event.key === "=") by(0.5);
      else if (event.key === "-") by(2);
      else if (event.key === "0") change(null);
      else if (event.shiftKey && moves[event.key]) move(...moves[event.key]);
      else return;
      event.preventDefault();
    });
    let from = null, frame = null;
    const at = (event) => {
      const box = svg.getBoundingClientRect(), scale = svg.viewBox.baseVal.width / box.width;
      return [Math.max(inner.left, Math.min(inner.right, (event.clientX - box.left) * scale)), Math.max(inner.top, Math.min(inner.bottom, (event.clientY - box.top) * scale))];
    };
    svg.addEventListener("pointerdown", (event) => { delete svg.dataset.dragged; if (event.pointerType === "mouse" && event.button === 0) from = at(event); });
    svg.addEventListener("pointermove", (event) => {
      if (!from) return;
      const to = at(event), wide = Math.abs(to[0] - from[0]), high = Math.abs(to[1] - from[1]);
      if (Math.max(wide, high) < 8) return;
      frame ??= svg.appendChild(make("rect", { fill: "var(--accent)", "fill-opacity": 0.1, stroke: "var(--accent)" }));
      for (const [key, value] of Object.entries({ x: Math.min(from[0], to[0]), y: Math.min(from[1], to[1]), width: wide, height: high })) frame.setAttribute(key, value);
      event.preventDefault();
    });
    svg.addEventListener("pointerup", (event) => {
      const to = at(event), start = from;
      from = null;
      if (!frame) return;
      frame.remove();
      frame = null;
      svg.dataset.dragged = "";
      const [a, b] = [back(...start), back(...to)], next = [0, 1].map((axis) => [Math.min(a[axis], b[axis]), Math.max(a[axis], b[axis])]);
      if (next.every((pair) => pair[1] > pair[0] * 1.05)) change(next);
    });
  }

  // Points {case, label, variant, intensity, flop_rate, arithmetic, link, picked} under the roofs; `names` are written
  // next to the largest workloads; with `zoom` a part of the picture can be chosen. `peaks` are roofs that nobody measured.
  function roofline(figure, all, { bandwidth, ...roofs }, { height, names, zoom, peaks = {} }) {
    const found = all.filter((one) => one.intensity && one.flop_rate);
    if (!found.length || !bandwidth) return gap(figure, found.length ? "The run measured no memory ceiling." : all.length || !zoom ? "Without declared operations and a cold time on a device there is no place under the roofs." : "No case fits.");
    const rates = found.map((one) => one.flop_rate), reach = found.map((one) => one.intensity), ends = [...Object.values(roofs), ...Object.values(peaks)];
    const ridge = (ends.length ? Math.max(...ends) : Math.max(...rates)) / bandwidth;
    const whole = [[Math.min(...reach) / 2.5, Math.max(...reach, ridge * 4) * 2], [Math.min(...rates, ...ends) / 3, Math.max(...rates, ...ends) * 2.5]];
    const part = zoom && figure.chosenPart || whole;
    const points = found.filter((one) => part.every(([low, high], axis) => { const value = [one.intensity, one.flop_rate][axis]; return low <= value && value <= high; }));
    const plot = chart(figure, `Roofline of ${points.length} cases: operations per second by operations per compulsory byte`, {
      height, bottom: 44, x: { kind: "log", domain: part[0], words: words.rate(""), title: "operations per compulsory byte" }, y: { kind: "log", domain: part[1], words: words.rate(""), title: "operations per second" },
    });
    const { svg, across, up, inner } = plot, [taken, write] = roof(plot, bandwidth, roofs, peaks, part);
    const places = points.map((one) => [across(one.intensity), up(one.flop_rate)]);
    points.forEach((one, index) => {
      const [cx, cy] = places[index], [fill, size] = LOOKS[one.label] || LOOKS.S1, r = one.picked ? size + 2.5 : size;
      const look = { fill: one.picked ? "var(--warm)" : fill, stroke: "var(--accent)", "stroke-width": 1.1, class: "mark" };
      if (one.variant) svg.append(make("path", { d: `M${cx} ${cy - r * 1.2}L${cx + r * 1.2} ${cy}L${cx} ${cy + r * 1.2}L${cx - r * 1.2} ${cy}Z`, ...look }));
      else svg.append(make("circle", { cx, cy, r, ...look }));
      taken.push([cx - 4, cy - 4, cx + 4, cy + 4]);
    });
    write();
    readable(figure, plot, points.map((one, index) => {
      const share = one.bound ? `, ${words.share(one.bound_share)} of its ${one.bound} limit` : "", own = one.arithmetic && one.arithmetic !== "fp32" ? ` (${NAMES[one.arithmetic] || one.arithmetic})` : "";
      return { x: places[index][0], y: places[index][1], link: one.link, text: `${one.case}: ${words.rate("FLOP/s")(one.flop_rate)}${own} in ${words.time(one.cold_time)}${share}` };
    }));
    if (zoom) {
      const back = (x, y) => [part[0][0] * (part[0][1] / part[0][0]) ** ((x - inner.left) / (inner.right - inner.left)), part[1][0] * (part[1][1] / part[1][0]) ** ((inner.bottom - y) / (inner.bottom - inner.top))];
      zooming(figure, { svg, inner, back }, whole, zoom);
    }
    if (!names) return;
    const largest = new Map(), implementation = (one) => one.case.split("[")[0];
    points.forEach((one, index) => { const own = implementation(one); if (!largest.has(own) || largest.get(own)[0] <= one.label) largest.set(own, [one.label, one, index]); });
    const wanted = [...largest.values()].sort(([, a], [, b]) => (a.bound_share ?? 2) - (b.bound_share ?? 2)).map(([, one, index]) => [...places[index], implementation(one)]);
    name(plot, wanted, taken);
  }

  prism.plot.roofline = roofline;
})();
