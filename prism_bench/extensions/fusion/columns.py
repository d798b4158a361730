"""Sums over the columns of a matrix: weights come out of a map over rows, a map over columns takes the sums further."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from prism_bench.extensions.fusion.asking import Asking
from prism_bench.extensions.fusion.expression import names_in
from prism_bench.extensions.fusion.includes import Includes
from prism_bench.extensions.fusion.kernel_code import EntryCall, KernelCode, at_place, elements, headers_of, signature
from prism_bench.extensions.fusion.plan import FusionPlan
from prism_bench.extensions.fusion.refusals import cannot_fuse
from prism_bench.extensions.fusion.stages import ColumnSums
from prism_bench.spec.arguments import Scalar, Scratch, Size
from prism_bench.spec.kernel import Launch


@dataclass(frozen=True)
class ColumnsHost:
    """Tiles of columns, the rows of each shared by `splits` blocks."""

    rows: str
    columns: str

    @property
    def workspace(self) -> Mapping[str, str]:
        return {"parts": f"splits {self.columns}", "arrived": "tiles"}

    @property
    def sizes(self) -> tuple[Scalar, ...]:
        return Size(self.rows), Size(self.columns), Size("splits")

    def scratch(self, number: str, includes: Includes) -> tuple[Scratch, ...]:
        return Scratch("parts", f"splits {self.columns}", number), Scratch("arrived", "tiles", "uint32")

    def launch(self, call: EntryCall, includes: Includes) -> Callable[..., Launch]:
        entry = call.entry.format(includes.value("arrays.map_arrays", "NUMBERS")[call.number])
        return Asking(
            ("tiles", "splits"),
            lambda tiles, splits: Launch(tiles * splits, 256, entry=entry, arguments=call.arguments),
        )

    def derived(self, number: str, includes: Includes) -> dict[str, Callable[..., int]]:
        made: dict[str, Any] = includes.value("sums.column_sums", "derived")(number)
        return {
            "tiles": Asking((self.columns,), made["tiles"]),
            "splits": Asking((self.rows, self.columns), made["splits"]),
        }


def write(plan: FusionPlan, stage: ColumnSums, entry: str) -> KernelCode:
    """Return the kernel around one ColumnSums stage."""
    if plan.choices:
        raise cannot_fuse(stage.name, f"'{plan.choices[0].parameter}' chooses a function, which is for products alone")
    rows, columns = plan.axes[stage.matrix]
    after = [
        "T* parts", "unsigned int* arrived", *(f"T {name}" for name in plan.scalars), f"int {rows}", f"int {columns}",
        "int splits",
    ]  # fmt: skip
    head = signature(f"template <class T>\n__global__ void __launch_bounds__(256)\n    {entry}(", plan, "T", after)
    return KernelCode(
        headers=("sums/column_sums.cuh", *headers_of(plan)),
        kernels="\n".join([head, *_body(plan, stage, rows, columns), "}"]),
        entry=f"{entry}<{{}}>",
        host=ColumnsHost(rows, columns),
    )


def _body(plan: FusionPlan, stage: ColumnSums, rows: str, columns: str) -> list[str]:
    local, read = plan.local(stage), names_in(*plan.outputs.values())
    vectors = [name for name in read if name in {one.name for one in plan.inputs}]
    given = ", ".join([stage.matrix, "weight", "parts", "arrived", rows, columns, "splits", f"&{local}"])
    return [
        "    const auto weight = [=](int row) {",
        *(f"        {line}" for line in elements(plan, names_in(stage.weights), "row")),
        f"        return {at_place(stage.weights, plan, stage)};", "    };", f"    T {local};",
        f"    if (!column_sums({given})) return;",
        "    const int column = blockIdx.x / splits * BLOCK_COLUMNS<T> + threadIdx.x;",
        f"    if (threadIdx.x >= BLOCK_COLUMNS<T> || column >= {columns}) return;",
        *(f"    {line}" for line in elements(plan, vectors, "column")),
        *(f"    {name}[column] = {at_place(one, plan, stage)};" for name, one in plan.outputs.items()),
    ]  # fmt: skip
