"""From records to a site: one set of pages for each machine, that of the newest run in the first folder."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

from prism_bench.catalogue import Catalogue
from prism_bench.errors import ResultsError
from prism_bench.io.documents import no_collection
from prism_bench.record import store
from prism_bench.record.store import History
from prism_bench.report.machine import backend_name
from prism_bench.report.site import guides, pages, search
from prism_bench.report.site.context import SiteContext, contexts
from prism_bench.report.site.later import Later
from prism_bench.report.site.newest import NewestRecord, newest_of_each
from prism_bench.report.site.page import MENU, Page, figures, file_name
from prism_bench.report.site.places import Places
from prism_bench.report.site.record_lists import RecordList, record_lists
from prism_bench.report.site.series_data import series_data
from prism_bench.report.site.sides import keep_side, side_files
from prism_bench.report.site.writing import Written, write_site
from prism_bench.report.templating import environment
from prism_bench.spec.metric import timed_on

_ASSETS = (
    "site.css",
    "site.js",
    "search.js",
    "tables.js",
    "plot.js",
    "roofline.js",
    "pictures.js",
    "kernel.js",
    "verdict.js",
    "compare.js",
)


@dataclass(frozen=True)
class Built:
    """The site's first page, the record that it shows first, and what was written."""

    page: Path
    record: Path
    written: Written


def build_site(
    runs: Path, folder: Path, catalogue: Catalogue | None = None, record: Path | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> Built:  # fmt: skip
    """Write the site about the records below `runs` into `folder`; `record` is the run it shows first, else the newest.

    `tell` gets a message for each step. A ResultsError where there is no record that can be read, or where the folder
    cannot be written; then, as after an interruption, the site that was there is as it was.
    """
    places = Places(runs)
    given = store.read(record) if record else None
    tell("reading records")
    history = store.read_history(runs, lambda done, total: tell(f"reading records: {done} of {total} new"),
                                 [given] if given else [], shown=partial(keep_side, _own_folders(folder)))  # fmt: skip
    nights = newest_of_each(history, places, given, record)
    try:
        with no_collection():
            written = write_site(folder, _files(folder, nights, history, places, catalogue, tell=tell))
    except OSError as error:
        raise ResultsError(f"cannot write {error.filename or folder}: {error.strerror}") from error
    return Built(folder / "index.html", nights[0].path, written)


def _own_folders(folder: Path) -> list[Path]:
    """Return the folders that may hold pages of a machine."""
    return [folder, *folder.glob("machines/*")]


def _files(
    folder: Path, nights: list[NewestRecord], history: History, places: Places, catalogue: Catalogue | None, *,
    tell: Callable[[str], None],
) -> Iterator[tuple[str, bytes | None]]:  # fmt: skip
    """Yield the name and the content of every file of the site, None for one that is there as it should be."""
    machines = dict(zip(_folders(nights), nights, strict=True))
    lists = record_lists(machines, history, places)
    found = contexts(nights, history, places, catalogue)
    for listed, one, context in zip(lists, nights, found, strict=True):
        tell(f"pages of {one.machine}, {backend_name(one.record)}")
        others = [_other_machine(other, there, listed.place) for there, other in machines.items() if other is not one]
        for name, content in machine_files(context, listed, lists, others, documented=guides.has_documentation(folder)):
            yield listed.place + name, content
        tell(f"what any two records of {one.machine}, {backend_name(one.record)} are compared by")
        for name, content in side_files(folder / listed.place, listed.sides):
            yield listed.place + name, content
    yield "assets/style.css", files("prism_bench.report").joinpath("templates", "style.css").read_bytes()
    for asset in _ASSETS:
        yield f"assets/{asset}", files("prism_bench.report.site").joinpath("assets", asset).read_bytes()


def _folders(nights: Sequence[NewestRecord]) -> list[str]:
    """Return the folder of each machine's pages: the first one's is the site's own."""
    names = ("-".join(filter(None, one.record.owner)) for one in nights[1:])
    return ["", *(f"machines/{file_name(name)}/" for name in names)]


def _other_machine(other: NewestRecord, there: str, here: str) -> dict[str, Any]:
    """Return another machine as a page names it."""
    return {"machine": other.machine, "backend": backend_name(other.record), "created": other.record.created,
            "link": "../" * here.count("/") + there + "index.html"}  # fmt: skip


def machine_files(
    context: SiteContext, own: RecordList, lists: Sequence[RecordList], others: Sequence[Mapping[str, Any]], *,
    documented: bool = False,
) -> Iterator[tuple[str, bytes]]:  # fmt: skip
    """Yield the files of one machine's pages by their names in its folder.

    `own` holds its records, `lists` those of all machines; `documented` sites have the documentation in their folder.
    """
    up, kernels = "../" * own.place.count("/"), dict(context.kernels())
    yield from ((one.name, one.content) for one in own.data)
    loads: dict[str, list[list[Any]]] = {kernel: [] for kernel in kernels}
    for kernel, one in series_data(context, {name: [one.case.name for one in own] for name, own in kernels.items()}):
        loads[kernel].append([one.first, one.name])
        yield one.name, one.content
    loads[""] = [[one.first, one.name] for one in own.nights]
    offered = [one.plain(up) for one in sorted(lists, key=lambda one: one is not own)]
    made = list(pages.all_pages(context, loads, others, offered))
    for page in made:
        yield from _rendered(page, context, up, f"{up}{guides.FOLDER}/" if documented else None)
        yield f"{page.name}.json", figures({"timed": timed_on(context.record.backend), **page.view})
    yield search.FILE, search.search_file(made)


def _rendered(page: Page, context: SiteContext, up: str, documentation: str | None) -> Iterator[tuple[str, bytes]]:
    """Yield the page, and before it the script with what it does not show at first."""
    template, later = environment().get_template(f"site/{page.template or page.name}.html"), Later()
    text = later.shortened(template.render(
        page=page, menu=MENU, documentation=documentation, guide=guides.guide_link(page, documentation),
        root=page.root, assets=f"{page.root}{up}assets/", context=context,
        record=context.record, reading=context.reading, view=page.view, later=later.put, **page.shown,
    ))  # fmt: skip
    script = later.script(page.name, page.drawn)
    if script:
        yield script
        tables = f'<script src="{page.root}{up}assets/tables.js" defer></script>'
        text = text.replace(tables, f'<script src="{page.root}{script[0]}" defer></script>\n{tables}', 1)
    yield f"{page.name}.html", text.encode()
