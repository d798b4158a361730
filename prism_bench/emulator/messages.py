"""Messages between a process that launches kernels and the child process that runs them.

Arrays travel behind the message, in the same frame. Nothing in a message is code: the child runs kernels as native
code, so its answers are checked like anything else from outside.
"""

from collections.abc import Sequence

import msgspec
import numpy as np

from prism_bench.emulator.arguments import NotAnArgument, describe
from prism_bench.emulator.buffers import DeviceBuffer
from prism_bench.emulator.report import LaunchReport
from prism_bench.emulator.request import LaunchRequest
from prism_bench.io.workers.frames import can_be_sent
from prism_bench.io.workers.refusal import Refusal


class ArgumentPlace(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where one argument of a launch is: the frame's array of that index, as it is or as a scalar.

    An argument that no kernel takes has no array, only the description that an error message needs.
    """

    array: int | None
    is_scalar: bool = False
    description: str = ""


class LoadQuestion(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Load the library, with its global variables as they were at first."""

    path: str


class LaunchQuestion(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Launch a kernel of the library; buffers and scalars are the frame's arrays."""

    path: str
    request: LaunchRequest
    arguments: tuple[ArgumentPlace, ...]


class EntriesQuestion(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """List the kernels of the library."""

    path: str


class SetSymbolQuestion(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Set a global variable to the bytes of the frame's array."""

    path: str
    name: str


class GetSymbolQuestion(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Return the content of a global variable."""

    path: str
    name: str


class DoneAnswer(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """The library was loaded or the variable set."""


class LaunchAnswer(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """The report of a launch; the frame's arrays are those of the question at the indexes `returned`."""

    report: LaunchReport
    returned: tuple[int, ...]


class EntriesAnswer(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """The kernels of the library."""

    names: tuple[str, ...]


class SymbolAnswer(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """The frame's array holds the content of the variable."""


Question = LoadQuestion | LaunchQuestion | EntriesQuestion | SetSymbolQuestion | GetSymbolQuestion
Answer = DoneAnswer | LaunchAnswer | EntriesAnswer | SymbolAnswer | Refusal
QUESTIONS: msgspec.json.Decoder[Question] = msgspec.json.Decoder(Question)
ANSWERS: msgspec.json.Decoder[Answer] = msgspec.json.Decoder(Answer)

Argument = np.ndarray | DeviceBuffer | np.generic | NotAnArgument


def pack_arguments(arguments: Sequence[object]) -> tuple[tuple[ArgumentPlace, ...], list[np.ndarray]]:
    """Return where each argument is, and the arrays to send: an array that is passed twice is sent once."""
    arrays: list[np.ndarray] = []
    indexes: dict[int, int] = {}
    places = []
    for argument in arguments:
        content = content_of(argument)
        if content is None:
            places.append(ArgumentPlace(None, description=describe(argument)))
            continue
        if id(argument) not in indexes:
            indexes[id(argument)] = len(arrays)
            arrays.append(content)
        places.append(ArgumentPlace(indexes[id(argument)], isinstance(argument, np.generic)))
    return tuple(places), arrays


def content_of(argument: object) -> np.ndarray | None:
    """Return the array of a buffer or scalar, without a copy where it has one; None where it cannot be sent."""
    if isinstance(argument, DeviceBuffer):
        return argument.array
    if isinstance(argument, np.ndarray | np.generic) and can_be_sent(argument.dtype):
        return np.asarray(argument)
    return None


def unpack_arguments(places: Sequence[ArgumentPlace], arrays: Sequence[np.ndarray]) -> list[Argument]:
    """Return the arguments of a launch from the arrays of its frame."""
    return [_unpacked(place, arrays) for place in places]


def _unpacked(place: ArgumentPlace, arrays: Sequence[np.ndarray]) -> Argument:
    if place.array is None:
        return NotAnArgument(place.description)
    array = arrays[place.array]
    return array[()] if place.is_scalar else array
