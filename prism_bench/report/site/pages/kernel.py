"""A kernel's page: its cases, and for each its past, its processes, its bound, evidence, accuracy and command."""

import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from prism_bench.analysis.bounds.roofline import roofs
from prism_bench.analysis.gate.alerts import command
from prism_bench.analysis.gate.checks import GateCheck
from prism_bench.analysis.peer_rows import peer_rows
from prism_bench.analysis.summary import number
from prism_bench.analysis.trend import Step
from prism_bench.files import family_of
from prism_bench.kernel import KernelSpec
from prism_bench.measurement import Measurement
from prism_bench.metric import MEASURED
from prism_bench.report.peers import how_text
from prism_bench.report.site.context import SiteContext
from prism_bench.report.site.counted import counted
from prism_bench.report.site.page import Page, kernel_page
from prism_bench.report.site.resources import resources
from prism_bench.report.site.shown import ShownCase
from prism_bench.report.terminal.case_table import table_of
from prism_bench.report.verification import checks_of
from prism_bench.run_record import encode_measurement
from prism_bench.workload import LABELS

_DERIVED = ("bandwidth", "bandwidth_share", "flop_rate", "flop_share", "intensity", "bound", "least_time",
            "bound_share", "best_peer", "best_peer_time", "peer_ratio", "cpu_time", "cpu_ratio",
            "cpu_ratio_end_to_end", "error", "invalid", "throttled", "energy", "dram_bytes")  # fmt: skip


def pages(context: SiteContext, loads: Mapping[str, Sequence]) -> Iterator[Page]:
    """Yield a page for each kernel of the catalogue or of a record."""
    compiled = resources(context.places)
    for kernel, told in context.kernels():
        yield _page(context, kernel, sorted(told, key=_order), compiled.get(kernel), loads)


def _order(told: ShownCase) -> tuple[str, int, str]:
    """Sort the kernel before its variants, small workloads before large ones."""
    label = told.case.label
    return told.case.variant or "", LABELS.index(label) if label in LABELS else len(LABELS), told.case.name


def _page(
    context: SiteContext, kernel: str, told: Sequence[ShownCase], compiled: Mapping[str, Any] | None,
    loads: Mapping[str, Sequence],
) -> Page:  # fmt: skip
    spec = context.catalogue.kernels.get(kernel) if context.catalogue else None
    counts = {one.case.name: counted(context, one) for one in told}
    view = {
        "kernel": kernel,
        "family": spec.family if spec else next((one.case.family for one in told), ""),
        "meaning": _meaning(spec),
        "nights": len(context.own),
        "data": {"nights": loads[""], "series": loads[kernel]},
        "roofs": {"bandwidth": context.reading.limits.ceilings.get("bandwidth"), **roofs(context.reading.limits)},
        "cases": [_case(context, one, counts[one.case.name]) for one in told],
        "resources": compiled,
    }
    shown = {"cases": told, "table": table_of([one.line for one in told]), "counts": counts, "spec": spec,
             "before": _replaced(spec),
             "variants": {name: one.meaning for name, one in spec.variants.items()} if spec else {},
             "sources": _sources(spec), "steps": context.steps, "edges": _edges(context, kernel),
             "how": how_text, "checks": {one.case.name: checks_of(one.case) for one in told},
             "script": {**{name: view[name] for name in ("kernel", "data", "roofs", "nights")},
                        "floors": dict(context.reading.limits.floors)}}  # fmt: skip
    return Page(kernel_page(kernel), kernel, view, shown, "kernel", ("plot.js", "kernel.js"))


def _meaning(spec: KernelSpec | None) -> str | None:
    """Return the first paragraph of the spec's own words."""
    if spec is None or spec.file is None:
        return None
    text = spec.file.read_text("utf-8").lstrip()
    quoted = text.split('"""')
    return inspect.cleandoc(quoted[1]).split("\n\n")[0].replace("\n", " ") if text.startswith('"""') else None


def _replaced(spec: KernelSpec | None) -> dict[str | None, str]:
    """Return by variant, None for the kernel itself, the form that replaces one that is kept to compare with."""
    forms = {None: spec, **{name: spec.with_variant(name) for name in spec.variants}} if spec else {}
    return {name: form.before for name, form in forms.items() if form.before}


def _sources(spec: KernelSpec | None) -> list[tuple[str, str]]:
    """Return name and text of the kernel's two files."""
    paths = [path for path in (spec.source_path, spec.file) if path] if spec else []
    files = [(f"{family_of(path)}/{path.name}", path.read_bytes()) for path in paths if path.is_file()]
    return [(name, content.decode("utf-8", "replace")) for name, content in files if b"\0" not in content]


def _edges(context: SiteContext, kernel: str) -> dict[str, Any]:
    """Return how many edge and golden cases the newest run had, and which went wrong."""
    own = [case for case in context.reading.edges if case.kernel == kernel]
    return {"count": len(own), "wrong": [case for case in own if case.status not in ("ok", "skipped")]}


def _case(context: SiteContext, told: ShownCase, counts: Mapping[str, Any]) -> dict[str, Any]:
    case = told.case
    return {
        "name": case.name, "variant": case.variant, "label": case.label, "workload": case.workload,
        "status": case.status, "reason": case.reason, "created": told.created, "commit": told.reading.record.commit,
        "origin": told.origin, "bytes": case.bytes, "flops": case.flops, "code": case.code,
        "derived": {name: _plain(told.row[name]) for name in _DERIVED},
        "peers": peer_rows(case),
        "measurements": [_measurement(one) for one in case.measurements],
        "verification": case.verification, "counters": counts,
        "steps": [_step(context, step) for step in context.steps.get(case.name, ())],
        "reproduce": command(told.reading.record, GateCheck(case.name, None, case.status)),
    }  # fmt: skip


def _plain(value: Any) -> str | float | None:
    return value if isinstance(value, str) else number(value)


def _measurement(one: Measurement) -> dict[str, Any]:
    """Return the measurement as it is stored, its samples in seconds."""
    plain = encode_measurement(one)
    plain["processes"] = [[float(f"{seconds:.4g}") for seconds in process] for process in one.processes]
    return {**plain, "median": one.median, "spread": one.spread, "unit": MEASURED[one.metric].unit
            if one.metric in MEASURED else None}  # fmt: skip


def _step(context: SiteContext, step: Step) -> dict[str, Any]:
    night = next(n for n, facts in enumerate(context.own) if facts.file == step.record)
    return {"metric": step.key.metric, "subject": step.key.subject, "night": night, "nights": step.nights,
            "before": step.before, "after": step.after, "ratio": step.ratio, "since": step.since, "worse": step.worse,
            "recovered": step.recovered, "record": step.record, "commits": step.commits,
            "cause": [step.cause.words, *step.cause.also]}  # fmt: skip
