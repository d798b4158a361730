"""A site to look at: records of a few nights as files, the site about them, and a page read as a browser would."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

from prism_bench.record import store
from prism_bench.report.site import build_site
from tests.report.site.unpacked import given_values

VOID = {"meta", "link", "input", "br", "wbr", "hr", "img", "path", "use"}
NIGHTS = 14


class Page(HTMLParser):
    """Checks that elements nest and ids are unique; collects text, headings, and what is linked or loaded."""

    def __init__(self, text):
        super().__init__()
        self.raw, self.open, self.ids, self.linked, self.words, self.headings = text, [], [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []
        assert len(self.ids) == len(set(self.ids))

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.ids += [found["id"]] if "id" in found else []
        self.linked += [found[name] for name in ("src", "href", "xlink:href") if name in found]
        self.headings += [int(tag[1])] if re.fullmatch(r"h[1-6]", tag) else []
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("script", "style"):
            self.words.append(data)

    @property
    def text(self):
        return re.sub(r"\s+", " ", " ".join(self.words))


def site_of(folder: Path, *records, catalogue=None) -> Path:
    """The site about these records, below `folder`; the last one is the newest."""
    for record in records:
        store.save(record, store.path_for(record, folder / "runs"))
    build_site(folder / "runs", folder / "site", catalogue)
    return folder / "site"


def read(site: Path, name: str) -> Page:
    """The page called `name`, with what its script makes when somebody looks."""
    text = (site / f"{name}.html").read_text("utf-8")
    scripts = re.findall(rf'src="[./]*(data/pages/{name}-\w+\.js)"', text)
    return Page(_made(text, (site / scripts[0]).read_bytes()) if scripts else text)


def _made(text: str, script: bytes) -> str:
    """The page with rows and blocks in their places, those inside of blocks too."""
    made = given_values(script)["contents"]
    text = re.sub(r"<noscript>.*?</noscript>", "", text)
    table = re.compile(r'(<table[^>]*data-rest="(\d+)".*?)(</tbody>)', re.DOTALL)
    text = table.sub(lambda found: found[1] + made[int(found[2])] + found[3], text)
    place = re.compile(r'<template data-later="(\d+)"></template>(?:<noscript>.*?</noscript>)?')
    while place.search(text):
        text = place.sub(lambda found: made[int(found[1])], text)
    return text


def nights(record, count=NIGHTS, *, slower=None, since=10, by=1.2):
    """The record on so many days; from the night `since` on, the kernel `slower` takes longer."""
    return [_night(record, night, slower if night >= since else None, by) for night in range(count)]


def _night(record, night, slower, by):
    created = f"2026-10-{night + 1:02}T22:14:05"
    cases = tuple(moved(case, by) if case.kernel == slower else case for case in record.cases)
    return replace(record, created=created, cases=cases, commit=f"{night:040x}")


def moved(case, by):
    """The case with other machine code, in which its kernel takes longer."""
    times = tuple(replace(one, processes=tuple(tuple(by * s for s in p) for p in one.processes))
                  if one.subject == "kernel" and one.metric == "cold_time" else one
                  for one in case.measurements)  # fmt: skip
    return replace(case, measurements=times, code={**case.code, "sass": "another"})
