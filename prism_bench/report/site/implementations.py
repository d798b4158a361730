"""Implementations of one operation in several languages, side by side: what the kernel's and the operation's page show.

An operation is a kernel with forms in other languages than its own. Times are those of the newest record that has them;
machine code is the record's, and lines of source are those of the catalogue at hand.
"""

from collections.abc import Mapping, Sequence
from typing import TypedDict

from prism_bench.analysis.summary import number
from prism_bench.analysis.uncertainty import interval_of
from prism_bench.catalogue import Catalogue
from prism_bench.compilation.languages import language, names
from prism_bench.compilation.source_lines import source_lines
from prism_bench.measure.limits import valid_median
from prism_bench.report.site.context import SiteContext
from prism_bench.report.site.page import OPERATIONS, file_name, kernel_page
from prism_bench.report.site.shown import ShownCase
from prism_bench.spec.kernel import CUDA, KernelSpec
from prism_bench.spec.workload import LABELS

CODE = ("registers", "spill_bytes", "shared_bytes", "code_bytes", "compile_seconds")
_TITLES = {CUDA: "CUDA C++", "callable": "Python callable"}


class TimeInterval(TypedDict):
    """A median in seconds with its 95 % interval."""

    seconds: float
    low: float
    high: float


class ImplementationRow(TypedDict):
    """One language at one workload. `behind` is its time over the fastest one's; `reason` is why it has none.

    `share` of the limit `by`; `lines` are those of its file and of the shared files that it includes.
    """

    language: str
    title: str
    variant: str | None
    case: str | None
    link: str
    origin: str | None
    reason: str | None
    cold: TimeInterval | None
    hot: TimeInterval | None
    behind: float | None
    share: float | None
    by: str | None
    compiler: str | None
    code: dict[str, float | None]
    lines: tuple[int, int] | None


class ImplementationTable(TypedDict):
    """All languages at one workload, the slowest first; `least` are the seconds that the limit allows, if known."""

    label: str
    workload: str
    least: float | None
    rows: list[ImplementationRow]


def operation_page(kernel: str) -> str:
    """Return the name of the page of an operation."""
    return f"{OPERATIONS}/{file_name(kernel)}"


def language_title(name: str) -> str:
    """Return the name of a language in text: `CUDA C++`, `Triton`."""
    return language(name).title if name in names() else _TITLES.get(name, name)


def forms(catalogue: Catalogue | None, kernel: str) -> dict[str | None, KernelSpec]:
    """Return the forms of a kernel by variant, the kernel itself as None: one for each language.

    Empty where the kernel is written in one language alone.
    """
    spec = catalogue.kernels.get(kernel) if catalogue else None
    if spec is None:
        return {}
    variants = {name: spec.with_variant(name) for name in spec.variants}
    others = {name: form for name, form in variants.items() if form.written_in != spec.written_in}
    return {None: spec, **others} if others else {}


def operations(context: SiteContext) -> list[str]:
    """Return the kernels that have forms in several languages."""
    return [name for name in (context.catalogue.kernels if context.catalogue else ()) if forms(context.catalogue, name)]


def implementations(context: SiteContext, kernel: str) -> list[ImplementationTable]:
    """Return a table for each workload of the kernel; none where it is written in one language alone."""
    own = forms(context.catalogue, kernel)
    shown = {
        (one.case.variant, one.case.label): one for one in context.cases.values()
        if one.case.kernel == kernel and one.case.label in LABELS
    }  # fmt: skip
    lines = {variant: source_lines(form.source_file) for variant, form in own.items()}
    return [
        _table(label, own, {variant: shown.get((variant, label)) for variant in own}, lines)
        for label in LABELS if any(label in form.workloads for form in own.values())
    ]  # fmt: skip


def _table(
    label: str, own: Mapping[str | None, KernelSpec], found: Mapping[str | None, ShownCase | None],
    lines: Mapping[str | None, tuple[int, int] | None],
) -> ImplementationTable:  # fmt: skip
    rows = [_row(own[None].name, variant, form, found[variant], lines[variant]) for variant, form in own.items()]
    fastest = min((row["cold"]["seconds"] for row in rows if row["cold"]), default=None)
    for row in rows:
        row["behind"] = row["cold"]["seconds"] / fastest if row["cold"] and fastest else None
    rows.sort(key=lambda row: -(row["behind"] or 0))
    least = (number(one.row["least_time"]) for one in found.values() if one)
    axes = next(form.workloads[label] for form in own.values() if label in form.workloads)
    workload = ",".join(f"{axis}={value}" for axis, value in axes.items())
    return {"label": label, "workload": workload, "least": next(filter(None, least), None), "rows": rows}


def _row(
    kernel: str, variant: str | None, form: KernelSpec, shown: ShownCase | None, lines: tuple[int, int] | None
) -> ImplementationRow:
    code = shown.case.code if shown else {}
    return {
        "language": form.written_in, "title": language_title(form.written_in), "variant": variant,
        "case": shown.case.name if shown else None, "link": f"{kernel_page(kernel)}.html",
        "origin": shown.origin if shown else None, "reason": _reason(shown),
        "cold": _time(shown, "cold_time"), "hot": _time(shown, "hot_time"),
        "behind": None, "share": number(shown.row["bound_share"]) if shown else None,
        "by": str(shown.row["bound"]) if shown and shown.row["bound"] else None,
        "compiler": str(code["compiler"]) if code.get("compiler") else None,
        "code": {name: number(code.get(name)) for name in CODE}, "lines": lines,
    }  # fmt: skip


def _reason(shown: ShownCase | None) -> str | None:
    """Return why a form has no time; None where it has one."""
    if shown is None:
        return "no record of this machine has timed it"
    if valid_median(shown.case, "cold_time"):
        return None
    stand_in = shown.reading.record.stand_in
    if stand_in and shown.case.status == "ok":
        return f"no kernel was timed: the backend times the {stand_in.name}"
    return shown.case.reason or str(shown.row["invalid"] or "the record gives no reason")


def _time(shown: ShownCase | None, metric: str) -> TimeInterval | None:
    seconds = valid_median(shown.case, metric) if shown else None
    if shown is None or seconds is None:
        return None
    low, high = interval_of(shown.case, metric, seconds)
    return {"seconds": seconds, "low": low, "high": high}


def widest(tables: Sequence[ImplementationTable]) -> ImplementationTable | None:
    """Return the table in which the slowest language is furthest behind; None where none compares two times."""
    compared = [table for table in tables if sum(row["behind"] is not None for row in table["rows"]) > 1]
    return max(compared, key=lambda table: table["rows"][0]["behind"] or 0, default=None)
