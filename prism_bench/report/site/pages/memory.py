"""How device memory is handed out, and what the ways of doing so cost."""

from prism_bench.report.site.chronicle import Chronicle
from prism_bench.report.site.page import Page


def page(chronicle: Chronicle) -> Page:
    return Page("memory", "Memory", {"night": chronicle.record.created, "pools": []})
