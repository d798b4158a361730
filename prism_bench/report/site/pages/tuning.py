"""What was tried and won when launches were tuned."""

from prism_bench.report.site.chronicle import Chronicle
from prism_bench.report.site.page import Page


def page(chronicle: Chronicle) -> Page:
    return Page("tuning", "Tuning", {"night": chronicle.record.created, "tuned": []})
