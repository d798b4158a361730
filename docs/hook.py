"""Hooks of MkDocs: add the generated pages, the pictures of reports, and what lets the search work from disk."""

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from docs.generated import navigation, pages

_FAR, _NEAR = "https://unpkg.com/iframe-worker/shim", "assets/worker.js"
_REPORTS = Path(__file__).resolve().parent.parent / "reports"
PICTURES = ("asv-pages.png", "fusion.png", "monitor.svg")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Append the generated pages to the menu."""
    config.nav = [*(config.nav or []), *navigation()]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages, and the pictures that pages show."""
    for path, text in pages().items():
        files.append(File.generated(config, path, content=text))
    for name in PICTURES:
        files.append(File.generated(config, f"pictures/{name}", abs_src_path=str(_REPORTS / name)))
    return files


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Load the script of the search from the site; the theme would fetch it from a network."""
    return output.replace(_FAR, "../" * page.url.count("/") + _NEAR)


def on_post_template(output_content: str, template_name: str, config: MkDocsConfig) -> str:
    """Load the script of the search from the site on the page for missing pages."""
    return output_content.replace(_FAR, _NEAR)
