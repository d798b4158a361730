"""How cases and specs show themselves at a prompt and in a notebook: one short line, a small HTML view.

The functions are methods of `Case` and `KernelSpec`, which import them.
"""

from typing import TYPE_CHECKING

from prism_bench import display
from prism_bench.units import bytes_text, count_text, rate_text

if TYPE_CHECKING:
    from prism_bench.spec.case import Case
    from prism_bench.spec.kernel import KernelSpec


def spec_line(self: "KernelSpec") -> str:
    """Return one line: `<KernelSpec softmax (basic), 3 workloads, 2 variants>`."""
    variants = f", variants {', '.join(self.variants)}" if self.variants else ""
    workloads = count_text(len(self.workloads), "workload")
    return f"<KernelSpec {self.name or self.entry} ({self.family}), {workloads}{variants}>"


def case_view_line(self: "Case") -> str:
    """Return one line: `<Case softmax[rows=32,cols=1000] S0>`, with the configuration where one was chosen."""
    return f"<Case {self.task} {self.label}>"


def case_view_html(self: "Case") -> str:
    """Return bars of the bytes of each buffer, and a table of what a launch moves and computes."""
    sizes = self.sizes
    buffers = [(f"{array.name} {array.dtype} {_shape(sizes.shape(array.name))}", float(sizes.nbytes(array.name)),
                bytes_text(sizes.nbytes(array.name))) for array in self.spec.arrays]  # fmt: skip
    rows = [["moves at least", bytes_text(sizes.bytes_moved)]]
    if sizes.flops:
        rows.append(["computes", rate_text(sizes.flops, "FLOP")])
        rows.append(["operations per byte", f"{sizes.flops / sizes.bytes_moved:.3g}" if sizes.bytes_moved else "-"])
    rows += [
        [name, ", ".join(words)] for name, words in (("peers", self.spec.peers), ("tunable", self.tunable)) if words
    ]
    return display.view(f"{self.name}: {self.label} of {self.spec.family}", display.bars(buffers),
                         display.table(["launch", ""], rows))  # fmt: skip


def _shape(extents: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, extents))}]"
