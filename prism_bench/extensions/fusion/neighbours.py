"""Scans over all pairs of points: the distance of the k-th neighbour, neighbours within it, and sums over the points.

A warp has its points' results in every lane, so that one scan may use what another found, and no point waits.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prism_bench.extensions.fusion.asking import Asking
from prism_bench.extensions.fusion.cuda_text import cuda, terms
from prism_bench.extensions.fusion.expression import Expression, Name, names_in, replaced
from prism_bench.extensions.fusion.includes import Includes
from prism_bench.extensions.fusion.kernel_code import (
    EntryCall,
    KernelCode,
    folded,
    grid_scratch,
    grid_workspace,
    headers_of,
    packed,
    signature,
)
from prism_bench.extensions.fusion.plan import FusionPlan
from prism_bench.extensions.fusion.stages import REDUCTIONS, Nearest, Within
from prism_bench.extensions.fusion.sums import finish
from prism_bench.spec.arguments import Scalar, Scratch, Size
from prism_bench.spec.kernel import Launch

_CLOUD = 3  # arrays of points that Cloud takes


@dataclass(frozen=True)
class NeighboursHost:
    """Warps of points along `axis`; `template` names what the launch puts into the entry before a warp's points."""

    axis: str
    template: tuple[str, ...]
    count: int

    @property
    def workspace(self) -> Mapping[str, str]:
        return grid_workspace("blocks", self.count)

    @property
    def sizes(self) -> tuple[Scalar, ...]:
        return (Size(self.axis),)

    def scratch(self, number: str, includes: Includes) -> tuple[Scratch, ...]:
        return grid_scratch("blocks", self.count) if self.count else ()

    def launch(self, call: EntryCall, includes: Includes) -> Callable[..., Launch]:
        by_warps, own_points = (includes.value("neighbours.te_points", name) for name in ("by_warps", "own_points"))

        def launched(n: int, *values: Any) -> Launch:
            *template, device = values
            own = own_points(n, device)
            return by_warps(call.entry.format(", ".join(map(str, [*template, own]))), n, own, call.arguments)

        return Asking((self.axis, *self.template, "device"), launched)

    def derived(self, number: str, includes: Includes) -> dict[str, Callable[..., int]]:
        return {"blocks": Asking((self.axis,), lambda n: max(1, -(-n // 8)))} if self.count else {}


def write(plan: FusionPlan, entry: str) -> KernelCode:
    """Return the kernel around the scans of a plan."""
    axis, count = plan.axes[plan.clouds[0]][0], len(plan.reduces)
    dims = [one for name in plan.clouds for one in plan.axes[name][1:]]
    template = ", ".join([*(f"int {one}" for one in dims), *(["int k"] if plan.nearest else []), "int OWN"])
    scratch = ["double* by_block", "unsigned int* arrived"] if count else []
    after = [*scratch, *(f"float {name}" for name in plan.scalars), f"int {axis}"]
    head = f"template <{template}>\n__global__ void __launch_bounds__(TE_THREADS)\n    {entry}("
    return KernelCode(
        headers=("neighbours/te_points.cuh", *(("sums/grid_reduce.cuh",) if count else ()), *headers_of(plan)),
        kernels="\n".join([signature(head, plan, "float", after), *_body(plan, axis), "}"]),
        entry=f"{entry}<{{}}>",
        host=NeighboursHost(axis, (*dims, *(["k"] if plan.nearest else [])), count),
    )


def _body(plan: FusionPlan, axis: str) -> list[str]:
    widths = [plan.axes[name][1] if len(plan.axes[name]) == 2 else "1" for name in plan.clouds]
    padded = ", ".join(widths + ["0"] * (_CLOUD - len(widths)))
    arrays = ", ".join([*plan.clouds, *["nullptr"] * (_CLOUD - len(widths))])
    lines = [f"    using Points = Cloud<{padded}>;", f"    const Points points{{{arrays}, {axis}}};",
             "    const WarpPoints<Points, OWN> own(points);"]  # fmt: skip
    if plan.nearest:
        lines += _radii(plan, plan.nearest, widths)
    counts = [one for one in plan.scans if isinstance(one, Within)]
    return lines + (_counts(plan, counts, widths, axis) if counts else []) + _by_point(plan, axis)


def _radii(plan: FusionPlan, nearest: Nearest, widths: Sequence[str]) -> list[str]:
    name, apart = nearest.name, _apart(plan, nearest.points, widths)
    return [
        f"    float {name}_of[OWN];",
        f"    const auto apart = [&](int p, const float(&other)[Points::D]) {{ return {apart}; }};",
        f"    find_radii<k>(points, own, apart, {name}_of);",
    ]


def _range(first: int, last: int, widths: Sequence[str]) -> str:
    """Return the distance in the coordinates of the arrays number `first` to `last`."""
    begin, end = (" + ".join(widths[:at]) or "0" for at in (first, last + 1))
    return f"distance<{begin}, {end}>(own.at[p], other)"


def _apart(plan: FusionPlan, names: Sequence[str], widths: Sequence[str]) -> str:
    """Return the distance over all these arrays; neighbouring ones are one range."""
    places = sorted(plan.clouds.index(name) for name in names)
    begins = [place for place in places if place - 1 not in places]
    ends = [place for place in places if place + 1 not in places]
    text = ""
    for begin, end in zip(begins, ends, strict=True):
        part = _range(begin, end, widths)
        text = f"fmaxf({text}, {part})" if text else part
    return text


def _counts(plan: FusionPlan, counts: Sequence[Within], widths: Sequence[str], axis: str) -> list[str]:
    """Return one more visit of all pairs, for all counts; an array's distances serve each count that uses it."""
    lines = [f"    int {', '.join(f'{one.name}_of[OWN] = {{}}' for one in counts)};"]
    lines += [line for name in dict.fromkeys(one.radius for one in counts) for line in _given(plan, name, axis)]
    lines.append("    own.visit(points, [&](int p, int, const float(&other)[Points::D]) {")
    for name, radius in dict.fromkeys((name, one.radius) for one in counts for name in one.points):
        place = plan.clouds.index(name)
        apart = _range(place, place, widths)
        lines.append(f"        const bool {_near(name, radius)} = {apart} < {radius}_of[p];")
    lines += [
        f"        {one.name}_of[p] += {' & '.join(_near(name, one.radius) for name in one.points)};" for one in counts
    ]
    sums = (f"{one.name}_of[p] = __reduce_add_sync(FULL_WARP, {one.name}_of[p]);" for one in counts)
    return [*lines, "    });", "#pragma unroll", "    for (int p = 0; p < OWN; ++p) {",
            *(f"        {one}" for one in sums), "    }"]  # fmt: skip


def _near(name: str, radius: str) -> str:
    return f"near_in_{name}_by_{radius}"


def _given(plan: FusionPlan, radius: str, axis: str) -> list[str]:
    """Return what reads the radii of the warp's own points where they are an input."""
    if plan.nearest and radius == plan.nearest.name:
        return []
    read = f"own.first + p < {axis} ? {radius}[own.first + p] : 0.0f"
    return [f"    float {radius}_of[OWN];", "#pragma unroll",
            f"    for (int p = 0; p < OWN; ++p) {radius}_of[p] = {read};"]  # fmt: skip


def _by_point(plan: FusionPlan, axis: str) -> list[str]:
    """Return what a lane does for each point of its warp: store its outputs and add its terms."""
    stored = {name: one for name, one in plan.outputs.items() if plan.axes[name]}
    operations = [REDUCTIONS[one.hows[0]] for one in plan.reduces]
    nothing = [f"{one}::nothing()" for one in operations]
    lines = [packed("    double part[] = {", nothing, "};")] if nothing else []
    lines += ["#pragma unroll", "    for (int p = 0; p < OWN; ++p) {", "        const int point = own.first + p;",
              f"        if (threadIdx.x % 32 != p || point >= {axis}) continue;"]  # fmt: skip
    lines += [f"        {name}[point] = {_at_point(one, plan)};" for name, one in stored.items()]
    for position, (stage, op) in enumerate(zip(plan.reduces, operations, strict=True)):
        text = _at_point(stage.expression, plan, "double")
        lines.append(folded(f"        const double {stage.name}_term = ", terms(text), ";"))
        lines.append(f"        part[{position}] = {op}{{}}(part[{position}], {op}::term({stage.name}_term));")
    joined = f"grid_reduce<{', '.join(operations)}>(part, by_block, arrived)"
    return [*lines, "    }", *(finish(plan, joined, "float") if operations else [])]


def _at_point(expression: Expression, plan: FusionPlan, number: str = "float") -> str:
    found = {one.name: Name(f"{one.name}_of[p]") for one in plan.scans}
    vectors = {name: Name(f"{name}[point]") for name in names_in(expression) if plan.axes[name] and name not in found}
    return cuda(replaced(expression, found | vectors), number)
