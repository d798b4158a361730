"""MkDocs asks here for the pages that the program itself writes, and for what makes the search work from disk."""

from mkdocs.structure.files import File

from docs.generated import navigation, pages

_FAR, _NEAR = "https://unpkg.com/iframe-worker/shim", "assets/worker.js"


def on_config(config):
    config.nav += navigation()
    return config


def on_files(files, config):
    for path, text in pages().items():
        files.append(File.generated(config, path, content=text))
    return files


def on_post_page(output, page, config):
    """The theme would fetch from a network what lets a page from disk search."""
    return output.replace(_FAR, "../" * page.url.count("/") + _NEAR)


def on_post_template(output_content, template_name, config):
    """The same for the page that stands where there is none."""
    return output_content.replace(_FAR, _NEAR)
