"""MkDocs asks here for the pages that the program itself writes."""

from mkdocs.structure.files import File

from docs.generated import navigation, pages


def on_config(config):
    config.nav += navigation()
    return config


def on_files(files, config):
    for path, text in pages().items():
        files.append(File.generated(config, path, content=text))
    return files
