"""From records to a site: the pages of one machine, written so that a reader never sees half of it."""

import json
import os
import shlex
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from prism_bench.catalogue import Catalogue
from prism_bench.errors import ResultsError
from prism_bench.extension import installed
from prism_bench.io.documents import json_text, no_collection
from prism_bench.io.project import STORAGE
from prism_bench.record import store
from prism_bench.record.store import History
from prism_bench.record.store.points import Facts
from prism_bench.report.plain import backend_name
from prism_bench.report.site import pages
from prism_bench.report.site.context import NewestRecord, Places, SiteContext, contexts, newest_facts, newest_of_each
from prism_bench.report.site.data_files import record_lists, series_data, side_files
from prism_bench.report.site.page import KERNELS, MENU, OPERATIONS, Later, Page, figures, file_name
from prism_bench.report.templating import environment
from prism_bench.spec.metric import timed_on

# The documentation next to a site: its page on how each page's content was measured.

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


# What the search of a site finds: its own pages, as a script file that a page loads on the first search.
#
# Where the documentation is next to the site, the page loads its index as well; `docs/hook.py` adds this one to it.

FILE = "data/search.js"


def search_file(pages: Iterable[Page]) -> bytes:
    """Return the pages as a script: `[[title, words, link], ...]`; links are from the folder of the machine's pages."""
    entries = [[page.title, page.words, f"{page.name}.html"] for page in pages]
    return f'prism.give("search", 0, {json_text(entries)});\n'.encode()


# A site is written so that its pages are whole and belong together at any moment.
#
# Everything is rendered and written next to the old site first; a report that is interrupted until then leaves the old
# one as it was. What changed is then moved into place in one short go that no signal interrupts: data, named after
# its content, before the pages that load them, the first page last; and only afterwards goes what no page needs.

_LIST = "site.json"  # the files of the folder that are the site's; everything else in it stays
_FIRST_PAGE = "index.html"
_STAGE = ".new-"
_ABANDONED = 3600.0  # seconds: no report takes so long


@dataclass(frozen=True)
class Written:
    """How many files the site has, and the names of those that were `changed` and `removed` by this writing."""

    files: int
    changed: tuple[str, ...]
    removed: tuple[str, ...]


def write_site(folder: Path, files: Iterable[tuple[str, bytes | None]]) -> Written:
    """Make the site in `folder` consist of these files, by name; what is not the site's own there stays.

    A file whose content is there already is not touched; one whose content is None is known to be. An OSError leaves
    the old site whole.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for left in folder.glob(f"{_STAGE}*"):  # by an interrupted report
        if time.time() - left.stat().st_mtime > _ABANDONED:
            shutil.rmtree(left, ignore_errors=True)
    stage = Path(tempfile.mkdtemp(dir=folder, prefix=_STAGE))
    try:
        names, changed = _staged(folder, stage, files)
        removed = sorted(set(_listed(folder)) - names)
        if changed or removed:
            _stage(stage / _LIST, json_text(sorted(names), indent=0).encode())
            with _uninterrupted():
                _move(folder, stage, [*changed, _LIST], removed)
    finally:
        shutil.rmtree(stage, ignore_errors=True)
    return Written(len(names), tuple(changed), tuple(removed))


def _staged(folder: Path, stage: Path, files: Iterable[tuple[str, bytes | None]]) -> tuple[set[str], list[str]]:
    """Return the names of all files, and of those that were written to `stage` because they are new."""
    names, changed = set(), []
    for name, content in files:
        names.add(name)
        if content is not None and not _is_there(folder / name, content):
            _stage(stage / name, content)
            changed.append(name)
    return names, sorted(changed, key=_turn)


def _is_there(path: Path, content: bytes) -> bool:
    try:
        return path.stat().st_size == len(content) and path.read_bytes() == content
    except OSError:
        return False


def _stage(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def _turn(name: str) -> tuple[bool, bool, str]:
    """Sort pages after what they load, the first page last."""
    return name.endswith(".html"), name == _FIRST_PAGE, name


def _move(folder: Path, stage: Path, changed: Iterable[str], removed: Sequence[str]) -> None:
    """Move what changed into place, remove files and then the folders that are empty without them."""
    for name in changed:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        os.replace(stage / name, folder / name)
    for name in removed:
        (folder / name).unlink(missing_ok=True)
    parents = {parent.as_posix() for name in removed for parent in Path(name).parents if parent != Path()}
    for parent in sorted(parents, key=len, reverse=True):
        if (folder / parent).is_dir() and not any((folder / parent).iterdir()):
            (folder / parent).rmdir()


def _listed(folder: Path) -> list[str]:
    """Return the files that the last writing left; none where there is no list, or none that can be read."""
    try:
        listed = json.loads((folder / _LIST).read_text("utf-8"))
    except (OSError, ValueError):
        return []
    names = [name for name in listed if isinstance(name, str)] if isinstance(listed, list) else []
    return [name for name in names if (folder / name).resolve().is_relative_to(folder.resolve())]


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Hold signals that ask for an end until the files have been moved, which takes milliseconds."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are the main thread's: none reaches this one
        return
    waiting: list[int] = []
    handlers = {
        number: signal.signal(number, lambda received, _: waiting.append(received))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler or signal.SIG_DFL)
        for number in waiting:
            signal.raise_signal(number)


# From records to a site: the pages of one machine, those of the newest run or of the named record.
#
# Records of other machines have a line each, with the command that makes their pages in a folder of this site.

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
    """The site's first page, the record that it shows, and what was written."""

    page: Path
    record: Path
    written: Written


def build_site(
    runs: Path,
    folder: Path,
    catalogue: Catalogue | None = None,
    record: Path | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> Built:
    """Write the site of one machine's records below `runs` into `folder`: that of `record`, else of the newest run.

    `tell` gets a message for each step. A ResultsError where there is no record that can be read, or where the folder
    cannot be written; then, as after an interruption, the site that was there is as it was.
    """
    places = Places(runs)
    with no_collection():  # a report creates no reference cycles
        chosen = store.read(record) if record else None
        elsewhere = [chosen] if chosen and record and record.resolve().parent.parent != runs.resolve() else []
        tell("reading records")
        history = store.read_history(
            runs, lambda done, total: tell(f"reading records: {done} of {total} new"), elsewhere
        )
        run = next(newest_of_each(history, places, chosen, record))
        try:
            written = write_site(folder, _files(folder, run, history, places, catalogue, tell=tell))
        except OSError as error:
            raise ResultsError(f"cannot write {error.filename or folder}: {error.strerror}") from error
    return Built(folder / "index.html", run.path, written)


def _files(
    folder: Path,
    run: NewestRecord,
    history: History,
    places: Places,
    catalogue: Catalogue | None,
    *,
    tell: Callable[[str], None],
) -> Iterator[tuple[str, bytes | None]]:
    """Yield the name and the content of every file of the site, None for one that is there as it should be."""
    tell(f"pages of {run.machine}, {backend_name(run.record)}")
    context = next(contexts([run], history, places, catalogue))
    others = [facts for facts in newest_facts(history, places) if facts.owner != run.record.owner]
    lists = record_lists(run, others, history, places)
    yield from ((data.name, data.content) for listed in lists for data in listed.data)
    kernels = {kernel: [view.case.name for view in views] for kernel, views in context.kernels.items()}
    loads: dict[str, list[list[Any]]] = {kernel: [] for kernel in kernels}
    for kernel, data in series_data(context, kernels):
        loads[kernel].append([data.first, data.name])
        yield data.name, data.content
    loads[""] = [[data.first, data.name] for data in lists[0].runs]
    documentation = f"{FOLDER}/" if (folder / FOLDER / "index.html").is_file() else None
    machines = [_other_machine(facts, folder, places) for facts in others]
    made = list(pages.all_pages(context, loads, machines, [listed.plain() for listed in lists]))
    empty = {page.name for page in made if page.empty}
    menu = {name: title for name, title in MENU.items() if name not in empty}
    for page in made:
        yield from _rendered(page, context, menu, documentation)
        yield f"{page.name}.json", figures({"timed": timed_on(context.record.backend), **page.view})
    yield FILE, search_file(made)
    tell("what any two records are compared by")
    known = {run.path: run.record} | {places.runs / file: record for file, record in context.timed.items()}
    for listed in lists:
        yield from side_files(folder, listed.sides, known)
    yield "assets/style.css", files("prism_bench.report").joinpath("templates", "style.css").read_bytes()
    for asset in _ASSETS:
        yield f"assets/{asset}", files("prism_bench.report.site").joinpath("assets", asset).read_bytes()


def _other_machine(facts: Facts, folder: Path, places: Places) -> dict[str, Any]:
    """Return another machine as the first page names it: the command that makes its site, and the link to one made."""
    place = f"machines/{file_name('-'.join(filter(None, facts.owner)))}"
    link = f"{place}/index.html"
    arguments = ["prism-bench", "report", str(places.runs / facts.file), "--output", str(folder / place)]
    arguments += [] if places.runs == Path(STORAGE, "runs") else ["--runs", str(places.runs)]
    return {
        "machine": facts.machine,
        "backend": backend_name(facts),
        "created": facts.created,
        "link": link if (folder / link).is_file() else None,
        "command": shlex.join(arguments),
    }


def _rendered(
    page: Page, context: SiteContext, menu: Mapping[str, str], documentation: str | None
) -> Iterator[tuple[str, bytes]]:
    """Yield the page with the `menu`, and before it the script with what it does not show at first.

    `documentation` leads from the site's first folder to that of the documentation, if there is one.
    """
    template, later = environment().get_template(f"site/{page.template or page.name}.html"), Later()
    guide = _METHOD if documentation is None else f"{documentation}{GUIDES[page.name.split('/')[0]]}"
    text = later.shortened(
        template.render(
            page=page,
            menu=menu,
            documentation=documentation,
            guide=page.root + guide,
            root=page.root,
            assets=f"{page.root}assets/",
            context=context,
            record=context.record,
            reading=context.reading,
            view=page.view,
            later=later.put,
            **page.shown,
        )
    )
    script = later.script(page.name, page.drawn)
    if script:
        yield script
        tables = f'<script src="{page.root}assets/tables.js" defer></script>'
        text = text.replace(tables, f'<script src="{page.root}{script[0]}" defer></script>\n{tables}', 1)
    yield f"{page.name}.html", text.encode()
