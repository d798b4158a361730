"use strict";
// Every page: light or dark, what the link remembers, tables that sort, filter and hand themselves out, pictures to take away.
const prism = { given: new Map() };

// Script files hand their data over here: a page from disk may load scripts where it may fetch nothing.
prism.give = (name, first, data) => {
  prism.given.set(`${name} ${first}`, data);
  dispatchEvent(new CustomEvent("given", { detail: { name, first } }));
};

prism.load = (path) => new Promise((resolve) => {
  const script = document.createElement("script");
  script.src = document.body.dataset.root + path;
  script.onload = () => resolve(true);
  script.onerror = () => resolve(false);
  document.head.append(script);
});

// What the link remembers, such as `#catalogue.q=soft&catalogue.sort=S1 descending`.
prism.state = () => new URLSearchParams(location.hash.includes("=") ? location.hash.slice(1) : "");
prism.remember = (key, value) => {
  const state = prism.state();
  if (value) state.set(key, value); else state.delete(key);
  const text = state.toString();
  if (text || location.hash.includes("=")) history.replaceState(null, "", text ? `#${text}` : location.pathname.split("/").pop() || "index.html");
};

prism.save = (name, parts, type) => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob(parts, { type }));
  link.download = name.replace(/[^\w.,=-]+/g, "_");
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
};

(() => {
  const root = document.documentElement, theme = document.getElementById("theme");
  const kept = (value) => {
    try { return value === undefined ? localStorage.getItem("prism-theme") : localStorage.setItem("prism-theme", value); } catch { return null; }
  };
  const dark = () => root.style.colorScheme ? root.style.colorScheme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  if (kept()) root.style.colorScheme = kept();
  theme.hidden = false;
  theme.addEventListener("click", () => { root.style.colorScheme = dark() ? "light" : "dark"; kept(root.style.colorScheme); });

  const button = (words, action, label) => {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = words;
    if (label) made.setAttribute("aria-label", label);
    made.addEventListener("click", action);
    return made;
  };

  // ---- tables
  function csv(table) {
    const cell = (one) => {
      const copy = one.cloneNode(true);
      copy.querySelectorAll("sup, .bar").forEach((part) => part.remove());
      copy.querySelectorAll("small, .variant").forEach((part) => part.classList.contains("variant") || part.before(" "));
      const sort = one.tagName === "TD" ? one.dataset.sort : undefined;
      const text = one.dataset.csv ?? (sort !== undefined && !one.classList.contains("text") ? sort : copy.textContent.replace(/\s+/g, " ").trim());
      return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
    };
    const rows = [...table.rows].filter((row) => !row.hidden);
    return rows.map((row) => [...row.cells].map(cell).join(",")).join("\n") + "\n";
  }

  function sorting(table) {
    if (!table.tHead || !table.tBodies[0]) return;
    const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
    const plain = (row, head, index) => {
      const cell = row.cells[index], text = cell?.dataset.sort ?? cell?.textContent.trim() ?? "";
      if (text === "" || text === "–") return null;
      return head.classList.contains("text") || isNaN(parseFloat(text)) ? text : parseFloat(text.replace("<", ""));
    };
    const sort = (head, direction) => {
      const index = heads.indexOf(head), sign = direction === "ascending" ? 1 : -1;
      const keyed = [...body.rows].map((row) => [plain(row, head, index), row]);
      keyed.sort(([x], [y]) => {
        if (x === null || y === null) return (x === null) - (y === null);
        return sign * (typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y), "en", { numeric: true }));
      });
      heads.forEach((one) => one.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", direction);
      body.append(...keyed.map(([, row]) => row));
    };
    heads.forEach((head) => {
      if (head.dataset.plain !== undefined || body.rows.length < 2 && table.dataset.filled === undefined) return;
      const made = button("", () => {
        const direction = head.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending";
        sort(head, direction);
        if (table.id) prism.remember(`${table.id}.sort`, `${head.dataset.key} ${direction}`);
      });
      made.append(...head.childNodes);
      head.append(made);
    });
    const recall = () => {
      const [key, direction] = (table.id && prism.state().get(`${table.id}.sort`) || "").split(" ");
      const chosen = key && heads.find((head) => head.dataset.key === key);
      if (chosen) sort(chosen, direction === "descending" ? "descending" : "ascending");
    };
    table.addEventListener("filled", recall);
    recall();
  }

  function filtering(form) {
    const table = document.getElementById(form.dataset.for);
    const search = form.querySelector("[type=search]"), selects = [...form.querySelectorAll("select")];
    const count = form.querySelector("output"), noun = table.dataset.noun || "rows";
    const nothing = table.closest("section, main").querySelector(`[data-reset="${table.id}"]`)?.closest(".nothing");
    let rows = [], texts = new Map();
    const read = () => {
      rows = [...table.tBodies[0].rows];
      texts = new Map(rows.map((row) => [row, `${row.textContent} ${Object.values(row.dataset).join(" ")}`.toLowerCase()]));
    };
    const apply = () => {
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const row of rows) {
        const fits = words.every((word) => texts.get(row).includes(word)) && selects.every((one) => !one.value || row.dataset[one.name] === one.value);
        row.hidden = !fits;
        shown += fits;
      }
      count.textContent = shown === rows.length ? `${shown} ${noun}` : `${shown} of ${rows.length} ${noun}`;
      if (nothing) nothing.hidden = shown > 0;
    };
    const remember = () => {
      for (const one of [search, ...selects]) prism.remember(`${table.id}.${one.name}`, one.value);
      apply();
    };
    const recall = () => {
      const state = prism.state();
      for (const one of [search, ...selects]) one.value = state.get(`${table.id}.${one.name}`) || "";
      apply();
    };
    form.addEventListener("input", remember);
    form.addEventListener("submit", (event) => event.preventDefault());
    addEventListener("hashchange", recall);
    nothing?.querySelector("button").addEventListener("click", () => { form.reset(); remember(); search.focus(); });
    table.addEventListener("filled", () => { read(); recall(); });
    form.hidden = false;
    read();
    recall();
  }

  document.querySelectorAll("table[data-name]").forEach((table) => {
    sorting(table);
    const bar = document.createElement("p");
    bar.className = "take";
    bar.append(button("CSV", () => prism.save(`${table.dataset.name}.csv`, [csv(table)], "text/csv"), `take ${table.dataset.name} as CSV`));
    (table.closest(".scroll") || table).after(bar);
  });
  document.querySelectorAll("form.controls[data-for]").forEach(filtering);

  // ---- pictures
  function standing(svg) {
    const copy = svg.cloneNode(true), probe = document.body.appendChild(document.createElement("span"));
    const colour = (name) => { probe.style.color = `var(--${name})`; return getComputedStyle(probe).color; };
    const [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
    copy.setAttribute("width", width);
    copy.setAttribute("height", height);
    copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
    copy.setAttribute("font-family", "system-ui, Liberation Sans, Arial, sans-serif");
    const text = new XMLSerializer().serializeToString(copy).replace(/var\(--(\w+)\)/g, (_, name) => colour(name));
    const paper = colour("paper");
    probe.remove();
    const place = text.indexOf(">") + 1;
    return { width, height, text: `${text.slice(0, place)}<rect width="100%" height="100%" fill="${paper}"/>${text.slice(place)}` };
  }

  function png(made, name) {
    const image = new Image(), scale = 2, canvas = document.createElement("canvas");
    image.onload = () => {
      [canvas.width, canvas.height] = [made.width * scale, made.height * scale];
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob((blob) => prism.save(name, [blob], "image/png"));
    };
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(made.text)}`;
  }

  document.querySelectorAll("figure[data-name]").forEach((figure) => {
    const shown = () => [...figure.querySelectorAll("svg.chart")].find((svg) => svg.getClientRects().length);
    const bar = document.createElement("p"), name = figure.dataset.name;
    bar.className = "take";
    bar.append(
      button("SVG", () => shown() && prism.save(`${name}.svg`, [standing(shown()).text], "image/svg+xml"), `take ${name} as SVG`),
      button("PNG", () => shown() && png(standing(shown()), `${name}.png`), `take ${name} as PNG`),
    );
    figure.append(bar);
  });

  // ---- commands to copy
  document.querySelectorAll("code.command").forEach((code) => {
    const copy = button("copy", async () => {
      try { await navigator.clipboard.writeText(code.textContent); copy.textContent = "copied"; } catch { getSelection().selectAllChildren(code); }
    }, "copy the command");
    code.after(copy);
  });
})();
