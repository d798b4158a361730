"use strict";
// Names for what the theme makes without one: the bars of code blocks; and a place in the tab order for tables that scroll.
(() => {
  const name = () => {
    document.querySelectorAll("nav.md-code__nav:not([aria-label])").forEach((bar, index) => bar.setAttribute("aria-label", `Code ${index + 1}`));
    document.querySelectorAll(".md-typeset__scrollwrap:not([tabindex])").forEach((table) => { table.tabIndex = 0; });
    document.querySelectorAll(".md-typeset pre > code:not([tabindex])").forEach((code) => { if (code.scrollWidth > code.clientWidth) code.tabIndex = 0; });
  };
  new MutationObserver(name).observe(document.documentElement, { childList: true, subtree: true });
  name();
})();
