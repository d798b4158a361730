"use strict";
// A small plot: scales, axes and marks as SVG that takes its colours from the page, like the pictures made beforehand.
(() => {
  const NS = "http://www.w3.org/2000/svg";
  const make = (name, attributes = {}, ...children) => {
    const made = document.createElementNS(NS, name);
    for (const [key, value] of Object.entries(attributes)) if (value !== undefined) made.setAttribute(key, value);
    made.append(...children);
    return made;
  };

  const three = (value) => Number(value.toPrecision(3)).toString();
  const scaled = (steps, unit, digits = three) => (value) => {
    if (value === 0) return "0";
    const [size, prefix] = steps.find(([size]) => Math.abs(value) >= size * 0.9995) || steps[steps.length - 1];
    return `${digits(value / size)} ${prefix}${unit}`.trim();
  };
  const SMALL = [[1, ""], [1e-3, "m"], [1e-6, "µ"], [1e-9, "n"]];
  const LARGE = [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""]];
  const words = {
    time: scaled(SMALL, "s"),
    whole: scaled(SMALL, "s", (value) => value.toPrecision(3)), // as a column of a table has it
    rate: (unit) => scaled(LARGE, unit),
    share: (value) => `${Math.round(value * 100)} %`,
    plain: (value) => three(value),
  };

  function linear([low, high], [from, to]) {
    const at = (value) => from + (value - low) / (high - low || 1) * (to - from);
    at.ticks = (count) => {
      const rough = (high - low) / count || 1, power = 10 ** Math.floor(Math.log10(rough));
      const step = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= rough);
      const first = Math.ceil(low / step - 1e-9);
      return Array.from({ length: Math.floor(high / step + 1e-9) - first + 1 }, (_, index) => (first + index) * step);
    };
    return at;
  }

  function logarithmic([low, high], [from, to]) {
    const inner = linear([Math.log10(low), Math.log10(high)], [from, to]), at = (value) => inner(Math.log10(value));
    at.ticks = (count) => {
      const decades = Math.log10(high / low), found = [];
      const inside = decades < 1.3 ? [1, 2, 5] : [1], every = Math.max(1, Math.ceil(decades / count));
      for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power += 1)
        for (const one of inside) {
          const value = one * 10 ** power;
          if (value >= low * 0.999 && value <= high * 1.001 && (power % every === 0 || inside.length > 1)) found.push(value);
        }
      return found;
    };
    return at;
  }

  // A chart of `width` x `height` in `figure`, replacing what was drawn there; gives scales, and `add` to draw with.
  function chart(figure, label, { height = 260, left = 64, right = 14, top = 12, bottom = 34, widest = 1304, x, y }) {
    const width = Math.max(300, Math.min(widest, Math.round(figure.getBoundingClientRect().width) || 640));
    const svg = make("svg", { class: "chart", role: "img", "aria-label": label, viewBox: `0 0 ${width} ${height}`, "font-size": 11, style: `max-width:${width}px` });
    const kinds = { log: logarithmic, linear };
    const across = kinds[x.kind || "linear"](x.domain, [left, width - right]);
    const up = kinds[y.kind || "linear"](y.domain, [height - bottom, top]);
    for (const value of y.ticks || up.ticks(Math.round(height / 65))) {
      svg.append(make("path", { d: `M${left} ${up(value)}H${width - right}`, stroke: "var(--rule)", "stroke-width": 0.6, "stroke-opacity": 0.7 }));
      svg.append(make("text", { x: left - 8, y: up(value) + 4, "text-anchor": "end", fill: "var(--muted)" }, y.words(value)));
    }
    for (const value of x.ticks || (x.words ? across.ticks(Math.max(1, Math.round((width - left - right) / 115))) : []))
      svg.append(make("text", { x: Math.min(across(value), width - 2), y: height - bottom + 18, "text-anchor": across(value) > width - right - 24 ? "end" : "middle", fill: "var(--muted)" }, x.words(value)));
    svg.append(make("path", { d: `M${left} ${height - bottom}H${width - right}`, stroke: "var(--rule)", "stroke-width": 0.8 }));
    if (x.title) svg.append(make("text", { x: width - right, y: height - 3, "text-anchor": "end", fill: "var(--muted)" }, x.title));
    figure.querySelectorAll("svg, .missing").forEach((old) => old.remove());
    figure.classList.remove("empty");
    figure.insertBefore(svg, figure.querySelector(".take, figcaption"));
    const add = (name, attributes, title) => {
      const made = make(name, attributes);
      if (title) made.append(make("title", {}, title));
      svg.append(made);
      return made;
    };
    const say = (text, attributes) => svg.append(make("text", { fill: "var(--muted)", ...attributes }, text));
    return { svg, width, height, across, up, add, say, inner: { left, right: width - right, top, bottom: height - bottom } };
  }

  const around = (values, share = 0.06) => {
    const low = Math.min(...values), high = Math.max(...values), margin = (high - low) * share || high * 0.02 || 1;
    return [low - margin, high + margin];
  };

  const gap = (figure, text) => {
    figure.querySelectorAll("svg, .missing").forEach((old) => old.remove());
    const made = document.createElement("p");
    made.className = "missing";
    made.textContent = text;
    figure.insertBefore(made, figure.querySelector(".take"));
    figure.classList.add("empty");
  };

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

  // Points {case, label, variant, intensity, flop_rate, picked} under the roofs; `names` are written next to the largest workloads.
  const LOOKS = { S0: ["var(--paper)", 3.6], S1: ["var(--second)", 4.2], S2: ["var(--accent)", 4.8] };
  function roofline(figure, all, { bandwidth, ...roofs }, { height, names }) {
    const points = all.filter((one) => one.intensity && one.flop_rate);
    if (!points.length || !bandwidth) return gap(figure, points.length ? "The run measured no memory ceiling." : "Without declared operations and a cold time on a device there is no place under the roofs.");
    const rates = points.map((one) => one.flop_rate), reach = points.map((one) => one.intensity);
    const peak = roofs.fp32 || Math.max(...rates), ridge = peak / bandwidth;
    const x = [Math.min(...reach) / 2.5, Math.max(...reach, ridge * 4) * 2], y = [Math.min(...rates, ...Object.values(roofs)) / 3, Math.max(...rates, ...Object.values(roofs)) * 2.5];
    const plot = chart(figure, `Roofline of ${points.length} cases`, {
      height, x: { kind: "log", domain: x, words: words.rate(""), title: "operations per compulsory byte" }, y: { kind: "log", domain: y, words: words.rate("") },
    });
    const { across, up, add, say, inner } = plot, start = Math.max(x[0], y[0] / bandwidth);
    add("path", { d: `M${across(start)} ${up(start * bandwidth)}L${across(ridge)} ${up(peak)}H${inner.right}`, fill: "none", stroke: "var(--ink)", "stroke-width": 1.3 });
    const slope = Math.atan2(up(start * 10 * bandwidth) - up(start * bandwidth), across(start * 10) - across(start)) * 180 / Math.PI;
    const [sx, sy] = [across(start * 1.3), up(start * 1.3 * bandwidth) - 6];
    const memory = `memory ${words.rate("B/s")(bandwidth)}`, turn = slope * Math.PI / 180;
    say(memory, { x: sx, y: sy, transform: `rotate(${slope} ${sx} ${sy})`, "font-size": 10 });
    const taken = [...memory].map((_, index) => [sx + index * 6 * Math.cos(turn), sy + index * 6 * Math.sin(turn)]).map(([x, y]) => [x - 6, y - 12, x + 10, y + 4]);
    const places = points.map((one) => [across(one.intensity), up(one.flop_rate)]);
    for (const [title, rate] of Object.entries(roofs)) {
      const text = `${title === "fp32" ? "FP32" : title} ${words.rate("FLOP/s")(rate)}`;
      if (title !== "fp32") add("path", { d: `M${inner.left} ${up(rate)}H${inner.right}`, stroke: "var(--muted)", "stroke-dasharray": "4 3", "stroke-width": 0.9 });
      say(text, { x: inner.right, y: up(rate) - 4, "text-anchor": "end", "font-size": 10 });
      taken.push([inner.right - text.length * 6, up(rate) - 14, inner.right, up(rate) + 2], [inner.left, up(rate) - 1, inner.right, up(rate) + 1]);
    }
    points.forEach((one, index) => {
      const [cx, cy] = places[index], [fill, size] = LOOKS[one.label] || LOOKS.S1, r = one.picked ? size + 2.5 : size;
      const look = { fill: one.picked ? "var(--warm)" : fill, stroke: "var(--accent)", "stroke-width": 1.1, class: "mark" };
      const share = one.bound ? `, ${words.share(one.bound_share)} of its ${one.bound} limit` : "";
      const title = `${one.case}: ${words.rate("FLOP/s")(one.flop_rate)} in ${words.time(one.cold_time)}${share}`;
      if (one.variant) add("path", { d: `M${cx} ${cy - r * 1.2}L${cx + r * 1.2} ${cy}L${cx} ${cy + r * 1.2}L${cx - r * 1.2} ${cy}Z`, ...look }, title);
      else add("circle", { cx, cy, r, ...look }, title);
      taken.push([cx - 4, cy - 4, cx + 4, cy + 4]);
    });
    for (let step = 0; names && step <= 60; step += 1) {
      const at = start * (x[1] / start) ** (step / 60), line = [across(at), up(Math.min(at * bandwidth, peak))];
      taken.push([line[0] - 2, line[1] - 2, line[0] + 2, line[1] + 2]);
    }
    if (!names) return;
    const largest = new Map();
    points.forEach((one, index) => { if (!largest.has(one.implementation) || largest.get(one.implementation)[0] <= one.label) largest.set(one.implementation, [one.label, one, index]); });
    const wanted = [...largest.values()].sort(([, a], [, b]) => b.flop_rate - a.flop_rate).map(([, one, index]) => [...places[index], one.implementation, index]);
    name(plot, wanted, taken);
  }

  prism.plot = { chart, around, words, gap, roofline };
})();
