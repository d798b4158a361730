"use strict";
// Every page: light or dark, what the link remembers, data that script files hand over.
const prism = { given: new Map() };

// Script files hand their data over here: a page from disk may load scripts where it may fetch nothing.
prism.give = (name, first, data) => {
  prism.given.set(`${name} ${first}`, data);
  dispatchEvent(new CustomEvent("given", { detail: { name, first } }));
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

// What the page's scripts draw from; markup that the page put aside, by its number (`later.py` makes both).
prism.view = () => prism.given.get("page 0")?.view ?? JSON.parse(document.getElementById("view")?.textContent || "null");
prism.content = (number) => {
  const { skeletons, texts, contents } = prism.given.get("page 0");
  return contents[number].map(([skeleton, ...values]) =>
    skeletons[skeleton].reduce((made, part, index) => made + (typeof values[index - 1] === "number" ? texts[values[index - 1]] : values[index - 1]) + part)).join("");
};

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
  theme.hidden = false;
  theme.addEventListener("click", () => { root.style.colorScheme = dark() ? "light" : "dark"; kept(root.style.colorScheme); });
})();
