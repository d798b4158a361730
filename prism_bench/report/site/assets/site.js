"use strict";
// Every page: light or dark, the menu of a narrow window, what the link remembers, data that script files hand over.
const prism = { given: new Map() };

// Script files hand their data over here: a page from disk may load scripts where it may fetch nothing.
prism.give = (name, first, data) => {
  prism.given.set(`${name} ${first}`, data);
  dispatchEvent(new CustomEvent("given", { detail: { name, first } }));
};

// What `page.py` packed: `size` bytes of JSON in DEFLATE (RFC 1951), in base64.
prism.unpacked = (size, base64) => {
  const letters = atob(base64), packed = new Uint8Array(letters.length), made = new Uint8Array(size);
  for (let index = 0; index < letters.length; index += 1) packed[index] = letters.charCodeAt(index);
  const ORDER = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
  let place = 0, held = 0, count = 0, end = 0;
  const filled = (need) => { while (count < need) { held |= packed[place++] << count; count += 8; } };
  const taken = (number) => { held >>>= number; count -= number; };
  const bits = (need) => {
    filled(need);
    const value = held & ((1 << need) - 1);
    taken(need);
    return value;
  };
  // A code by the lengths of its words: for whatever bits follow, the meaning of the word that they begin with, and its length.
  const code = (lengths) => {
    const longest = Math.max(1, ...lengths), words = new Uint16Array(1 << longest);
    for (let length = 1, word = 0; length <= longest; length += 1, word <<= 1) {
      lengths.forEach((own, meaning) => {
        if (own !== length) return;
        let turned = 0;
        for (let bit = 0; bit < length; bit += 1) turned |= (word >> bit & 1) << (length - 1 - bit);
        for (let at = turned; at < words.length; at += 1 << length) words[at] = meaning << 4 | length;
        word += 1;
      });
    }
    return [words, longest];
  };
  const next = ([words, longest]) => {
    filled(longest);
    const found = words[held & (words.length - 1)];
    if (!found) throw new Error("the page's data is damaged");
    taken(found & 15);
    return found >> 4;
  };
  const described = () => {
    const literals = bits(5) + 257, distances = bits(5) + 1, known = bits(4) + 4, short = new Array(19).fill(0), lengths = [];
    for (let index = 0; index < known; index += 1) short[ORDER[index]] = bits(3);
    const words = code(short);
    while (lengths.length < literals + distances) {
      const word = next(words);
      if (word < 16) lengths.push(word);
      else {
        const repeated = word === 16 ? lengths.at(-1) : 0, times = word === 16 ? 3 + bits(2) : word === 17 ? 3 + bits(3) : 11 + bits(7);
        for (let index = 0; index < times; index += 1) lengths.push(repeated);
      }
    }
    return [code(lengths.slice(0, literals)), code(lengths.slice(literals))];
  };
  const fixed = () => [code(Array.from({ length: 288 }, (_, index) => index < 144 ? 8 : index < 256 ? 9 : index < 280 ? 7 : 8)), code(new Array(30).fill(5))];
  // A length or a distance: its first numbers have a word each, and then every `step` words one more bit follows.
  const reach = (word, step, least) => {
    if (word < 2 * step) return word + least;
    const more = (word - step) / step | 0;
    return ((word - step * more) << more) + bits(more) + least;
  };
  const copied = ([literals, distances]) => {
    for (let word = next(literals); word !== 256; word = next(literals)) {
      if (word < 256) { made[end++] = word; continue; }
      const length = word === 285 ? 258 : reach(word - 257, 4, 3), from = end - reach(next(distances), 2, 1);
      for (let index = 0; index < length; index += 1) made[end++] = made[from + index];
    }
  };
  for (let last = 0; !last;) {
    last = bits(1);
    const kind = bits(2);
    if (kind) { copied(kind === 1 ? fixed() : described()); continue; }
    place -= count >> 3;
    held = count = 0;
    const length = packed[place] | packed[place + 1] << 8;
    made.set(packed.subarray(place + 4, place + 4 + length), end);
    place += 4 + length;
    end += length;
  }
  return JSON.parse(new TextDecoder().decode(made));
};

// While one is on its way, the page is marked as busy, for screen readers too.
let awaited = 0;
prism.load = (path) => new Promise((resolve) => {
  const script = document.createElement("script");
  const done = (found) => { awaited -= 1; if (!awaited) document.body.removeAttribute("aria-busy"); resolve(found); };
  script.src = document.body.dataset.root + path;
  script.onload = () => done(true);
  script.onerror = () => done(false);
  awaited += 1;
  document.body.setAttribute("aria-busy", "true");
  document.head.append(script);
});

// What the page's scripts draw from; markup that the page put aside, by its number (`page.py` makes both).
prism.view = () => prism.given.get("page 0")?.view ?? JSON.parse(document.getElementById("view")?.textContent || "null");
prism.content = (number) => prism.given.get("page 0").contents[number];

// What the link remembers, such as `#catalogue.q=soft&catalogue.sort=S1 descending`.
prism.state = (hash = location.hash) => new URLSearchParams(hash.includes("=") ? hash.slice(1) : "");
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
  const pages = document.getElementById("pages"), top = pages.closest("header");
  pages.addEventListener("click", () => pages.setAttribute("aria-expanded", String(top.classList.toggle("open"))));
  top.classList.add("scripted");
  pages.hidden = theme.hidden = false;
  theme.addEventListener("click", () => { root.style.colorScheme = dark() ? "light" : "dark"; kept(root.style.colorScheme); });
})();
