"use strict";
// One search for the site's pages and, where it is next to them, the documentation.
(() => {
  const MOST = 12, LENGTH = 110;
  const form = document.querySelector("form.search"), field = form.elements.find, list = form.querySelector("ul"), count = form.querySelector("output");
  const { root, docs } = document.body.dataset;
  const entities = { "&lt;": "<", "&gt;": ">", "&quot;": '"', "&#39;": "'", "&amp;": "&" };
  const text = (markup) => markup.replace(/<[^>]*>/g, " ").replace(/&(lt|gt|quot|#39|amp);/g, (entity) => entities[entity]).replace(/\s+/g, " ").trim();
  let loading;

  function load() {
    loading ??= Promise.all([prism.load("data/search.js"), docs === undefined || prism.load(`${docs}search/search_index.js`)]).then(() => {
      const own = (prism.given.get("search 0") || []).map(([title, words, link]) => ({ title, words, link: root + link, kind: "results" }));
      // The documentation holds the site's pages too: they begin with "../".
      const guides = docs === undefined ? [] : (globalThis.__index?.docs || []).filter((one) => !one.location.startsWith("../"));
      return [...own, ...guides.map((one) => ({ title: text(one.title), words: text(one.text), link: root + docs + one.location, kind: "documentation" }))]
        .map((one) => ({ ...one, low: one.title.toLowerCase(), all: `${one.title} ${one.words}`.toLowerCase() }));
    });
    return loading;
  }

  // Entries with every word: those whose title has them all come first, then titles that begin with them, then short ones.
  function found(entries, words) {
    const rank = (one) => [!words.every((word) => one.low.includes(word)), !one.low.startsWith(words[0]), one.low.length];
    const order = (a, b) => { for (const place of [0, 1, 2]) if (a.rank[place] !== b.rank[place]) return a.rank[place] - b.rank[place]; return 0; };
    return entries.filter((one) => words.every((word) => one.all.includes(word))).map((one) => ({ ...one, rank: rank(one) })).sort(order);
  }

  function item(one, word) {
    const made = document.createElement("li"), link = document.createElement("a"), more = document.createElement("small");
    const at = Math.max(0, one.words.toLowerCase().indexOf(word) - 30), part = one.words.slice(at, at + LENGTH);
    [link.href, link.textContent] = [one.link, one.title];
    more.textContent = [one.kind, `${at ? "…" : ""}${part}${one.words.length > at + LENGTH ? "…" : ""}`].filter((words) => words).join(": ");
    made.append(link, more);
    return made;
  }

  async function show() {
    const entries = await load(), words = field.value.toLowerCase().split(/\s+/).filter(Boolean), fits = words.length ? found(entries, words) : [];
    list.replaceChildren(...fits.slice(0, MOST).map((one) => item(one, words[0])));
    list.hidden = !fits.length;
    count.textContent = !words.length ? "" : fits.length > MOST ? `${MOST} of ${fits.length} pages` : `${fits.length} page${fits.length === 1 ? "" : "s"}`;
  }

  form.hidden = false;
  field.addEventListener("focus", load);
  field.addEventListener("input", show);
  form.addEventListener("submit", async (event) => { event.preventDefault(); await show(); list.querySelector("a")?.click(); });
  form.addEventListener("keydown", (event) => { if (event.key === "Escape") { field.value = ""; show(); } });
})();
