"""The pages: one file for each, which turns a chronicle into what the page shows."""

from collections.abc import Iterator, Mapping, Sequence

from prism_bench.extension import installed
from prism_bench.report.site.chronicle import Chronicle
from prism_bench.report.site.page import Page
from prism_bench.report.site.pages import (
    budgets,
    catalogue,
    compare,
    kernel,
    machine,
    overview,
    roofline,
    speedup,
    trend,
    tuning,
)

_SINGLE = (catalogue, budgets, roofline, speedup, tuning)


def all_pages(
    chronicle: Chronicle,
    loads: Mapping[str, Sequence],
    others: Sequence[Mapping[str, str]],
    shelves: Sequence[Mapping[str, object]],
) -> Iterator[Page]:
    """Every page of one machine.

    `loads` names the data files of each kernel, and under "" those of the nights; `others` are the machines that have
    pages of their own, `shelves` where the records of all machines are listed.
    """
    yield overview.page(chronicle, others)
    yield from (one.page(chronicle) for one in _SINGLE)
    for extension in installed():
        yield from (extension.function(page.function)(chronicle) for page in extension.pages)
    yield compare.page(chronicle, shelves)
    yield trend.page(chronicle, loads)
    yield machine.page(chronicle, loads)
    yield Page("method", "How we measure", {"created": chronicle.record.created, "commit": chronicle.record.commit})
    yield from kernel.pages(chronicle, loads)
