"""A kernel's page: its implementations, and for each case its past, why it takes its time, evidence and accuracy."""

import inspect
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from prism_bench.analysis.bounds.bottleneck import counted_near, largest, roofs, unmeasured_peaks
from prism_bench.analysis.bounds.profiles import Counted
from prism_bench.analysis.bounds.why import Why, code_against, why, with_near
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
    operation_page,
)
from prism_bench.report.site.context import ORIGINS, SiteContext, name_of
from prism_bench.report.site.data_files import resources
from prism_bench.report.site.page import Page, kernel_page
from prism_bench.report.view import CaseView, table_of
from prism_bench.spec.kernel import KernelSpec
from prism_bench.spec.metric import CODE
from prism_bench.spec.workload import LABELS


def pages(
    context: SiteContext, loads: Mapping[str, Sequence], languages: Mapping[str, Sequence[ImplementationTable]]
) -> Iterator[Page]:
    """Yield a page for each kernel of the catalogue or of a record."""
    compiled = resources(context.places)
    for kernel, views in context.kernels.items():
        tables = languages.get(kernel, ())
        yield _page(context, kernel, sorted(views, key=_order), compiled.get(kernel), loads, tables)


def _order(view: CaseView) -> tuple[str, int, str]:
    """Sort the kernel before its variants, small workloads before large ones."""
    label = view.case.label
    return view.case.variant or "", LABELS.index(label) if label in LABELS else len(LABELS), view.case.name


def _page(
    context: SiteContext,
    kernel: str,
    case_views: Sequence[CaseView],
    compiled: Mapping[str, Any] | None,
    loads: Mapping[str, Sequence],
    tables: Sequence[ImplementationTable],
) -> Page:
    spec = context.catalogue.kernels.get(kernel) if context.catalogue else None
    counted = {view.case.name: counted_of(context, view) for view in case_views}
    whys = _whys(context, case_views, counted)
    cases = [case_values(context, view, counted[view.case.name], whys[view.case.name]) for view in case_views]
    opened = largest([view.case for view in case_views])
    stand_in = context.record.stand_in
    view = {
        "kernel": kernel,
        "answer": kernel_answer(opened, whys[opened.name], stand_in) if opened else "",
        "created": context.record.created,
        "commit": context.record.commit,
        "family": spec.family if spec else next((view.case.family for view in case_views), ""),
        "meaning": _meaning(spec),
        "nights": len(context.own),
        "data": {"nights": loads[""], "series": loads[kernel]},
        "roofs": {"bandwidth": context.reading.limits.ceilings.get("bandwidth"), **roofs(context.reading.limits)},
        "cases": cases,
        "resources": compiled,
    }
    kinds = {view.case.arithmetic for view in case_views if view.case.flops}
    drawn = {
        **{name: view[name] for name in ("kernel", "data", "roofs", "nights")},
        "stand_in": stand_in and stand_in.name,
        "peaks": unmeasured_peaks(context.record.machine, context.reading.limits, kinds),
        "floors": dict(context.reading.limits.floors),
        "largest": opened and opened.name,
        "single": list(CODE),
        "noise": _noise(context, [view.case.name for view in case_views]),
        "cases": [drawn_case(context, *both) for both in zip(case_views, cases, strict=True)],
    }
    return Page(
        kernel_page(kernel),
        kernel,
        view,
        _shown(context, kernel, spec, case_views, whys, opened, tables),
        "kernel",
        ("plot.js", "roofline.js", "kernel.js"),
        drawn=drawn if case_views else None,
        words=_search_words(spec, view),
    )


def _shown(
    context: SiteContext,
    kernel: str,
    spec: KernelSpec | None,
    case_views: Sequence[CaseView],
    whys: Mapping[str, Why],
    opened: CaseResult | None,
    tables: Sequence[ImplementationTable],
) -> dict[str, Any]:
    """Return what only the template needs; `opened` is the case that the page opens on."""
    forms_of_spec = {None: spec, **{name: spec.with_variant(name) for name in spec.variants}} if spec else {}
    edges = context.edges.get(kernel, [])
    return {
        "cases": case_views,
        "table": table_of(case_views),
        "whys": whys,
        "spec": spec,
        "earlier": partial(_earlier, context),
        "implementations": _implementations(tables, opened) if opened else None,
        "origins": ORIGINS,
        "largest": opened and opened.name,
        # By variant, None for the kernel itself: the form that replaces one that is kept to compare with.
        "before": {name: form.before for name, form in forms_of_spec.items() if form.before},
        "changes": changes_of,
        "languages": len(forms(context.catalogue, kernel)),
        "operation": f"{operation_page(kernel)}.html",
        "variants": {name: variant.meaning for name, variant in spec.variants.items()} if spec else {},
        "sources": _sources(spec) if spec else [],
        "steps": context.steps,
        "edges": {"count": len(edges), "wrong": [case for case in edges if case.status not in ("ok", "skipped")]},
        "commands": {view.case.name: _command(view) for view in case_views},
        "how": how_text,
        "conditions": conditions,
        "checks": {view.case.name: checks_of(view.case) for view in case_views},
    }


def _search_words(spec: KernelSpec | None, view: Mapping[str, Any]) -> str:
    """Return what the search finds the page by: meaning, family, other names and variants."""
    names = (*spec.aliases, *(f"{spec.name}:{name}" for name in spec.variants)) if spec else ()
    return ". ".join(filter(None, [view["meaning"], view["family"], ", ".join(names)]))


def _whys(
    context: SiteContext, case_views: Sequence[CaseView], counted: Mapping[str, Counted | None]
) -> dict[str, Why]:
    """Return by case why it takes its time.

    A case without counters has those of the largest workload of its implementation that has some.
    """
    whys: dict[str, Why] = {}
    for view in case_views:
        earlier = context.before(view)
        code = code_against(earlier[1], view.case, name_of(earlier[0])) if earlier else None
        whys[view.case.name] = why(view.case, view.reading.limits, counted[view.case.name], code)
    with_counters = {name for name, account in whys.items() if account.basis == "counters"}
    cases = [view.case for view in case_views]
    for case in cases:
        near = None if case.name in with_counters else counted_near(case, cases, with_counters)
        if near:
            whys[case.name] = with_near(whys[case.name], near, whys[near.name])
    return whys


def _implementations(tables: Sequence[ImplementationTable], opened: CaseResult) -> ImplementationTable | None:
    """Return the languages at the workload that the page opens on; None where no two of them have a time."""
    table = next((table for table in tables if table["label"] == opened.label), None)
    return table if table and sum(row["behind"] is not None for row in table["rows"]) > 1 else None


def _earlier(context: SiteContext, name: str) -> str:
    """Return an earlier run's name with what it is: the run before, or the newest one that has the case."""
    last = context.earlier[-1] if context.earlier else None
    is_last = last is not None and name == name_of(last)
    return f"the run before, {name}" if is_last else f"{name}, the newest earlier run that has it"


def _noise(context: SiteContext, names: Collection[str]) -> dict[str, dict[str, float]]:
    """Return the smallest relative change that is no noise, by case and metric."""
    noise: dict[str, dict[str, float]] = {}
    for (case, metric), floor in (context.noise.floors if context.noise else {}).items():
        if case in names:
            noise.setdefault(case, {})[metric] = float(f"{floor.smallest_change:.4g}")
    return noise


def _command(view: CaseView) -> str | None:
    """Return the command that measures the case again at its commit."""
    return command(view.reading.record, GateCheck(view.case.name, None, view.case.status))


def _meaning(spec: KernelSpec | None) -> str | None:
    """Return the first paragraph of the docstring of the spec's file."""
    if spec is None or spec.file is None:
        return None
    text = spec.file.read_text("utf-8").lstrip()
    quoted = text.split('"""')
    return inspect.cleandoc(quoted[1]).split("\n\n")[0].replace("\n", " ") if text.startswith('"""') else None


def _sources(spec: KernelSpec) -> list[tuple[str, str]]:
    """Return name and text of the kernel's two files."""
    paths = [path for path in (spec.source_path, spec.file) if path]
    files = [(f"{family_of(path)}/{path.name}", path.read_bytes()) for path in paths if path.is_file()]
    return [(name, content.decode("utf-8", "replace")) for name, content in files if b"\0" not in content]
