"""The pages: one file for each, which turns a context into what the page shows."""

from collections.abc import Iterator, Mapping, Sequence

from prism_bench.extension import installed
from prism_bench.report.site.cases import implementations, operations
from prism_bench.report.site.context import SiteContext
from prism_bench.report.site.page import Page
from prism_bench.report.site.pages import (
    budgets,
    catalogue,
    compare,
    kernel,
    machine,
    operation,
    overview,
    roofline,
    speedup,
    trend,
    tuning,
)

_SINGLE = (catalogue, budgets, roofline, speedup, tuning)


def all_pages(
    context: SiteContext,
    loads: Mapping[str, Sequence],
    others: Sequence[Mapping[str, str | None]],
    record_lists: Sequence[Mapping[str, object]],
) -> Iterator[Page]:
    """Yield every page of one machine.

    `loads` names the data files of each kernel, and under "" those of the runs; `others` are machines that this
    site has no pages of, `record_lists` where the records of all machines are listed.
    """
    languages = {name: implementations(context, name) for name in operations(context)}
    yield overview.page(context, others, languages)
    yield from (module.page(context) for module in _SINGLE)
    for extension in installed():
        yield from (extension.function(page.function)(context) for page in extension.pages)
    yield compare.page(context, record_lists)
    yield trend.page(context, loads)
    yield machine.page(context, loads)
    yield Page("method", "How we measure", {"created": context.record.created, "commit": context.record.commit})
    yield from operation.pages(context, languages)
    yield from kernel.pages(context, loads, languages)
