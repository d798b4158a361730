"use strict";
// Tables that sort, filter, show as many rows as are looked at and hand themselves out; folded details that are made when
// they open; pictures to take away. `prism.enhance(element)` gives all that to markup that a script has made.
(() => {
  const STEP = innerWidth < 600 ? 15 : 25; // rows that are shown at first

  const button = (words, action, label) => {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = words;
    if (label) made.setAttribute("aria-label", label);
    made.addEventListener("click", action);
    return made;
  };


  // ---- tables
  const rowsOf = (markup) => {
    const holder = document.createElement("template");
    holder.innerHTML = `<table><tbody>${markup}</tbody></table>`;
    return [...holder.content.querySelector("tbody").rows];
  };

  const cellText = (one) => {
    const copy = one.cloneNode(true);
    copy.querySelectorAll("sup").forEach((part) => part.remove());
    copy.querySelectorAll("small, .variant").forEach((part) => part.classList.contains("variant") || part.before(" "));
    const sort = one.tagName === "TD" ? one.dataset.sort : undefined;
    const text = one.dataset.csv ?? (sort !== undefined && !one.classList.contains("text") ? sort : copy.textContent.replace(/\s+/g, " ").trim());
    if (text === "–") return "";
    return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };

  // The rows of a table: all of them in their order, of which those that fit are shown, up to a limit.
  class Rows {
    constructor(table) {
      [this.table, this.body, this.fits, this.limit, this.texts] = [table, table.tBodies[0], null, STEP, new Map()];
      this.titles = [...table.tHead?.rows[0].cells || []].map((head) => head.textContent.trim());
      this.rest = table.dataset.rest;
      this.more = button("", () => { this.limit *= 2; this.show(); });
      this.note = document.createElement("p");
      this.note.className = "more";
      this.note.append(this.more);
      (table.closest(".scroll") || table).after(this.note);
      this.take();
    }

    // The rows that a script has put into the table, or that the page has: no more of them stay than are shown.
    take() {
      this.rows = [...this.body?.rows || []];
      this.total = this.rest === undefined ? this.rows.length : Number(this.table.dataset.total);
      this.texts.clear();
      this.show();
    }

    // Where a window is narrow, a cell has the title of its column above it.
    name(row) {
      [...row.cells].forEach((cell, index) => { if (cell.tagName === "TD") cell.dataset.title = this.titles[index]; });
    }

    get all() {
      if (this.rest !== undefined) {
        this.rows.push(...rowsOf(prism.content(this.rest)));
        this.rest = undefined;
      }
      return this.rows;
    }

    get fitting() { return this.fits ? this.all.filter(this.fits) : this.all; }

    text(row) {
      if (!this.texts.has(row)) this.texts.set(row, `${row.textContent} ${Object.values(row.dataset).join(" ")}`.toLowerCase());
      return this.texts.get(row);
    }

    show() {
      if (!this.body) return;
      const few = this.rest !== undefined && !this.fits && this.limit <= this.rows.length, found = few ? this.rows : this.fitting;
      this.count = few ? this.total : found.length;
      const limit = this.count <= this.limit * 1.5 ? this.count : this.limit, shown = found.slice(0, limit);
      shown.forEach((row) => this.name(row));
      if (shown.length !== this.body.rows.length || shown.some((row, index) => row !== this.body.rows[index])) this.body.replaceChildren(...shown);
      this.note.hidden = limit >= this.count;
      this.more.textContent = `Show ${Math.min(this.limit, this.count - limit)} more of ${this.count} ${this.table.dataset.noun || "rows"}`;
      this.table.dispatchEvent(new Event("shown"));
    }

    csv() {
      return [this.table.tHead?.rows[0], ...this.fitting].filter(Boolean).map((row) => [...row.cells].map(cellText).join(",")).join("\n") + "\n";
    }

    sort(index, text, direction) {
      const sign = direction === "ascending" ? 1 : -1;
      const plain = (row) => {
        const cell = row.cells[index], value = cell?.dataset.sort ?? cell?.textContent.trim() ?? "";
        if (value === "" || value === "–") return null;
        return text || isNaN(parseFloat(value)) ? value : parseFloat(value.replace("<", ""));
      };
      const keyed = this.all.map((row) => [plain(row), row]);
      keyed.sort(([x], [y]) => {
        if (x === null || y === null) return (x === null) - (y === null);
        return sign * (typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y), "en", { numeric: true }));
      });
      this.rows = keyed.map(([, row]) => row);
      this.show();
    }
  }

  function sorting(table, rows) {
    if (!table.tHead || !table.tBodies[0]) return;
    const heads = [...table.tHead.rows[0].cells];
    const sort = (head, direction) => {
      heads.forEach((one) => one.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", direction);
      rows.sort(heads.indexOf(head), head.classList.contains("text"), direction);
    };
    heads.forEach((head) => {
      if (head.dataset.plain !== undefined || rows.total < 2 && table.dataset.filled === undefined) return;
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

  function filtering(form, table, rows) {
    const search = form.querySelector("[type=search]"), selects = [...form.querySelectorAll("select")];
    const count = form.querySelector("output"), noun = table.dataset.noun || "rows";
    const nothing = table.closest("section, main").querySelector(`[data-reset="${table.id}"]`)?.closest(".nothing");
    const apply = () => {
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean), chosen = selects.filter((one) => one.value);
      const fits = (row) => words.every((word) => rows.text(row).includes(word)) && chosen.every((one) => row.dataset[one.name] === one.value);
      rows.fits = words.length || chosen.length ? fits : null;
      rows.show();
      count.textContent = rows.count === rows.total ? `${rows.total} ${noun}` : `${rows.count} of ${rows.total} ${noun}`;
      if (nothing) nothing.hidden = rows.count > 0;
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
    table.addEventListener("filled", recall);
    form.hidden = false;
    recall();
  }

  function tables(root) {
    const known = new Map([...root.querySelectorAll("table[data-name]")].map((table) => [table, new Rows(table)]));
    known.forEach((rows, table) => {
      table.addEventListener("filled", () => rows.take());
      sorting(table, rows);
      const bar = document.createElement("p");
      bar.className = "take";
      bar.append(button("CSV", () => prism.save(`${table.dataset.name}.csv`, [rows.csv()], "text/csv"), `take ${table.dataset.name} as CSV`));
      rows.note.after(bar);
    });
    root.querySelectorAll("form.controls[data-for]").forEach((form) => {
      const table = document.getElementById(form.dataset.for);
      filtering(form, table, known.get(table));
    });
  }

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

  const pictures = (root) => root.querySelectorAll("figure[data-name]").forEach((figure) => {
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
  // The button has the command as its name for screen readers and as its title; the text itself is shown on paper only.
  const commands = (root) => root.querySelectorAll("code.command").forEach((code) => {
    const command = code.textContent, words = "copy the command", name = `${words} ${command}`;
    const named = (text, label) => { copy.textContent = text; copy.setAttribute("aria-label", label); };
    const copy = button(words, async () => {
      if (!await copied(command)) { named(command, command); return; } // to be selected
      named("copied", "copied");
      setTimeout(() => named(words, name), 3000);
    }, name);
    copy.className = "copy";
    copy.title = command;
    code.after(copy);
    code.classList.add("behind");
  });

  async function copied(text) {
    try { await navigator.clipboard.writeText(text); return true; } catch { /* no permission, or an older browser */ }
    const field = document.body.appendChild(document.createElement("textarea"));
    field.value = text;
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    return done;
  }

  prism.enhance = (root) => { tables(root); pictures(root); commands(root); };

  // ---- what the page put aside
  // Make what is put aside inside of the element, once, in as far as no closed details are around it; a script that
  // shows it calls this first.
  prism.make = (element) => element.querySelectorAll("template[data-later]").forEach((place) => {
    const around = place.closest("details:not([open])");
    if (around && around !== element && element.contains(around)) return;
    const made = document.createElement("div");
    made.className = "made";
    made.innerHTML = prism.content(place.dataset.later);
    place.replaceWith(made);
    prism.enhance(made);
    prism.make(made);
    dispatchEvent(new CustomEvent("made", { detail: made }));
  });
  addEventListener("toggle", (event) => { if (event.target.open) prism.make(event.target); }, true);

  // A link to something that is put aside makes it, and opens the details around it.
  const holds = (number, id) => {
    const content = prism.content(number);
    return content.includes(`id="${id}"`) || [...content.matchAll(/<template data-later="(\d+)"/g)].some(([, inner]) => holds(inner, id));
  };
  function follow() {
    const id = decodeURIComponent(location.hash.slice(1));
    if (!id || id.includes("=")) return;
    const aside = () => document.getElementById(id) ? null : [...document.querySelectorAll("template[data-later]")].find((one) => holds(one.dataset.later, id));
    const put = Boolean(aside());
    for (let place = aside(); place; place = aside()) prism.make(place.parentElement);
    const found = document.getElementById(id);
    for (let details = found?.closest("details"); details; details = details.parentElement.closest("details")) details.open = true;
    if (put) found?.scrollIntoView();
  }

  prism.enhance(document);
  document.querySelectorAll("details[open]").forEach(prism.make);
  addEventListener("hashchange", follow);
  follow();
})();
