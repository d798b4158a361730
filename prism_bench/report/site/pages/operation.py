"""An operation's page: its implementations in several languages side by side, at each workload, the slowest first."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TypedDict

from prism_bench.report.site.answers import operation_answer
from prism_bench.report.site.cases import (
    ImplementationTable,
    forms,
    language_title,
    operation_page,
    widest,
)
from prism_bench.report.site.context import ORIGINS, SiteContext
from prism_bench.report.site.page import Page, kernel_page
from prism_bench.units import count_text


class OperationLine(TypedDict):
    """An operation in the overview: its languages, and the table in which they differ most, if any compares two."""

    kernel: str
    link: str
    languages: list[str]
    widest: ImplementationTable | None


def pages(context: SiteContext, languages: Mapping[str, Sequence[ImplementationTable]]) -> Iterator[Page]:
    """Yield a page for each kernel that is written in several languages."""
    for kernel, tables in languages.items():
        by_variant = forms(context.catalogue, kernel)
        titles = [language_title(form.written_in) for form in by_variant.values()]
        spec = by_variant[None]
        view = {
            "kernel": kernel,
            "answer": operation_answer(widest(tables), tables),
            "family": spec.family,
            "languages": titles,
            "workloads": tables,
        }
        meanings = {name: spec.variants[name].meaning for name in by_variant if name}
        shown = {
            "origins": ORIGINS,
            "kernel_link": f"{kernel_page(kernel)}.html",
            "meanings": meanings,
            "anything_timed": any(row["cold"] for table in tables for row in table["rows"]),
        }
        yield Page(
            operation_page(kernel),
            f"{kernel} in {count_text(len(by_variant), 'language')}",
            view,
            shown,
            "operation",
            ("plot.js", "pictures.js"),
            words=" ".join([spec.family, *titles]),
        )


def operation_lines(
    context: SiteContext, languages: Mapping[str, Sequence[ImplementationTable]]
) -> list[OperationLine]:
    """Return a line for each operation, that with the largest difference between two languages first."""
    lines: list[OperationLine] = []
    for kernel, tables in languages.items():
        titles = [language_title(form.written_in) for form in forms(context.catalogue, kernel).values()]
        link = f"{operation_page(kernel)}.html"
        table = widest(tables)
        lines.append({"kernel": kernel, "link": link, "languages": titles, "widest": table})
    return sorted(lines, key=lambda line: -((line["widest"]["rows"][0]["behind"] or 0) if line["widest"] else 0))
