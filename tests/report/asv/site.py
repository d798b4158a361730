"""A site as asv leaves it before our publisher runs."""

import shutil
from importlib.resources import as_file, files

import asv


def copied(folder):
    """asv's own page and scripts, in `folder`."""
    with as_file(files(asv) / "www") as www:
        shutil.copytree(www, folder)
    return folder


def page():
    """asv's page as text."""
    return (files(asv) / "www" / "index.html").read_text("utf-8")
