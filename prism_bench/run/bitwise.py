"""Bits of outputs: whether a kernel gives the same ones again, in another order, launch or batch, and under load.

An entry of a verification has the `check`, what it compared with (`against`), how many `launches`, and whether the bits
are the `same`; None where nothing could be compared (`left_out`). Where they differ it has the first element, how far
apart the values are in units in the last place (`ulps`), how many elements differ, and the likely `cause`, as the
launches and the machine code show it.
"""

import hashlib
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from io import BytesIO
from math import prod
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import numpy as np

from prism_bench.backends import Backend, Runnable
from prism_bench.backends.base import Fork
from prism_bench.compilation.languages import build, build_request
from prism_bench.compilation.listing import listing_of, opcode_of
from prism_bench.errors import PrismBenchError, SpecError, described
from prism_bench.io.files import write_atomically
from prism_bench.spec.case import Case, Device
from prism_bench.spec.dtypes import PAIRS, precision_of, values_of
from prism_bench.spec.inputs import InputArray
from prism_bench.spec.kernel import Launch
from prism_bench.spec.peer import is_compiled
from prism_bench.spec.workload import Workload, written
from prism_bench.units import bytes_text, count_text

Entry = dict[str, Any]  # what a record keeps of one check
Check = Literal["repeated", "order", "configurations", "batch", "contention", "boards"]
# A launch that was compared: its name, and the difference (empty for the same bits) or why it was left out.
Compared = Iterator[tuple[str, Entry | str]]

REPEATS, _DEVICE_REPEATS = 4, 16  # launches after the first one; on a device their order is chance
_MOST_CONFIGURATIONS = 32  # of a tuning space; a larger one is sampled evenly
_FEW_ELEMENTS, _SETS = 1024, 4  # so few outputs often have the same bits by chance: these sets of inputs are compared
_MOST_BYTES = 1 << 30  # of a batch, which the host lays out
_SINGLES, _FEW = 4, 17  # rows that are batched alone, in turn; a batch that fills no tile
OTHER_VALUES = "other values in the other"  # begins the name of a batch of the same size
_KEPT_BYTES = 64 << 20  # of the outputs of a case that are compared with another board's
_LOAD_ELEMENTS, _LOAD_PASSES = 1 << 24, 16  # of the other stream: floats, and passes over them during one launch


# Differences of bits.


def difference(case: Case, before: Mapping[str, Any], after: Mapping[str, Any], xp: ModuleType) -> Entry:
    """Return the first element whose bits differ between two launches, by output; an empty entry if none does."""
    for name, was in before.items():
        now, dtype = after[name], case.spec.array(name).dtype
        if was.shape != now.shape:
            raise PrismBenchError(f"{name} has the shape {tuple(now.shape)}, not {tuple(was.shape)}")
        bits = [_words(array, xp) for array in (was, now)]
        unequal = bits[0] != bits[1]
        if not was.size or not bool(unequal.any()):
            continue
        at = int(xp.argmax(unequal))
        parts = unequal.size // was.size  # of a complex number, two
        pair = [np.asarray([int(word[at])], f"u{word.dtype.itemsize}") for word in bits]
        values = [_value(word, dtype, was.dtype) for word in pair]
        is_number = was.dtype.kind in "fc" or precision_of(dtype) is not None
        return {
            "output": name,
            "place": [int(index) for index in np.unravel_index(at // parts, was.shape or (1,))],
            "expected": values[0],
            "actual": values[1],
            "ulps": _ulps(*pair) if is_number and np.isfinite(values).all() else None,
            "differing": int(unequal.reshape(was.size, parts).any(axis=1).sum()),
            "of": int(was.size),
        }
    return {}


def _words(array: Any, xp: ModuleType) -> Any:
    size = array.dtype.itemsize // (2 if array.dtype.kind == "c" else 1)
    return xp.ascontiguousarray(array).reshape(-1).view(f"u{size}")


def _value(word: np.ndarray, dtype: str, storage: np.dtype[Any]) -> float:
    if storage.kind == "c":
        return float(word.view(f"f{word.itemsize}")[0])
    return float(word[0] if dtype in PAIRS else values_of(word.view(storage), dtype)[0])


def _ulps(before: np.ndarray, after: np.ndarray) -> int:
    """Return how many numbers of their type lie from one to the other: their bits, ordered as the numbers are."""
    sign = 1 << (8 * before.itemsize - 1)
    ordered = [bits if bits < sign else sign - bits for bits in (int(before[0]), int(after[0]))]
    return abs(ordered[0] - ordered[1])


def difference_text(entry: Mapping[str, Any]) -> str:
    """Return the difference of an entry in words, without its cause."""
    actual, expected = float(entry["actual"]), float(entry["expected"])  # a record has texts for NaN and infinities
    place = ", ".join(str(index) for index in entry["place"])
    verb = "differs" if entry["differing"] == 1 else "differ"
    apart = "" if entry["ulps"] is None else f", {entry['ulps']:,} ulp apart"
    return (
        f"{entry['output']}[{place}] is {actual:.9g} with {entry['against']}, else {expected:.9g}"
        f"{apart}; {entry['differing']} of {count_text(entry['of'], 'element')} {verb}"
    )


# Likely causes.

_ATOMICS = ("ATOM", "ATOMG", "ATOMS", "RED", "REDG", "REDAS", "SUATOM", "SURED", "UBLKRED", "UTMAREDG")
_FLOAT = re.compile(r"B?F(16|32|64)\w*")
_UNUSED = re.compile(r"^(@\S+\s+)?\S+\s+(PT,\s*)?RZ\b")
_MEANINGS = {
    "adds": "adds floating-point numbers in the order of arrival",
    "turns": "takes turns in the order of arrival",
    "numbers": "hands out numbers in the order of arrival",
}


def arrival_kind(instruction: str) -> str | None:
    """Return how an instruction makes results depend on the order of arrival, a key of `_MEANINGS`; else None.

    Atomic additions of integers, minima and maxima give the same result in any order, unless the old value is used.
    """
    base, *parts = opcode_of(instruction).split(".")
    if base not in _ATOMICS:
        return None
    if "ADD" in parts and any(map(_FLOAT.fullmatch, parts)):
        return "adds"
    if any(part.startswith("CAS") for part in parts) or "EXCH" in parts:
        return "turns"
    is_read = base in ("ATOM", "ATOMG", "ATOMS") and not _UNUSED.match(instruction.strip())
    return "numbers" if is_read else None


def arrival_cause(case: Case, device: Device) -> str:
    """Return what in the machine code of the case depends on the order of arrival, or why it is unknown."""
    try:
        request = build_request(case, device) if case.spec.source else None
        kernels = build(request).kernels if request else {}
        listings = {str(entry): listing_of(kernel.path)[kernel.symbol] for entry, kernel in kernels.items()}
    except (PrismBenchError, KeyError) as error:
        return f"unknown: the machine code was not looked at: {described(error)}"
    if not listings:
        return "unknown: no launch of the case has machine code to look at"
    kinds = {
        kind: f"{opcode_of(instruction)} in {entry}"
        for entry, listing in listings.items()
        for instruction in reversed(listing.instructions)
        if (kind := arrival_kind(instruction))
    }
    if kind := next((kind for kind in _MEANINGS if kind in kinds), None):
        return f"{kinds[kind]} {_MEANINGS[kind]}"
    code = ", ".join(listings)
    return f"no order-dependent atomic instruction is in {code}; likely a race, or memory that no launch wrote"


def launch_changes(before: Case, after: Case, device: Device, axis: str | None = None) -> list[str]:
    """Return in words how the launches of two cases differ; with an `axis`, grids as blocks of one index of it."""
    plans = [[step for step in case.plan.steps(device) if isinstance(step, Launch)] for case in (before, after)]
    if len(plans[0]) != len(plans[1]):
        return [f"{count_text(len(plans[0]), 'launch', 'launches')} and {len(plans[1])}"]
    texts: list[str] = []
    for was, now in zip(*plans, strict=True):
        sides = [
            {
                "entry": step.entry or case.spec.entry,
                "block": step.extents[1],
                "shared memory": step.shared,
                "constants": dict(step.constants),
                "grid": step.extents[0] if axis is None else _blocks_each(step, case, axis),
            }
            for step, case in ((was, before), (now, after))
        ]
        each = f" for each of {axis}" if axis else ""
        texts += [
            f"{what} {sides[0][what]} and {sides[1][what]}{each if what == 'grid' else ''}"
            for what in sides[0]
            if sides[0][what] != sides[1][what]
        ]
    for array in before.spec.arrays:
        shapes = [case.sizes.shape(array.name) for case in (before, after)]
        if array.scratch and shapes[0] != shapes[1] and (axis is None or axis not in array.shape.split()):
            texts.append(f"partial results in '{array.name}' {shapes[0]} and {shapes[1]}")
    return list(dict.fromkeys(texts))


def _blocks_each(step: Launch, case: Case, axis: str) -> str:
    blocks, count = prod(step.extents[0]), int(case.axes[axis])  # pyright: ignore[reportArgumentType]  # an axis
    return f"{max(1.0, blocks / max(1, count)):.3g} blocks"  # fewer blocks than indices share none of them


# Checks of one prepared case.


class _LaidOut(InputArray):
    """Input with given values, of any size."""

    def on(self, xp: ModuleType) -> Any:
        return xp.array(self.block).reshape(self.shape)


@dataclass
class BitChecks:
    """Checks of a kernel's prepared case, or of its `peer`, on the inputs of the runnable, drawn from `seed`.

    Batches are compared along the axes that the spec names, and along the further `axes`, which nobody promised.
    """

    backend: Backend
    runnable: Runnable
    seed: int = 0
    peer: str | None = None
    axes: Sequence[str] = ()
    _called: Runnable = field(init=False)
    _inputs: Mapping[str, InputArray] = field(init=False)
    _arrival: str | None = field(default=None, init=False)  # why the order of arrival matters, where it does

    def __post_init__(self) -> None:
        self._called, self._inputs = self.runnable, self.runnable.inputs

    @property
    def case(self) -> Case:
        """The case that is checked."""
        return self.runnable.case

    @property
    def _repeats(self) -> int:
        return _DEVICE_REPEATS if self.backend.name == "cuda" else REPEATS

    def promised(self) -> list[Entry]:
        """Return what costs little: repeated launches, and other orders where the backend has them."""
        if not self.case.spec.outputs:
            return [self._entry("repeated", iter([("", "it writes no output")]))]
        entries = [self._entry("repeated", self._repeated())]
        if orders := self.backend.orders(self.case):
            entries.append(self._entry("order", self._ordered(orders)))
        return entries

    def every(self, known: Sequence[Entry] = ()) -> list[Entry]:
        """Return all checks, of which those of `promised()` may be `known`; of peers there are fewer."""
        if self.peer:
            with self.backend.prepare_peer(self.case, self.peer, self.runnable) as self._called:
                return [self._entry("repeated", self._repeated()), *self._batches()]
        known = known or self.promised()
        if not self.case.spec.outputs:
            return [*known]
        entries = [*known, self._entry("configurations", self._configured()), *self._batches()]
        return [*entries, self._entry("contention", self._contended())]

    def on_boards(self, folder: Path, board: str) -> list[Entry]:
        """Compare the outputs with those that another board has left in the folder; the first one leaves its own."""
        size = sum(self.case.sizes.nbytes(output.name) for output in self.case.spec.outputs)
        if size > _KEPT_BYTES or not size:
            reason = f"outputs of {bytes_text(size)}: those of up to 64 MiB are compared"
            return [self._entry("boards", iter([("", reason)]))]
        outputs = {name: array.get() if hasattr(array, "get") else array for name, array in self._outputs().items()}
        file = folder / f"{hashlib.sha256(self.case.task.encode()).hexdigest()[:32]}.npz"
        if not file.is_file():
            content = BytesIO()
            np.savez(content, **outputs)
            write_atomically(file, content.getvalue())
            return []
        with np.load(file) as kept:
            compared = difference(self.case, {name: kept[name] for name in outputs}, outputs, np)
        return [self._entry("boards", iter([(f"board {board}", compared)]))]

    def _entry(self, check: Check, compared: Compared, axis: str | None = None) -> Entry:
        """Return the entry of a check; it ends with the first launch that differs."""
        spec = self.case.spec
        count, against, differs, left_out = 0, "", Entry(), list[str]()
        for name, outcome in compared:
            if isinstance(outcome, str):
                left_out.append(f"{name}: {outcome}" if name else outcome)
                continue
            count, against = count + 1, name
            if differs := outcome:
                break
        is_promised = not self.peer and (axis in spec.batch_invariant if check == "batch" else spec.bitwise)
        entry: Entry = {
            "seed": self.seed,
            "output": ", ".join(output.name for output in spec.outputs),
            "tolerance": "same bits",
            "check": check,
            "same": not differs if count else None,
            "passed": not (differs and is_promised),
            "launches": count,
            **({"against": against} if count else {}),
            **({"subject": f"peer:{self.peer}"} if self.peer else {}),
            **({"axis": axis} if axis else {}),
            **({"left_out": left_out[0]} if left_out else {}),
        }
        if not differs:
            return entry
        changed = differs.pop("case", None)
        entry |= {**differs, "cause": self._cause(check, changed, axis)}
        promise = f"batch_invariant names '{axis}'" if check == "batch" else "bitwise=True is promised"
        return entry | ({} if entry["passed"] else {"error": f"{difference_text(entry)}; {promise}; {entry['cause']}"})

    def _cause(self, check: Check, changed: Case | None, axis: str | None) -> str:
        """Return the likely cause: what launches and machine code show, and only that."""
        if self.peer:
            return "unknown: the code of a library was not looked at"
        if not self.backend.trusts_source:
            return "unknown: the source is compiled in its jail only"
        if self._arrival:
            return f"the bits differ from launch to launch already: {self._arrival}"
        if changed is None or check not in ("configurations", "batch"):
            self._arrival = arrival_cause(self.case, self.backend.device)
            return self._arrival
        if changes := launch_changes(self.case, changed, self.backend.device, axis):
            return f"another launch: {'; '.join(changes)}"
        if axis and changed.axes[axis] == self.case.axes[axis]:
            return f"the launch is the same: values of other {axis} enter"
        return "the launch is the same" + (f" for each of {axis}: the code goes by the number of them" if axis else "")

    def _outputs(self, inputs: Mapping[str, InputArray] | None = None) -> dict[str, Any]:
        """Launch once on the inputs, by default those of the runnable, and return copies of the outputs."""
        self._called.reset(self._inputs if inputs is None else inputs)
        self._called()
        return _copied(self.backend, self._called)

    def _compared(self, before: Mapping[str, Any], after: Mapping[str, Any]) -> Entry:
        return difference(self.case, before, after, self.backend.xp)

    def _repeated(self) -> Compared:
        first = self._outputs()
        for number in range(2, self._repeats + 2):
            yield f"launch {number}", self._compared(first, self._outputs())

    def _ordered(self, orders: Mapping[str, Backend]) -> Compared:
        first = self._outputs()
        for name, backend in orders.items():
            with backend.prepare(self.case, self._inputs) as other:
                other()
                yield name, self._compared(first, _copied(backend, other))

    def _configured(self) -> Compared:
        """Compare the configurations of the tuning space with the one that is launched."""
        try:
            space = self.case.configurations(self.backend.device)
        except SpecError as error:  # the default breaks a rule
            yield "", str(error)
            return
        others = [case for case in space if case.configuration != self.case.configuration]
        if not others:
            yield "", "the launch has one configuration"
            return
        sets = [self._inputs]
        if sum(self.case.sizes.elements(output.name)[1] for output in self.case.spec.outputs) <= _FEW_ELEMENTS:
            sets += [self.case.inputs(self.seed + number) for number in range(1, _SETS)]
        firsts = [self._outputs(inputs) for inputs in reversed(sets)][::-1]  # the runnable keeps its own
        step = -(-len(others) // _MOST_CONFIGURATIONS)
        for case in others[::step]:
            pairs = zip(sets, firsts, strict=True)
            outcomes = (self._elsewhere(case, inputs, partial(self._compared, first)) for inputs, first in pairs)
            yield written(case.configuration), next(filter(None, outcomes), {})
        if step > 1:
            yield "", f"{len(others[::step])} of {len(others)} other configurations were launched"

    def _batches(self) -> list[Entry]:
        axes = dict.fromkeys((*self.case.spec.batch_invariant, *self.axes))
        return [self._entry("batch", self._batch(axis), axis) for axis in axes]

    def _batch(self, axis: str) -> Compared:
        """Compare a few indices along the axis when the others change, and when there are fewer or more of them."""
        case, count = self.case, int(self.case.axes[axis])  # pyright: ignore[reportArgumentType]  # an axis
        if not count or case.sizes.allocated_bytes > _MOST_BYTES:
            yield "", f"{axis}={count}, {bytes_text(case.sizes.allocated_bytes)}: batches of up to 1 GiB are compared"
            return
        first = self._outputs()
        for size, rows, places in _batches(count):
            name = f"{OTHER_VALUES} {axis}" if size == count else f"{axis}={size}"
            try:
                other = replace(case, workload=Workload(**{**case.workload, axis: size}), golden=None, edge=None)
                inputs = self._batch_inputs(other, axis, rows, places)
            except PrismBenchError as error:  # a size that the kernel does not take
                yield name, str(error)
                continue
            yield name, self._elsewhere(other, inputs, partial(self._compared_rows, axis, first, rows, places))

    def _batch_inputs(self, other: Case, axis: str, rows: np.ndarray, places: np.ndarray) -> dict[str, InputArray]:
        """Return inputs of another batch, in which the `places` hold what these inputs have in the `rows`."""
        drawn, inputs = other.inputs(self.seed + 1), dict[str, InputArray]()
        for array in self.case.spec.inputs:
            values, dimensions = self._inputs[array.name].on(np), array.shape.split()
            if axis in dimensions:
                at, kept = dimensions.index(axis), values
                values = drawn[array.name].on(np)
                np.moveaxis(values, at, 0)[places] = np.moveaxis(kept, at, 0)[rows]
            if values.shape != other.sizes.shape(array.name) or dimensions.count(axis) > 1:
                raise PrismBenchError(f"the shape of {array.name}, '{array.shape}', depends on {axis} in another way")
            inputs[array.name] = _LaidOut(values, (0,), values.shape)
        return inputs

    def _compared_rows(
        self, axis: str, before: Mapping[str, Any], rows: np.ndarray, places: np.ndarray, after: Mapping[str, Any]
    ) -> Entry:
        """Compare the `rows` of these outputs with the `places` of another batch's."""
        xp, shapes = self.backend.xp, {name: self.case.spec.array(name).shape.split() for name in before}
        axes = {name: shape.index(axis) for name, shape in shapes.items() if axis in shape}
        sides = [
            {name: xp.take(outputs[name], xp.asarray(chosen), axis=at) for name, at in axes.items()}
            for outputs, chosen in ((before, rows), (after, places))
        ]
        differs = self._compared(*sides)
        if differs:
            at = axes[differs["output"]]
            differs["place"][at] = int(rows[differs["place"][at]])
        return differs

    def _elsewhere(
        self, case: Case, inputs: Mapping[str, InputArray], compare: Callable[[Mapping[str, Any]], Entry]
    ) -> Entry | str:
        """Launch another case, and return how its outputs compare, or why it is left out."""
        try:
            with self.backend.prepare(case, inputs) as runnable, self._caller(case, runnable) as called:
                called()
                differs = compare(_copied(self.backend, called))
        except (PrismBenchError, MemoryError) as error:
            return described(error)
        return {**differs, "case": case} if differs else differs

    @contextmanager
    def _caller(self, case: Case, runnable: Runnable) -> Generator[Runnable]:
        if self.peer is None:
            yield runnable
            return
        with self.backend.prepare_peer(case, self.peer, runnable) as peer:
            yield peer

    def _contended(self) -> Compared:
        """Compare launches next to which another stream keeps the device busy."""
        if self.backend.name != "cuda":
            yield "", "only a GPU has streams"
            return
        first, flow, xp = self._outputs(), self.backend.flow(), self.backend.xp
        with flow.lane(1):
            load = xp.zeros(_LOAD_ELEMENTS, "float32")
            xp.add(load, 1, out=load)
        for number in range(1, self._repeats + 1):
            self._called.reset(self._inputs)
            with Fork(flow, (1,)):
                with flow.lane(1):
                    for _ in range(_LOAD_PASSES):
                        xp.add(load, 1, out=load)
                self._called()
            yield f"another stream at work, launch {number}", self._compared(first, _copied(self.backend, self._called))


def _batches(count: int) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Yield the sizes of other batches with the indices whose values are kept, and their places in the other batch.

    A row alone may round to the same number in another order by chance, so several are alone in turn.
    """
    if count > 1:
        rows = np.arange(0, count, 2)
        yield count, rows, rows
        for row in dict.fromkeys(count * part // _SINGLES for part in range(_SINGLES)):
            yield 1, np.array([row]), np.array([0])
    for size in dict.fromkeys((_FEW, count // 2, 2 * count)):
        if size > 1 and size != count:  # as many as there is room for, from the end
            rows = np.arange(min(size, count))
            yield size, rows, size - 1 - rows * max(1, size // count)


def _copied(backend: Backend, runnable: Runnable) -> dict[str, Any]:
    names = [output.name for output in runnable.case.spec.outputs]
    return {name: backend.xp.array(array) for name, array in runnable.arrays(names).items()}


def peer_checks(
    backend: Backend,
    runnable: Runnable,
    seed: int,
    begun: Callable[[str], None],
    avoided: Mapping[str, str],
    axes: Sequence[str] = (),
) -> Iterable[Entry]:
    """Yield the checks of each peer that compiles nothing, on the inputs of a kernel's runnable; `begun` gets its name.

    A peer that is `avoided`, or cannot be called, has an entry with the reason.
    """
    from prism_bench.backends.cuda.peers.library_state import LibraryState

    for name in backend.peers(runnable.case):
        if is_compiled(name):
            continue
        reason = avoided.get(name)
        if reason is None:
            begun(name)
            state = LibraryState.now()
            try:
                yield from BitChecks(backend, runnable, seed, name, axes).every()
            except Exception as error:  # a library may raise anything
                if not backend.answers():
                    raise
                reason = (described(error).strip().splitlines() or [""])[0]
            finally:
                state.restore()
            begun("")
        if reason is not None:
            yield {"seed": seed, "check": "repeated", "same": None, "passed": True, "launches": 0,
                   "tolerance": "same bits", "subject": f"peer:{name}", "left_out": reason}  # fmt: skip
