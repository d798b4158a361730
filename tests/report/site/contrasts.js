// Light of two colours against each other (WCAG 2.2, 1.4.3), for each of the page's inks on its paper.
(names) => {
  const probe = document.body.appendChild(document.createElement("span"));
  const light = (name) => {
    probe.style.color = `var(--${name})`;
    const parts = getComputedStyle(probe).color.match(/[\d.]+/g).slice(0, 3).map((one) => one / 255);
    const [r, g, b] = parts.map((one) => one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const paper = light("paper");
  const found = names.map((name) => { const ink = light(name); return (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05); });
  probe.remove();
  return found;
}
