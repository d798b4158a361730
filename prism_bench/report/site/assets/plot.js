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
  const scaled = (steps, unit, digits = three) => {
    const write = (digits) => (value) => {
      if (value === 0) return "0";
      const [size, prefix] = steps.find(([size]) => Math.abs(value) >= size * 0.9995) || steps[steps.length - 1];
      return `${digits(value / size)} ${prefix}${unit}`.trim();
    };
    return Object.assign(write(digits), { finer: write((value) => Number(value.toPrecision(6)).toString()) });
  };
  const SMALL = [[1, ""], [1e-3, "m"], [1e-6, "µ"], [1e-9, "n"]];
  const LARGE = [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""]];
  const COUNTED = { code_bytes: " B", registers: "" }; // exact, so no digit is dropped
  const counted = (unit) => (value) => `${value.toLocaleString("en")}${unit}`;
  const words = {
    exact: (metric) => COUNTED[metric] !== undefined,
    time: scaled(SMALL, "s"),
    of: (metric) => COUNTED[metric] === undefined ? scaled(SMALL, metric === "energy" ? "J" : "s") : counted(COUNTED[metric]),
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
    top += y.title ? 14 : 0;
    const width = Math.max(300, Math.min(widest, Math.round(figure.getBoundingClientRect().width) || 640));
    const svg = make("svg", { class: "chart", role: "img", "aria-label": label, viewBox: `0 0 ${width} ${height}`, "font-size": 11, style: `max-width:${width}px` });
    const kinds = { log: logarithmic, linear };
    const across = kinds[x.kind || "linear"](x.domain, [left, width - right]);
    const up = kinds[y.kind || "linear"](y.domain, [height - bottom, top]);
    const marks = y.ticks || up.ticks(Math.round(height / 65)), plain = marks.map((value) => y.words?.(value));
    const write = new Set(plain).size < marks.length && y.words?.finer || y.words; // ticks that read alike get more digits
    for (const value of marks) {
      svg.append(make("path", { d: `M${left} ${up(value)}H${width - right}`, stroke: "var(--rule)", "stroke-width": 0.6, "stroke-opacity": 0.7 }));
      svg.append(make("text", { x: left - 8, y: up(value) + 4, "text-anchor": "end", fill: "var(--muted)" }, write(value)));
    }
    for (const value of x.ticks || (x.words ? across.ticks(Math.max(1, Math.round((width - left - right) / 115))) : []))
      svg.append(make("text", { x: Math.min(across(value), width - 2), y: height - bottom + 18, "text-anchor": across(value) > width - right - 24 ? "end" : "middle", fill: "var(--muted)" }, x.words(value)));
    svg.append(make("path", { d: `M${left} ${height - bottom}H${width - right}`, stroke: "var(--rule)", "stroke-width": 0.8 }));
    if (y.title) svg.append(make("text", { x: 2, y: 11, fill: "var(--muted)", class: "axis" }, y.title));
    if (x.title) svg.append(make("text", { x: width - right, y: height - 3, "text-anchor": "end", fill: "var(--muted)", class: "axis" }, x.title));
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

  // Points {x, y, text, link} of a drawn chart that pointer, finger and keyboard read one by one. What is read is written
  // below the picture, with a link where there is one; `prism.plot.read(figure)` is the place of the point.
  function readable(figure, { svg }, points) {
    let tip = figure.querySelector(".tip");
    if (!tip) {
      tip = document.createElement("p");
      tip.className = "tip";
      tip.setAttribute("role", "status");
    }
    svg.after(tip);
    const ordered = [...points].sort((a, b) => a.x - b.x || a.y - b.y), ring = svg.appendChild(make("circle", { r: 8, class: "ring", visibility: "hidden" }));
    const hint = `${matchMedia("(pointer: coarse)").matches ? "Touch" : "Point at"} the picture, or use the arrow keys, for its numbers.`;
    tip.textContent = ordered.length ? hint : "";
    if (!ordered.length) return;
    svg.tabIndex = 0;
    let place = -1;
    const read = (next) => {
      place = next;
      const point = ordered[place];
      ring.setAttribute("visibility", point ? "visible" : "hidden");
      if (!point) { tip.textContent = hint; return; }
      ring.setAttribute("cx", point.x);
      ring.setAttribute("cy", point.y);
      tip.replaceChildren(point.text);
      if (point.link) tip.append(" ", Object.assign(document.createElement("a"), { href: point.link, textContent: "Open" }));
    };
    const nearest = (event, reach) => {
      const box = svg.getBoundingClientRect(), scale = svg.viewBox.baseVal.width / box.width;
      const [x, y] = [(event.clientX - box.left) * scale, (event.clientY - box.top) * scale];
      const far = ordered.map((point) => Math.hypot(point.x - x, point.y - y)), least = Math.min(...far);
      return least <= reach ? far.indexOf(least) : -1;
    };
    svg.addEventListener("pointermove", (event) => { if (event.pointerType !== "touch" && !event.buttons) { const next = nearest(event, 40); if (next !== place && next >= 0) read(next); } });
    svg.addEventListener("pointerdown", (event) => { if (event.pointerType === "touch") read(nearest(event, Infinity)); });
    svg.addEventListener("click", (event) => { const at = nearest(event, 12); if (event.pointerType !== "touch" && at >= 0 && ordered[at].link && !svg.dataset.dragged) location.href = ordered[at].link; });
    svg.addEventListener("keydown", (event) => {
      const steps = { ArrowRight: place + 1, ArrowLeft: place < 0 ? ordered.length - 1 : place - 1, Home: 0, End: ordered.length - 1 };
      if (event.shiftKey || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "Enter" && ordered[place]?.link) location.href = ordered[place].link;
      else if (event.key === "Escape") read(-1);
      else if (event.key in steps) read((steps[event.key] + ordered.length) % ordered.length);
      else return;
      event.preventDefault();
    });
  }

  prism.plot = { make, chart, around, words, gap, readable };
})();
