"""The documentation is built without a network, and no link in it is dead."""

import re
import subprocess
import sys
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

import pytest

from tests.docs.blocks import ROOT

pytest.importorskip("mkdocs", reason="needs the extra 'docs'")


class Page(HTMLParser):
    """The links of a page, and the places in it that links lead to."""

    def __init__(self, path):
        super().__init__()
        self.links, self.loaded, self.places = [], [], set()
        self.feed(path.read_text())

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.places |= {attrs[key] for key in ("id", "name") if attrs.get(key)}
        if tag == "a" and attrs.get("href"):
            self.links.append(attrs["href"])
        if tag in ("script", "img", "link") and attrs.get("rel") != "canonical":
            self.loaded += [attrs[key] for key in ("src", "href") if attrs.get(key)]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The pages by their files."""
    folder = tmp_path_factory.mktemp("docs")
    words = ["-m", "mkdocs", "--quiet", "build", "--config-file", "docs/mkdocs.yml", "--site-dir", str(folder)]
    done = subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True)
    assert 0 == done.returncode, done.stderr
    return {path: Page(path) for path in folder.rglob("*.html")}


def test_no_link_is_dead(site):
    dead = []
    for path, page in site.items():
        for link in page.links + page.loaded:
            parts = urlsplit(link)
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if parts.scheme or path.name == "404.html":
                continue
            place = unquote(parts.fragment)
            if not target.exists() or (place and place not in ("__skip",) and place not in site[target].places):
                dead.append(f"{path.name}: {link}")
    assert [] == dead


def test_nothing_is_loaded_from_a_network(site):
    far = {link for page in site.values() for link in page.loaded if re.match(r"(https?:)?//", link)}
    assert set() == far


def test_the_pages_that_the_program_writes_are_there(site):
    names = {path.name for path in site}
    assert {"tutorial.html", "commands.html", "troubleshooting.html", "python.html", "names.html"} <= names
