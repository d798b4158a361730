// Text that lies on other text: pairs of words whose boxes share more than a sliver. The box of turned text is not its own.
() => {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), boxes = [];
  while (walker.nextNode()) {
    const node = walker.currentNode, owner = node.parentElement;
    if (!node.textContent.trim() || owner.closest("script, style, select, .skip, [transform]") || !owner.checkVisibility({ opacityProperty: true })) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const box of range.getClientRects())
      if (box.width > 2 && box.height > 2) boxes.push([box.left, box.top, box.right, box.bottom, node.textContent.trim().slice(0, 40), owner.closest(".menu, .top, .scroll")]);
  }
  boxes.sort((a, b) => a[1] - b[1]);
  const found = [];
  boxes.forEach((a, index) => {
    for (let next = index + 1; next < boxes.length && boxes[next][1] < a[3] - 3; next += 1) {
      const b = boxes[next];
      if (Math.min(a[2], b[2]) - Math.max(a[0], b[0]) > 2 && Math.min(a[3], b[3]) - b[1] > 4) found.push(`${a[4]} / ${b[4]}`);
    }
  });
  return found;
}
