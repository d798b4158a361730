"""Verification of outputs: poisoned before, two seeds, the float64 reference, inputs unchanged."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from random import SystemRandom
from types import ModuleType
from typing import Any

import numpy as np

from prism_bench.backends import Backend, Runnable
from prism_bench.backends.emulator import unwritten_text
from prism_bench.io.installation import host_special
from prism_bench.run.bitwise import BitChecks
from prism_bench.spec.case import Case
from prism_bench.spec.correctness import Allowance
from prism_bench.spec.dtypes import PAIRS, values_of
from prism_bench.spec.inputs import InputArray
from prism_bench.spec.kernel import InOut
from prism_bench.spec.tolerance import Tolerance, compare

Entry = dict[str, Any]  # what a record keeps of one verified output
_HOST_ELEMENTS = 1 << 20  # above either the reference is evaluated in float64 on the device, if there is one
_HOST_OPERATIONS = 1 << 30
KEPT_BYTES = 2 << 30  # of a reference; what is larger is evaluated anew for everything that is compared with it
_RANDOM = SystemRandom()


@dataclass(frozen=True)
class ReferenceOutput:
    """One output of the reference, and how far another one may be from it."""

    want: Any
    allowance: Allowance

    @property
    def nbytes(self) -> int:
        """The bytes of its arrays."""
        return sum(getattr(array, "nbytes", 0) for array in (self.want, self.allowance.terms, self.allowance.magnitude))


@dataclass
class KnownReference:
    """Reference of a case on its present inputs, kept for the kernel and the peers that are compared with it."""

    _case: Case | None = None
    _seed: int | None = None
    _inputs: Mapping[str, InputArray] | None = None
    _xp: ModuleType | None = None
    _outputs: dict[str, ReferenceOutput] = field(default_factory=dict[str, ReferenceOutput])

    @staticmethod
    def is_kept(case: Case) -> bool:
        """Return whether the case's outputs in float64 are small enough to be kept."""
        return 8 * sum(case.sizes.elements(output.name)[1] for output in case.spec.outputs) <= KEPT_BYTES

    def outputs(self, backend: Backend, case: Case, inputs: Mapping[str, InputArray]) -> dict[str, ReferenceOutput]:
        """Return the reference's outputs by name, evaluated on the host where that is quick, else on the device."""
        xp, special = _place(backend, case)
        if self._inputs is inputs and self._xp is xp:
            return self._outputs
        self._inputs, self._outputs = None, {}  # before the next ones, which need the memory
        outputs = _evaluated(case, inputs, xp, special)
        if sum(output.nbytes for output in outputs.values()) <= KEPT_BYTES:
            self._inputs, self._outputs, self._xp = inputs, outputs, xp
        return outputs

    def inputs(self, case: Case, seed: int) -> Mapping[str, InputArray]:
        """Return the case's inputs of a seed: the very ones whose reference is kept, where these are they."""
        if self._inputs is not None and self._case is case and self._seed == seed:
            return self._inputs
        self._case, self._seed = case, seed
        return case.inputs(seed)


def verify(
    backend: Backend,
    case: Case,
    seeds: Sequence[int] = (0, 1),
    known: KnownReference | None = None,
    *,
    random_poison: bool = False,
) -> list[Entry]:
    """Run the case once per seed and compare every output whole; return an entry per seed and output.

    `known` keeps the last seed's reference for another backend on the same case. Outputs are poisoned with the usual
    words before the first launch, unless `random_poison`, and at random before the others.
    """
    known = known or KnownReference()
    with backend.prepare(case, known.inputs(case, seeds[0])) as runnable:
        return verify_prepared(backend, runnable, seeds, known, random_poison=random_poison)


def verify_prepared(
    backend: Backend,
    runnable: Runnable,
    seeds: Sequence[int] = (0, 1),
    known: KnownReference | None = None,
    *,
    random_poison: bool = False,
) -> list[Entry]:
    """Verify a runnable that exists already; it holds the last seed's inputs afterwards, `known` their reference.

    Of a spec that promises `bitwise`, outputs that are right are compared with those of more launches.
    """
    golden, known = runnable.case.golden is not None, known or KnownReference()
    first, *others = seeds[:1] if golden else seeds
    entries = _one_seed(backend, runnable, first, known, random_poison=random_poison)
    for seed in others:
        entries += _one_seed(backend, runnable, seed, known, random_poison=True)
    if runnable.case.spec.bitwise and passed(entries):
        entries += BitChecks(backend, runnable, [first, *others][-1]).promised()
    return entries


def passed(entries: Iterable[Entry]) -> bool:
    """Return whether every entry passed."""
    return all(entry["passed"] for entry in entries)


def complaint(case: Case, backend: str, entries: Iterable[Entry]) -> str:
    """Return the first failure in words: where, what, and what would have been right."""
    entry = next(entry for entry in entries if not entry["passed"])
    if entry.get("error"):
        return f"{case.name} on {backend}: {entry['error']}"
    place = ", ".join(str(index) for index in entry["place"])
    return (
        f"{case.name} on {backend}: {entry['output']}[{place}] is {entry['actual']:.9g}, reference "
        f"{entry['expected']:.9g} ({entry['tolerance']}; normwise {entry['norm_error']:.2g}); "
        f"{entry['differing']} of {entry['compared']} elements differ (seed {entry['seed']})"
        f"{_when(entry)}"
    )


def _when(entry: Entry) -> str:
    """Return which timed launch it was; nothing for one that was only verified."""
    if "metric" not in entry:
        return ""
    return f" in sample {entry['sample']} of {entry['metric']}, though it was right when it was verified"


def _one_seed(
    backend: Backend, runnable: Runnable, seed: int, known: KnownReference, *, random_poison: bool = False
) -> list[Entry]:
    """Compare one launch whole; random poison is for kernels that wait for the usual one."""
    case = runnable.case
    inputs = known.inputs(case, seed)
    runnable.reset(inputs)
    guard = runnable.guard(0) if random_poison else None
    if guard:
        guard.overwrite(_RANDOM.getrandbits(63))
    runnable()
    outputs = runnable.arrays(output.name for output in case.spec.outputs)
    entries = compare_outputs(backend, case, inputs, outputs, seed, known=known)
    if not guard:
        entries = _explained(backend, runnable, inputs, outputs, entries)
    changed = _changed_input(backend, runnable, inputs)
    if changed:
        entries.append({"seed": seed, "output": changed, "passed": False, "error": f"input {changed} was changed"})
    return entries


def _explained(
    backend: Backend,
    runnable: Runnable,
    inputs: Mapping[str, InputArray],
    outputs: Mapping[str, Any],
    entries: Sequence[Entry],
) -> list[Entry]:
    """Return the entries, failed ones with the reason where elements of an output were never written.

    An element that was written may equal the poison, above all in one byte. So what holds the poison counts as
    unwritten if it holds the inverted poison after a second launch on outputs that were filled with that.
    """
    case, (xp, _) = runnable.case, _place(backend, runnable.case)
    failed = [entry["output"] for entry in entries if not entry["passed"] and not entry.get("error")]
    pure = [name for name in failed if not isinstance(case.spec.array(name), InOut)]
    held = {name: _holds(case, name, outputs[name], xp) for name in pure}
    if not any(bool(places.any()) for places in held.values()) or runnable.guard(0) is None:
        return list(entries)
    runnable.reset(inputs)
    fills: dict[str, Any] = {}  # until the launch, since a device may copy them late
    for name in pure:
        array = case.spec.array(name)
        fills[name] = np.empty(case.sizes.shape(name), array.storage)
        fills[name].reshape(-1).view(np.uint8)[:] = array.first_byte ^ 0xFF
        runnable.put(name, fills[name])
    runnable()
    errors: dict[str, str] = {}
    for name, actual in runnable.arrays(pure).items():
        places = xp.flatnonzero(held[name] & _holds(case, name, actual, xp, inverted=True))
        if places.size:
            errors[name] = unwritten_text(case, name, int(places[0]), int(places.size), backend.device)
    return [entry | {"error": errors[entry["output"]]} if entry["output"] in errors else entry for entry in entries]


def _holds(case: Case, name: str, actual: Any, xp: ModuleType, *, inverted: bool = False) -> Any:
    """Return which elements, flat, hold the poison of an output, or its inverse."""
    byte, elements = case.spec.array(name).first_byte ^ (0xFF if inverted else 0), _bring(actual, xp)
    if not elements.size:
        return xp.zeros(0, bool)
    return (_bits(elements, xp).reshape(elements.size, -1) == byte).all(axis=1)


def compare_outputs(
    backend: Backend,
    case: Case,
    inputs: Mapping[str, InputArray],
    outputs: Mapping[str, Any],
    seed: int,
    *,
    tolerance: Tolerance | None = None,
    known: KnownReference | None = None,
) -> list[Entry]:
    """Compare `outputs` (by name) with the reference on `inputs`, on the host where quick, else on the device.

    `known` keeps the reference for the next comparison on the same inputs.
    """
    expected, (xp, _) = (known or KnownReference()).outputs(backend, case, inputs), _place(backend, case)
    where = "float64 on the host" if xp is np else "float64 on the device"
    if backend.name == "numpy_reference" and not (case.golden and case.golden.expected):
        where = "itself: only shapes, types and untouched inputs are tested here"
    entries: list[Entry] = []
    for name, reference in expected.items():
        if name in outputs:
            actual = _bring(outputs[name], xp)
            entry = _entry(case, name, actual, reference, xp, tolerance)
            if not entry["passed"] and reference.allowance.tolerance.among and actual.size == reference.want.size:
                entry = _selected(
                    case, name, actual, reference, arrays={n: array.on(xp) for n, array in inputs.items()}, xp=xp
                )
            entries.append(entry | {"seed": seed, "output": name, "where": where, "of": int(reference.want.size)})
    return entries


def is_compared_on_host(case: Case) -> bool:
    """Return whether `compare_outputs` compares a case's outputs on the host with every backend."""
    elements = sum(int(np.prod(case.sizes.shape(array.name), dtype=np.int64)) for array in case.spec.arrays)
    quick = elements <= _HOST_ELEMENTS and (case.sizes.flops or 0) <= _HOST_OPERATIONS
    return quick or case.is_regime  # CuPy takes a subnormal float for 0


def compared_in(backend: Backend, case: Case) -> ModuleType:
    """Return the module of arrays, NumPy or the backend's, in which `compare_outputs` compares a case's outputs."""
    return _place(backend, case)[0]


def _place(backend: Backend, case: Case) -> tuple[ModuleType, ModuleType]:
    """Return the modules of arrays and of special functions with which the reference is evaluated."""
    on_host = is_compared_on_host(case) or backend.xp is np
    return (np, host_special) if on_host else (backend.xp, backend.special)


def _evaluated(
    case: Case, inputs: Mapping[str, InputArray], xp: ModuleType, special: ModuleType
) -> dict[str, ReferenceOutput]:
    arrays, correctness = {name: array.on(xp) for name, array in inputs.items()}, case.correctness
    expected = correctness.expected(arrays, xp, special)
    return {
        name: ReferenceOutput(want, correctness.allowance(name, arrays, xp, special)) for name, want in expected.items()
    }


def _entry(
    case: Case, name: str, actual: Any, reference: ReferenceOutput, xp: ModuleType, tolerance: Tolerance | None
) -> Entry:
    want, allowance, dtype = reference.want, reference.allowance, case.spec.array(name).dtype
    if dtype in PAIRS:
        actual = values_of(actual, dtype, xp)
        dtype = actual.dtype.name
    chosen = tolerance or allowance.tolerance
    if tuple(actual.shape) != tuple(want.shape):
        if actual.size != want.size:
            return {"passed": False, "error": f"{name} has shape {actual.shape}, the reference {want.shape}"}
        actual = actual.reshape(want.shape)
    limits = {"terms": allowance.terms, "magnitude": allowance.magnitude, "depth": allowance.depth}
    difference = compare(actual, want, chosen, xp, dtype=dtype, **limits)
    return {**asdict(difference), "place": list(difference.place), "tolerance": chosen.name}


def _selected(
    case: Case, name: str, actual: Any, reference: ReferenceOutput, *, arrays: Mapping[str, Any], xp: ModuleType
) -> Entry:
    """Compare indices by what they select: they differ from the reference, and equal elements may change places."""
    got, want = case.correctness.selected(name, arrays, actual, reference.want, xp)
    tolerance = reference.allowance.tolerance
    difference = compare(got, want, tolerance, xp)
    return {**asdict(difference), "place": list(difference.place), "tolerance": tolerance.name}


def _changed_input(backend: Backend, runnable: Runnable, inputs: Mapping[str, InputArray]) -> str | None:
    """Return the name of the first input whose values have changed, or None."""
    xp = backend.xp
    for array in runnable.case.spec.inputs:
        if isinstance(array, InOut):
            continue
        now = runnable.arrays([array.name])[array.name]
        if not bool((_bits(now, xp) == _bits(inputs[array.name].on(xp), xp)).all()):
            return array.name
    return None


def _bits(array: Any, xp: ModuleType) -> Any:
    return xp.ascontiguousarray(array).reshape(-1).view(xp.uint8)


def _bring(array: Any, xp: ModuleType) -> Any:
    """Return the array as one of `xp`: copied from the device where the comparison is on the host."""
    return array.get() if xp is np and hasattr(array, "get") else xp.asarray(array)
