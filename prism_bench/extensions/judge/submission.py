"""A stranger's kernel: device code and a card of how it is launched, and nothing that runs on the host.

A submission is a TOML file, the card, with a source or a cubin next to it:

    source = "softmax.cu"            # or "softmax.triton.py", or cubin = "softmax.cubin"

    [[launch]]
    entry = "softmax<256>"           # of a cubin its symbol; "softmax<{4 * warps}>" has an expression in it
    grid = "ceil_div(rows, 4)"       # expressions over the axes of the case and `sm_count`; a list for more dimensions
    block = 256
    shared = "4 * cols"
    arguments = ["x", "y", "cols"]   # the task's arguments, own sizes and own scratch, in order
    when = "cols > 32"               # left out where this is 0
    maps = [{ argument = "x", lines = 64 }]  # arguments that are passed as tensor maps: box = [...], tf32 = true

    [sizes.parts]                    # numbers that the kernel takes
    value = "ceil_div(cols, 8192)"
    dtype = "int32"

    [scratch.partial]                # working memory, zero at first
    shape = ["rows", "parts"]
    dtype = "float32"
"""

import errno
import hashlib
import os
import re
from collections.abc import Mapping
from pathlib import Path

import msgspec

from prism_bench.compilation.languages.language import language_in, names
from prism_bench.errors import SpecError, UsageError
from prism_bench.extensions.judge.expressions import CardExpression
from prism_bench.extensions.judge.plain_words import printable, readable
from prism_bench.spec.kernel import CUDA
from prism_bench.units import count_text

LARGEST_CARD, LARGEST_SOURCE = 1 << 20, 4 << 20  # bytes
LARGEST_CUBIN = 64 << 20
MOST_LAUNCHES, MOST_OWN = 1024, 256  # `MOST_OWN` sizes, and as many scratch buffers
LONGEST_ENTRY = 4000  # characters
MOST_DOTS = 200  # of a line: Python's reader takes hours for a key of very many parts
LONGEST_WORDS = 1000  # characters of what is wrong with a card, in which its own words may be
IN_ENTRY = re.compile(r"\{([^{}]*)\}")  # an expression in the template arguments of an entry
Extents = int | str | tuple[int | str, ...]


class CardMap(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An array that a launch passes as a tensor map, by value (`prism_bench.spec.kernel.TensorMap`)."""

    argument: str
    lines: int | str = 64
    box: tuple[int | str, ...] = ()
    tf32: bool = False


class CardLaunch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One launch, or with `zero` a buffer that is filled with zeros instead. `constants` are for Python's languages."""

    entry: str = ""
    grid: Extents = 1
    block: Extents = 0
    shared: int | str = 0
    arguments: tuple[str, ...] = ()
    when: int | str = 1
    zero: str = ""
    cooperative: bool = False
    constants: Mapping[str, bool | int | float | str] = {}
    maps: tuple[CardMap, ...] = ()

    def expressions(self) -> dict[str, int | str]:
        """Return the texts of its expressions by their place."""
        extents = {"grid": extents_of(self.grid), "block": extents_of(self.block)}
        extents |= {f"map of {one.argument}": (one.lines, *one.box) for one in self.maps}
        texts = {f"{what}[{index}]": one for what, among in extents.items() for index, one in enumerate(among)}
        texts |= {"shared": self.shared, "when": self.when}
        return texts | {f"entry {{{text}}}": text for text in IN_ENTRY.findall(self.entry)}


class CardSize(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A whole number that the kernel takes in addition to the task's arguments."""

    value: int | str
    dtype: str = "int32"


class CardScratch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Working memory of the kernel: its extents and the type of its elements."""

    shape: tuple[int | str, ...]
    dtype: str = "float32"


class SubmissionCard(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a submission's TOML file holds."""

    launch: tuple[CardLaunch, ...]
    source: str = ""
    cubin: str = ""
    options: tuple[str, ...] = ()
    sizes: Mapping[str, CardSize] = {}
    scratch: Mapping[str, CardScratch] = {}
    author: str = ""

    def expressions(self) -> dict[str, CardExpression]:
        """Return every expression of the card by its place; a SpecError where one has more than it may."""
        texts: dict[str, int | str] = {f"sizes.{name}": size.value for name, size in self.sizes.items()}
        for name, scratch in self.scratch.items():
            texts |= {f"scratch.{name}[{index}]": one for index, one in enumerate(scratch.shape)}
        for number, launch in enumerate(self.launch, 1):
            texts |= {f"launch {number}: {place}": text for place, text in launch.expressions().items()}
        found: dict[str, CardExpression] = {}
        for place, text in texts.items():
            try:
                found[place] = CardExpression(str(text))
            except SpecError as error:
                raise SpecError(f"{place}: {error}") from None
        return found


class Submission(msgspec.Struct, frozen=True):
    """A card and its code. `file` is the source or the cubin; `name` is the card's file name without its suffix."""

    name: str
    card: SubmissionCard
    file: Path
    is_cubin: bool
    content: bytes

    @property
    def language(self) -> str:
        """The language of the source, by its name; machine code is taken as CUDA C++ is."""
        return language_in(self.file) or CUDA


def extents_of(extents: Extents) -> tuple[int | str, ...]:
    """Return one to three extents as a tuple."""
    return extents if isinstance(extents, tuple) else (extents,)


def read_submission(path: Path) -> Submission:
    """Return the submission of a card, or of a folder with one card.

    UsageError where it cannot be read, SpecError for a card with something that none may have.
    """
    card_file = _card_in(path)
    try:
        if card_file.exists() and not card_file.is_file():
            raise SpecError("it is no ordinary file")
        if card_file.stat().st_size > LARGEST_CARD:
            raise SpecError(f"it has {card_file.stat().st_size:,} bytes; at most {LARGEST_CARD:,} are taken")
        if not _is_at_home(card_file, card_file):
            raise SpecError("it is a link to a file in another folder")
        text = card_file.read_bytes()
        if any(line.count(b".") > MOST_DOTS for line in text.splitlines()):
            raise SpecError(f"a line has more than {MOST_DOTS} dots, more than any card needs")
    except OSError as error:
        raise UsageError(f"{card_file}: {error.strerror}") from None
    except SpecError as error:
        raise SpecError(f"{card_file}: {error}") from None
    try:
        return _with_code(card_file, msgspec.toml.decode(text, type=SubmissionCard))
    except RecursionError:
        raise SpecError(f"{card_file}: lists within lists, more than any card has") from None
    except (SpecError, msgspec.DecodeError, ValueError, OSError) as error:  # of numbers and names that none can have
        raise SpecError(f"{card_file}: {str(error)[:LONGEST_WORDS]}") from None


def identity_of(submission: Submission) -> tuple[str, str]:
    """Return the SHA-256 of the code and of the card."""
    contents = submission.content, msgspec.json.encode(submission.card)
    code, card = (hashlib.sha256(content).hexdigest() for content in contents)
    return code, card


def _card_in(path: Path) -> Path:
    if not path.is_dir():
        if path.is_file() and path.suffix != ".toml":
            raise UsageError(
                f"{path}: a submission is given by its card, a TOML file next to the code, or by the folder"
            )
        return path
    cards = sorted(path.glob("*.toml"))
    if len(cards) != 1:
        names = printable(", ".join(card.name for card in cards)) or "none"
        raise UsageError(f"{path}: a submission has one card, a TOML file; here are {names}")
    return cards[0]


def _with_code(card_file: Path, card: SubmissionCard) -> Submission:
    if bool(card.source) == bool(card.cubin):
        raise SpecError("it names a source or a cubin, one of the two")
    if not 1 <= len(card.launch) <= MOST_LAUNCHES:
        raise SpecError(f"it has {count_text(len(card.launch), 'launch', 'launches')}; a card has 1 to {MOST_LAUNCHES}")
    _check_launches(card)
    card.expressions()
    file = card_file.parent / (card.source or card.cubin)
    if not _is_at_home(file, card_file):
        raise SpecError(f"'{card.source or card.cubin}' is not in the card's folder")
    if card.source and file.suffix != ".cu" and language_in(file) is None:
        known = ", ".join(f".{one}.py" for one in names())
        raise SpecError(f"{file.name} is no CUDA C++ (.cu) by its name, nor {known}: host programs are not taken")
    most = LARGEST_CUBIN if card.cubin else LARGEST_SOURCE
    if not file.is_file():
        raise SpecError(f"there is no file {file.name}")
    if file.stat().st_size > most:
        raise SpecError(f"{file.name} has {file.stat().st_size:,} bytes; at most {most:,} are taken")
    return Submission(readable(card_file.stem), card, file, bool(card.cubin), file.read_bytes())


def _is_at_home(file: Path, card_file: Path) -> bool:
    """Return whether a file is in the card's folder once links are followed; OSError for links in a circle."""
    try:
        return file.resolve().is_relative_to(card_file.parent.resolve())
    except RuntimeError as error:  # of Python before 3.13
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(file)) from error


def _check_launches(card: SubmissionCard) -> None:
    for what, own in (("sizes", card.sizes), ("scratch buffers", card.scratch)):
        if len(own) > MOST_OWN:
            raise SpecError(f"it has {len(own):,} {what}; a card has at most {MOST_OWN}")
    for number, launch in enumerate(card.launch, 1):
        if len(launch.entry) > LONGEST_ENTRY:
            raise SpecError(f"launch {number}: an entry of {len(launch.entry):,} characters; at most {LONGEST_ENTRY}")
        if bool(launch.entry) == bool(launch.zero):
            raise SpecError(f"launch {number}: it has an entry, or a buffer to zero, one of the two")
        for what, extents in (("grid", launch.grid), ("block", launch.block)):
            if not 1 <= len(extents_of(extents)) <= 3:
                raise SpecError(f"launch {number}: {what} has one to three extents")
