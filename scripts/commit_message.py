#!/usr/bin/env python3
"""Check a commit message: an imperative subject of at most 72 characters, in standard words.

pre-commit runs this as a commit-msg hook with the file of the message as its only argument.
"""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from scripts.plain_words import private_words  # noqa: E402

LONGEST = 72
# Made by git: "Merge branch ...", 'Revert "..."', "fixup! ...".
_OF_GIT = re.compile(r'Merge |Revert "|(fixup|squash|amend)! ')
_NOT_IMPERATIVE = re.compile(
    r"(a|an|the|this|that|some|all|no|not|more|now|when|what|how|why|we|i|it)\b|\w+(ed|ing)\b", re.IGNORECASE
)
_IMPERATIVE_ALL_THE_SAME = {"embed", "feed", "need", "seed", "speed", "bring", "ping", "ring", "string"}


def faults(message: str) -> list[str]:
    """Return what is wrong with a commit message, a sentence each; nothing for a good one."""
    lines = [line for line in message.splitlines() if not line.startswith("#")]
    subject = lines[0] if lines else ""
    if _OF_GIT.match(subject):
        return []
    found = [*_faults_of_subject(subject)]
    if len(lines) > 1 and lines[1]:
        found.append("The line after the subject is not empty.")
    found += [f"'{word}' is a private word: write {standard}." for word, standard in private_words("\n".join(lines))]
    return found


def _faults_of_subject(subject: str) -> list[str]:
    first = subject.split(" ")[0]
    checks = {
        "The subject is empty.": not subject.strip(),
        f"The subject has {len(subject)} characters; at most {LONGEST} are allowed.": len(subject) > LONGEST,
        "The subject ends with a period.": subject.endswith("."),
        "The subject starts with a lower-case letter.": subject[:1].islower(),
        f"The subject starts with '{first}'; start with an imperative verb, such as 'Fix'.": _is_no_imperative(first),
    }
    return [sentence for sentence, is_wrong in checks.items() if is_wrong]


def _is_no_imperative(word: str) -> bool:
    """Return whether the word is surely no imperative: an article, "Added", "Adding" or "Adds"."""
    word = word.lower()
    third_person = word.endswith("s") and not word.endswith(("ss", "us", "is", "as"))
    return word not in _IMPERATIVE_ALL_THE_SAME and (third_person or bool(_NOT_IMPERATIVE.fullmatch(word)))


def main(words: list[str]) -> int:
    """Print what is wrong with the message in the named file, and return the exit code."""
    found = faults(Path(words[0]).read_text())
    for sentence in found:
        print(f"commit message: {sentence}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
