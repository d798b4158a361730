"""Arguments of a launch: checked against what the kernel takes, and given their places in memory."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from prism_bench.emulator.buffers import DeviceBuffer
from prism_bench.emulator.library import Parameter, Region
from prism_bench.errors import SpecError

Signature = tuple[Parameter, ...]
_WORDS = {
    "f": "float",
    "i": "int",
    "u": "unsigned int",
    "b": "bool",
    "h": "half",
    "g": "bfloat16",
    "s": "struct",
    "v": "void",
}
# NumPy has no bfloat16: its bits travel as uint16, or as a 2-byte type of another package.
_ACCEPTED = {"f": "fc", "i": "iub", "u": "iub", "b": "iub", "h": "fu", "g": "uV"}


@dataclass(frozen=True)
class NotAnArgument:
    """Placeholder, in a child process, for an argument that no kernel takes."""

    description: str


def check(entry: str, signature: Signature, arguments: Sequence[object]) -> None:
    """Raise SpecError where the arguments do not fit the kernel, naming the argument and what it should be."""
    if len(arguments) != len(signature):
        raise SpecError(f"{entry}: {len(arguments)} argument(s) passed, kernel takes {len(signature)}")
    for index, (parameter, argument) in enumerate(zip(signature, arguments, strict=True)):
        _check(entry, index, parameter, argument)


class Arguments:
    """The arguments of one launch: `addresses` for the launch table, `regions` for the checks."""

    def __init__(
        self,
        entry: str,
        signature: Signature,
        arguments: Sequence[object],
        make_buffer: Callable[[np.ndarray], DeviceBuffer] = DeviceBuffer,
    ) -> None:
        check(entry, signature, arguments)
        self.addresses: list[int] = []
        self.regions: list[Region] = []
        self._kept: list[np.ndarray] = []
        self._make_buffer = make_buffer
        self._buffers: dict[int, DeviceBuffer] = {}
        self._results: list[tuple[DeviceBuffer, np.ndarray]] = []
        for index, (parameter, argument) in enumerate(zip(signature, arguments, strict=True)):
            if isinstance(argument, np.ndarray | DeviceBuffer):
                self._place_buffer(index, parameter, argument)
            else:
                self._keep(np.array(argument))

    def _place_buffer(self, index: int, parameter: Parameter, argument: np.ndarray | DeviceBuffer) -> None:
        # One array passed twice is one buffer, as it is on the device.
        buffer = self._buffers.get(id(argument))
        if buffer is None:
            buffer = argument if isinstance(argument, DeviceBuffer) else self._make_buffer(argument)
            self._buffers[id(argument)] = buffer
            self.regions.append(Region(buffer.address, buffer.bytes, index, 0))
        if not isinstance(argument, DeviceBuffer) and not parameter.is_const:
            self._results.append((buffer, argument))
        self._keep(np.array(buffer.address, np.uint64))

    def _keep(self, value: np.ndarray) -> None:
        self._kept.append(value)
        self.addresses.append(value.ctypes.data)

    def copy_back(self) -> None:
        """Copy what the kernel wrote into the caller's arrays; arrays passed as const stay untouched."""
        for buffer, array in self._results:
            array[...] = buffer.array

    def overruns(self) -> Iterator[tuple[int, int]]:
        """Yield the arguments outside whose buffers something was written, and how far outside."""
        buffers = {buffer.address: buffer for buffer in self._buffers.values()}
        for region in self.regions:
            distance = buffers[region.begin].overrun()
            if distance:
                yield region.argument, distance


def _check(entry: str, index: int, parameter: Parameter, argument: object) -> None:
    fits = _fits_pointer if parameter.is_pointer else _fits_scalar
    if not fits(parameter, argument):
        raise SpecError(f"{entry}: argument {index}: {describe(argument)} passed, kernel takes {_taken(parameter)}")


def _fits_pointer(parameter: Parameter, argument: object) -> bool:
    if not isinstance(argument, np.ndarray | DeviceBuffer):
        return False
    return _fits_type(parameter, argument.dtype)


def _fits_scalar(parameter: Parameter, argument: object) -> bool:
    if not isinstance(argument, np.generic):
        return False
    if parameter.kind == b"s":
        return argument.nbytes == parameter.bytes
    return argument.dtype.kind != "c" and _fits_type(parameter, argument.dtype)


def _fits_type(parameter: Parameter, dtype: np.dtype) -> bool:
    kind = parameter.kind.decode()
    if kind in "vs":
        return True
    size = dtype.itemsize // 2 if dtype.kind == "c" else dtype.itemsize
    return dtype.kind in _ACCEPTED[kind] and size == parameter.bytes


def describe(argument: object) -> str:
    """Return what was passed, in the words of an error message."""
    if isinstance(argument, NotAnArgument):
        return argument.description
    if isinstance(argument, np.ndarray | DeviceBuffer):
        return f"array of {argument.dtype}"
    if isinstance(argument, np.generic):
        return str(argument.dtype)
    return f"Python {type(argument).__name__} (say its type: np.int32(...), np.float32(...))"


def _taken(parameter: Parameter) -> str:
    kind = parameter.kind.decode()
    word = f"{parameter.bytes}-byte {_WORDS[kind]}" if kind != "v" else "void"
    if not parameter.is_pointer:
        return word
    return f"pointer to {'const ' if parameter.is_const else ''}{word}"
