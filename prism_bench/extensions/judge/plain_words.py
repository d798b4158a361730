"""Words of a verdict: without the folder that a submission was moved to, as long as one reads, safe for a terminal."""

from pathlib import Path

LONGEST = 4000  # characters of a compiler's or an emulator's words: how many there are is the sender's choice


def plain_words(error: Exception, source: Path) -> str:
    """Return an error's words; the submission's files and headers are named from its own folder on.

    `source` is its file where it is judged, `FOLDER/judged/NAME`.
    """
    own, folder = source.parent, source.parent.parent
    words = str(error).replace(f"{own}/", "").replace(str(own), "the submission's folder")
    words = words.replace(f"{folder}/", "").replace(str(folder), "the judge's folder")
    more = len(words) - LONGEST
    return f"{words[:LONGEST]}... and {more:,} more characters" if more > 0 else words


def readable(words: str) -> str:
    """Return a name that may be a file's as one line of text: bytes that are none, and line breaks, by their escapes.

    Other names have other texts, unlike those of `printable`: nobody's name is shown as another's, nor as a line.
    """
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in words)


def printable(words: str) -> str:
    """Return words that a stranger may have written without what a terminal obeys, such as escape sequences."""
    return "".join(one if one.isprintable() or one == "\n" else " " for one in words)
