"use strict";
(() => {
  const theme = document.getElementById("theme"), root = document.documentElement;
  const dark = () => getComputedStyle(root).colorScheme === "dark" ||
    (!root.style.colorScheme && matchMedia("(prefers-color-scheme: dark)").matches);
  theme.hidden = false;
  theme.addEventListener("click", () => { root.style.colorScheme = dark() ? "light" : "dark"; });

  const table = document.getElementById("table");
  if (!table) return;
  const body = table.tBodies[0], rows = [...body.rows], controls = document.getElementById("controls");
  const search = document.getElementById("search"), count = document.getElementById("count");
  const nothing = document.getElementById("nothing"), heads = [...table.tHead.rows[0].cells];
  const chosen = (name) => new Set([...controls.querySelectorAll(`[name=${name}]:checked`)].map((box) => box.value));
  let order = null;

  function filter() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const labels = chosen("label"), states = chosen("state");
    let shown = 0;
    for (const row of rows) {
      const text = `${row.cells[0].textContent} ${row.cells[1].textContent} ${row.dataset.state}`.toLowerCase();
      const fits = labels.has(row.dataset.label) && states.has(row.dataset.state) && words.every((word) => text.includes(word));
      row.hidden = !fits;
      shown += fits;
    }
    count.textContent = shown === rows.length ? `${shown} cases` : `${shown} of ${rows.length} cases`;
    nothing.hidden = shown > 0;
    remember();
  }

  function value(row, index) {
    const text = row.cells[index].dataset.sort;
    return text === "" ? null : heads[index].classList.contains("text") ? text : Number(text);
  }

  function sort(index, direction) {
    const sign = direction === "ascending" ? 1 : -1;
    const compare = (a, b) => {
      const x = value(a, index), y = value(b, index);
      if (x === null || y === null) return (x === null) - (y === null);
      return sign * (typeof x === "string" ? x.localeCompare(y) : x - y);
    };
    heads.forEach((head) => head.removeAttribute("aria-sort"));
    heads[index].setAttribute("aria-sort", direction);
    body.append(...[...rows].sort(compare));
    order = [heads[index].dataset.key, direction];
    remember();
  }

  function remember() {
    const state = new URLSearchParams();
    if (search.value) state.set("q", search.value);
    if (order) state.set("sort", order.join(" "));
    for (const box of controls.querySelectorAll("[type=checkbox]:not(:checked)")) state.append(`no-${box.name}`, box.value);
    const hash = state.toString();
    if (hash || location.hash.includes("=")) history.replaceState(null, "", hash ? `#${hash}` : "#cases");
  }

  function recall() {
    if (!location.hash.includes("=")) return;
    const state = new URLSearchParams(location.hash.slice(1));
    search.value = state.get("q") || "";
    for (const box of controls.querySelectorAll("[type=checkbox]"))
      box.checked = !state.getAll(`no-${box.name}`).includes(box.value);
    const [key, direction] = (state.get("sort") || "").split(" ");
    const index = heads.findIndex((head) => head.dataset.key === key);
    if (index >= 0) sort(index, direction === "descending" ? "descending" : "ascending");
    filter();
  }

  heads.forEach((head, index) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () =>
      sort(index, head.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending"));
  });
  controls.hidden = false;
  controls.addEventListener("input", filter);
  controls.addEventListener("submit", (event) => event.preventDefault());
  document.getElementById("reset").addEventListener("click", () => { controls.reset(); search.value = ""; filter(); });
  recall();
})();
