"""Transcripts: commands with what they printed, which are tests and expectations alike.

A line `$ COMMAND` runs a command on committed data, `~ COMMAND` one whose output holds durations and versions of this
machine, which are replaced. Below it are standard output (`| `), standard error (`! `) and the exit code (`= `).
`# ` begins a remark. `prism-bench` and `python` are those of the product; these are no programs:

    files FOLDER     the files below it, and a digest of each
    names FOLDER     their names
    cat FILE         its text

`| digest` after a command gives counts and digests of the JSON or text that it printed, `> FILE` writes that to a file.
"""

import json
import shlex
from collections.abc import Iterator
from pathlib import Path

from tests.contract.commands import Outcome, Product
from tests.contract.normalise import Normaliser, digest, digest_of_file, digest_of_text, without_hashes

MARKS = ("$ ", "~ ")
RESULTS = ("| ", "! ", "= ", "|", "!")


def script(text: str) -> list[str]:
    """Return the commands and remarks of a transcript, without results."""
    return [line for line in text.splitlines() if not line.startswith(RESULTS)]


def replay(lines: list[str], folder: Path, product: Product, normaliser: Normaliser) -> str:
    """Run the commands one after the other in the folder and return the transcript."""
    return "\n".join(_replayed(lines, folder, product, normaliser)) + "\n"


def _replayed(lines, folder, product, normaliser) -> Iterator[str]:
    for line in lines:
        yield line
        if line.startswith(MARKS):
            yield from _results(line[2:], folder, product, normaliser, measured=line.startswith("~"))


def _results(line, folder, product, normaliser, *, measured) -> Iterator[str]:
    command, _, target = line.partition(" > ")
    command, _, summary = command.partition(" | ")
    words = shlex.split(command)
    variables = {}
    while "=" in words[0]:
        name, _, variables[name] = words.pop(0).partition("=")
        variables[name] = variables[name].replace("FOLDER", str(folder))
    if words[0] in ("files", "names"):
        root = folder / words[1]
        paths = [path for path in root.rglob("*") if path.is_file() and ".git" not in path.relative_to(root).parts]
        names = [normaliser.text(without_hashes(str(path.relative_to(root))), measured=measured) for path in paths]
        if words[0] == "files":
            digests = [digest_of_file(path, normaliser, measured=measured) for path in paths]
            names = [f"{name}: {content}" for name, content in zip(names, digests, strict=True)]
        yield from (f"| {name}" for name in sorted(names))
        return
    if words[0] == "cat":
        outcome = Outcome(0, (folder / words[1]).read_text(), "")
    else:
        outcome = product.run(folder, words, **variables)
    out = outcome.out
    if target:
        (folder / target.strip()).write_text(out)
        out = ""
    elif summary == "digest":
        out = _summary(out, normaliser, measured)
    else:
        out = normaliser.text(out, measured=measured)
    yield from (f"| {text}".rstrip() for text in out.splitlines())
    yield from (f"! {text}".rstrip() for text in normaliser.text(outcome.err, measured=measured).splitlines())
    if words[0] != "cat":
        yield f"= {outcome.code}"


def _summary(out, normaliser, measured):
    try:
        return digest(normaliser.values(json.loads(out), measured=measured))
    except ValueError:
        return digest_of_text(normaliser.text(out, measured=measured))
