"""The documentation next to a site: whether it is there, and its page on how each page's content was measured."""

from pathlib import Path

from prism_bench.extension import installed
from prism_bench.report.site.page import KERNELS, OPERATIONS, Page

FOLDER = "docs"  # in the site's folder; scripts/docs builds it there
_METHOD = "method.html"  # what a site without documentation links to
# Pages of the documentation by page of the site, without their folder; those of kernels and operations by their folder.
GUIDES = {
    "index": "guides/measuring.html", "catalogue": "guides/measuring.html#which-times-there-are",
    "trend": "guides/comparing.html#find-changes-over-time", "compare": "guides/comparing.html",
    "budgets": "guides/nightly.html#budgets", "roofline": "guides/profiling.html#find-the-bottleneck",
    "speedup": "guides/peers.html", "tuning": "guides/tuning.html",
    "machine": "guides/measuring.html#is-this-gpu-fit-to-measure", "method": "guides/measuring.html#how-it-is-taken",
    KERNELS: "guides/measuring.html#how-it-is-taken", OPERATIONS: "guides/languages.html",
    **{page.name: page.guide for extension in installed() for page in extension.pages},
}  # fmt: skip


def has_documentation(site: Path) -> bool:
    """Return whether the documentation was built into the site's folder."""
    return (site / FOLDER / "index.html").is_file()


def guide_link(page: Page, documentation: str | None) -> str:
    """Return the way from a page to how its content was measured.

    `documentation` leads from the folder of the machine's pages to that of the documentation; None where there is none.
    """
    if documentation is None:
        return page.root + _METHOD
    return f"{page.root}{documentation}{GUIDES[page.name.split('/')[0]]}"
