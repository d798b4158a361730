"""A case whose work a callable does: a launcher of another language, a custom operator, a library's function."""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any

from prism_bench.backends.base import TimerFactories
from prism_bench.backends.cuda.adopted import adopted_arrays, library_module
from prism_bench.backends.cuda.guard import CudaGuard
from prism_bench.backends.cuda.inspection import Inspector
from prism_bench.backends.cuda.peers.peer import XLA, CallableTimers, least_xla_call
from prism_bench.backends.cuda.runnable import CudaRunnable
from prism_bench.compilation import sass_hash
from prism_bench.compilation.languages import source_hash
from prism_bench.compilation.languages.calls import real_call
from prism_bench.errors import BackendUnavailable, SpecError
from prism_bench.spec import byname
from prism_bench.spec.inputs import InputArray
from prism_bench.units import count_text


class CudaCalled(CudaRunnable):
    """A case's callable on its buffers; what it returns takes the place of the outputs that it does not write."""

    def reset(self, inputs: Mapping[str, InputArray]) -> None:
        self._result: tuple[Any, ...] = ()
        super().reset(inputs)

    def _bound(self, kernels: object) -> tuple[Callable[[], object], ...]:
        """Return the one call on the present buffers."""
        self._known = real_call(self.case.spec)
        library = self._known.library
        if not library.is_installed():
            raise BackendUnavailable(library.why_absent)
        module = library_module(library, self._harness)
        self._offered = {
            **self.case.axes, **adopted_arrays(library, self._buffers), "stream": self._harness.stream.ptr,
            library.name: module,
        }  # fmt: skip
        make = byname.call if self._known.prepares else byname.bind
        call = make(self._known.function, self._offered, f"{self.case.spec.label_in_errors}: callable")
        is_xla = library.name == XLA
        least = least_xla_call(import_module(XLA), self._cupy) if is_xla else None
        self._clocks = CallableTimers(self._harness, self, XLA if is_xla else library.arrays, least, self._restoring())
        return (lambda: self._keep(call()),)

    def _restoring(self) -> Callable[[], None] | None:
        return self.restore if self._pristine else None

    def _keep(self, result: object) -> None:
        self._result = result if isinstance(result, tuple) else () if result is None else (result,)

    def arrays(self, names: Iterable[str]) -> dict[str, Any]:
        found = super().arrays(names)
        return found | {name: array for name, array in self._returned().items() if name in found}

    def _returned(self) -> dict[str, Any]:
        """Return the outputs that the last call returned; a SpecError where they are not what the spec declares."""
        spec = self.case.spec
        names = self._known.returned(output.name for output in spec.outputs)
        if len(names) != len(self._result):
            raise SpecError(
                f"{self.case.name}: the callable returns {count_text(len(self._result), 'array')}; it neither asks for "
                f"{', '.join(names) or 'no output'} nor returns them"
            )
        return {
            name: self._checked(name, self._cupy.asarray(one)) for name, one in zip(names, self._result, strict=True)
        }

    def _checked(self, name: str, array: Any) -> Any:
        shape, dtype = self.case.sizes.shape(name), self.case.spec.array(name).dtype
        if (tuple(array.shape), str(array.dtype)) != (shape, dtype):
            raise SpecError(
                f"{self.case.name}: the callable returns '{name}' as {array.dtype}{list(array.shape)}; the spec "
                f"declares {dtype}{list(shape)}"
            )
        return array

    def guard(self, key: int) -> CudaGuard | None:
        outputs = [output.name for output in self.case.spec.outputs]
        return None if self._known.returned(outputs) else super().guard(key)

    def timers(self) -> TimerFactories:
        """Look at the callable once, then offer the clocks; MeasurementInvalid where it cannot be timed honestly."""
        self()
        if self._known.library.name != XLA:  # its own streams wait through DLPack; the clocks look for late work
            Inspector(self._harness).inspect(self)
        return self._clocks.timers()

    def _capture(self, launches: int) -> Callable[[], object]:
        return self._clocks.capture(launches)

    def evidence(self) -> dict[str, Any]:
        """Return language, library and version, how many launches a call has, and its machine code where known."""
        library, launches = self._known.library, self._clocks.launches()
        facts: dict[str, Any] = {
            "language": self.case.spec.written_in, "compiler": f"{library.name} {library.installed_version()}",
            "source": source_hash(self.case.spec.source_file)[:16],
        }  # fmt: skip
        facts |= {"launches": launches} if launches is not None else {}
        return facts | self._machine_code()

    def _machine_code(self) -> dict[str, Any]:
        if self._known.artifacts is None:
            return {}
        where = f"{self.case.spec.label_in_errors}: artifacts"
        hashes = sorted(sass_hash(cubin) for cubin in byname.call(self._known.artifacts, self._offered, where))
        whole = hashes[0] if len(hashes) == 1 else hashlib.sha256(" ".join(hashes).encode()).hexdigest()[:16]
        return {"sass": whole, "architecture": f"sm_{self._device.compute_capability}"} if hashes else {}
