"""Words of a verdict without the folder that a submission was moved to for its judgement."""

from pathlib import Path


def plain_words(error: Exception, source: Path) -> str:
    """Return an error's words; the submission's files and headers are named from its own folder on.

    `source` is its file where it is judged, `FOLDER/judged/NAME`.
    """
    own, folder = source.parent, source.parent.parent
    words = str(error).replace(f"{own}/", "").replace(str(own), "the submission's folder")
    return words.replace(f"{folder}/", "").replace(str(folder), "the judge's folder")
