"""A kernel's page: its implementations, and for each case its past, why it takes its time, evidence and accuracy."""

import inspect
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from prism_bench.analysis.bounds.bottleneck import counted_near, largest, roofs, unmeasured_peaks
from prism_bench.analysis.bounds.why import CodeAgainst, Why, code_against, why, with_near
from prism_bench.analysis.gate.checks import GateCheck, command
from prism_bench.io.files import family_of
from prism_bench.record.run_record import CaseResult
from prism_bench.report.headline import how_text
from prism_bench.report.plain import changes_of, checks_of
from prism_bench.report.site.answers import kernel_answer
from prism_bench.report.site.cases import (
    ImplementationTable,
    case_values,
    conditions,
    counted_of,
    drawn_case,
    forms,
    implementations,
    operation_page,
)
from prism_bench.report.site.context import ORIGINS, ShownCase, SiteContext, name_of
from prism_bench.report.site.data_files import resources
from prism_bench.report.site.page import Page, kernel_page
from prism_bench.report.terminal.record import table_of
from prism_bench.spec.kernel import KernelSpec
from prism_bench.spec.workload import LABELS


def pages(context: SiteContext, loads: Mapping[str, Sequence]) -> Iterator[Page]:
    """Yield a page for each kernel of the catalogue or of a record."""
    compiled = resources(context.places)
    for kernel, cases in context.kernels():
        yield _page(context, kernel, sorted(cases, key=_order), compiled.get(kernel), loads)


def _order(shown: ShownCase) -> tuple[str, int, str]:
    """Sort the kernel before its variants, small workloads before large ones."""
    label = shown.case.label
    return shown.case.variant or "", LABELS.index(label) if label in LABELS else len(LABELS), shown.case.name


def _page(
    context: SiteContext,
    kernel: str,
    shown_cases: Sequence[ShownCase],
    compiled: Mapping[str, Any] | None,
    loads: Mapping[str, Sequence],
) -> Page:
    spec = context.catalogue.kernels.get(kernel) if context.catalogue else None
    seen = {one.case.name: counted_of(context, one) for one in shown_cases}
    whys = {
        one.case.name: why(one.case, one.reading.limits, seen[one.case.name], _code(context, one))
        for one in shown_cases
    }
    _add_near(shown_cases, whys)
    cases = [case_values(context, one, seen[one.case.name], whys[one.case.name]) for one in shown_cases]
    opened = largest([one.case for one in shown_cases])
    view = {
        "kernel": kernel,
        "answer": kernel_answer(opened, whys[opened.name], context.record.stand_in) if opened else "",
        "created": context.record.created,
        "commit": context.record.commit,
        "family": spec.family if spec else next((one.case.family for one in shown_cases), ""),
        "meaning": _meaning(spec),
        "nights": len(context.own),
        "data": {"nights": loads[""], "series": loads[kernel]},
        "roofs": {"bandwidth": context.reading.limits.ceilings.get("bandwidth"), **roofs(context.reading.limits)},
        "cases": cases,
        "resources": compiled,
    }
    shown = {
        "cases": shown_cases,
        "table": table_of([one.line for one in shown_cases]),
        "whys": whys,
        "spec": spec,
        "earlier": partial(_earlier, context),
        "implementations": _implementations(context, opened),
        "origins": ORIGINS,
        "largest": opened and opened.name,
        "before": _replaced(spec),
        "changes": changes_of,
        "languages": len(forms(context.catalogue, kernel)),
        "operation": f"{operation_page(kernel)}.html",
        "variants": {name: one.meaning for name, one in spec.variants.items()} if spec else {},
        "sources": _sources(spec),
        "steps": context.steps,
        "edges": _edges(context, kernel),
        "commands": {one.case.name: _command(one) for one in shown_cases},
        "how": how_text,
        "conditions": conditions,
        "checks": {one.case.name: checks_of(one.case) for one in shown_cases},
    }
    drawn = {
        **{name: view[name] for name in ("kernel", "data", "roofs", "nights")},
        "stand_in": context.record.stand_in and context.record.stand_in.name,
        "peaks": _peaks(context, shown_cases),
        "floors": dict(context.reading.limits.floors),
        "largest": shown["largest"],
        "noise": _noise(context, shown_cases),
        "cases": [drawn_case(context, *both) for both in zip(shown_cases, cases, strict=True)],
    }
    scripts = ("plot.js", "roofline.js", "kernel.js")
    return Page(
        kernel_page(kernel),
        kernel,
        view,
        shown,
        "kernel",
        scripts,
        drawn=drawn if shown_cases else None,
        words=_words(kernel, spec, view),
    )


def _peaks(context: SiteContext, shown_cases: Sequence[ShownCase]) -> dict[str, float]:
    kinds = {one.case.arithmetic for one in shown_cases if one.case.flops}
    return unmeasured_peaks(context.record.machine, context.reading.limits, kinds)


def _words(kernel: str, spec: KernelSpec | None, view: Mapping[str, Any]) -> str:
    """Return what the search finds the page by: meaning, family, other names and variants."""
    names = (*spec.aliases, *(f"{kernel}:{name}" for name in spec.variants)) if spec else ()
    return ". ".join(filter(None, [view["meaning"], view["family"], ", ".join(names)]))


def _add_near(shown_cases: Sequence[ShownCase], whys: dict[str, Why]) -> None:
    """Give each case without counters those of the largest workload of its implementation that has some."""
    counted = {name for name, one in whys.items() if one.basis == "counters"}
    cases = [one.case for one in shown_cases]
    for case in cases:
        near = None if case.name in counted else counted_near(case, cases, counted)
        if near:
            whys[case.name] = with_near(whys[case.name], near, whys[near.name])


def _implementations(context: SiteContext, opened: CaseResult | None) -> ImplementationTable | None:
    """Return the languages at the workload that the page opens on; None where no two of them have a time."""
    tables = implementations(context, opened.kernel) if opened else []
    found = next((one for one in tables if opened and one["label"] == opened.label), None)
    return found if found and sum(row["behind"] is not None for row in found["rows"]) > 1 else None


def _code(context: SiteContext, shown: ShownCase) -> CodeAgainst | None:
    """Return the machine code against the newest earlier run that has the case; None where there is none."""
    found = context.before(shown)
    return code_against(found[1], shown.case, name_of(found[0])) if found else None


def _earlier(context: SiteContext, name: str) -> str:
    """Return an earlier run's name with what it is: the run before, or the newest one that has the case."""
    last = context.earlier[-1] if context.earlier else None
    is_last = last is not None and name == name_of(last)
    return f"the run before, {name}" if is_last else f"{name}, the newest earlier run that has it"


def _noise(context: SiteContext, shown_cases: Sequence[ShownCase]) -> dict[str, dict[str, float]]:
    """Return the smallest relative change that is no noise, by case and metric."""
    names, floors = {one.case.name for one in shown_cases}, context.noise.floors if context.noise else {}
    found: dict[str, dict[str, float]] = {}
    for (case, metric), floor in floors.items():
        if case in names:
            found.setdefault(case, {})[metric] = float(f"{floor.smallest_change:.4g}")
    return found


def _command(shown: ShownCase) -> str | None:
    """Return the command that measures the case again at its commit."""
    return command(shown.reading.record, GateCheck(shown.case.name, None, shown.case.status))


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
