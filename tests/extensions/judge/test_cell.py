"""A cell believes no answer of a process that may run a stranger's code, not even that this machine fails."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from prism_bench.catalogue import discover
from prism_bench.compilation.cubin import Resources
from prism_bench.compilation.program import marked
from prism_bench.emulator.build import find_compiler, prepared
from prism_bench.emulator.library import LaunchRequest
from prism_bench.errors import BackendUnavailable, CompilationFailed, PrismBenchError, VerificationFailed
from prism_bench.extensions.judge.jail_client import (
    HostLaunchQuestion,
    JailCell,
    JailedEmulator,
    MachineCodeAnswer,
    compiled_parts,
)
from prism_bench.io.channels import Frame
from prism_bench.io.workers import Refusal
from prism_bench.run import verify
from prism_bench.run.verification import passed
from prism_bench.spec.case import Case
from prism_bench.spec.launch import Launch, TensorMap


class AnsweringCell(JailCell):
    """A cell whose process has one answer."""

    def __init__(self, answer: object) -> None:
        super().__init__(Path("/tmp"), jailed=False)
        self._answer = answer

    def _started(self) -> object:  # pyright: ignore[reportIncompatibleMethodOverride]
        received = Frame(self._answer, ())
        return SimpleNamespace(
            channel=SimpleNamespace(send=lambda *given: None, receive=lambda *given: received), kill=lambda: None
        )


QUESTION = HostLaunchQuestion(0, LaunchRequest("mine", (1, 1, 1), (1, 1, 1)), ())


@pytest.mark.parametrize("kind", ["UsageError", "ProfilerError", "PrismBenchError", "nothing"])
def test_a_process_of_a_stranger_reports_findings_alone(kind: str) -> None:
    cell = AnsweringCell(Refusal(kind, "no jail can be made here"))
    with pytest.raises(CompilationFailed, match="while it was compiled"):
        cell.machine_code(Path("mine.cu"), ("mine",), "90")
    with pytest.raises(VerificationFailed, match="mine: "):
        cell.launch(QUESTION, ())


@pytest.mark.parametrize("kind", [BackendUnavailable, CompilationFailed, VerificationFailed])
def test_what_a_compiler_and_an_emulator_find_is_passed_on(kind: type[PrismBenchError]) -> None:
    with pytest.raises(kind, match="found"):
        AnsweringCell(Refusal(kind.__name__, "found")).machine_code(Path("mine.cu"), ("mine",), "90")


MAPPED = """#include <cuda.h>
#include <cuda/barrier>
extern "C" __global__ void add(const __grid_constant__ CUtensorMap a, const float* b, float* c, long long n) {
    __shared__ alignas(1024) float tile[32];
    __shared__ cuda::barrier<cuda::thread_scope_block> full;
    const long long i = 32 * blockIdx.x + threadIdx.x;
    if (threadIdx.x == 0) {
        init(&full, 1);
        cuda::device::experimental::cp_async_bulk_tensor_1d_global_to_shared(tile, &a, 32 * blockIdx.x, full);
        cuda::device::barrier_arrive_tx(full, 1, sizeof tile);
    }
    __syncthreads();
    full.wait_parity(0);
    if (i < n) c[i] = tile[threadIdx.x] + b[i];
}
"""


def test_arrays_reach_a_cell_as_tensor_maps(tmp_path: Path) -> None:
    (tmp_path / "mapped.cu").write_text(MAPPED)
    spec = discover(Path(__file__).parent / "tasks").kernel("add")
    maps = (TensorMap("a", box=(32,)),)
    chosen = replace(spec, source=tmp_path / "mapped.cu", launch=lambda n: Launch(-(-n // 32), 32, maps=maps))  # pyright: ignore[reportArgumentType]
    with JailCell(tmp_path, jailed=False) as cell:
        assert passed(verify(JailedEmulator(cell), Case(chosen, chosen.workloads["S0"], "S0")))


@pytest.mark.parametrize("compiler", ["nvrtc", "nvcc"])
def test_instructions_are_listed_where_no_program_of_a_source_has_run(tmp_path: Path, compiler: str) -> None:
    """The compiler nvcc runs whatever its options name, which may change what the process answers."""
    forged = MachineCodeAnswer({"add": "symbol"}, {}, {}, {"fp32": 1}, "its words")
    listed = MachineCodeAnswer({"symbol": "symbol"}, {"symbol": Resources()}, {"half": 1}, {"half": 1})
    processes = [1]

    class TwoCells(JailCell):
        def machine_code(
            self, source: Path, entries: Sequence[str], architecture: str, options: Sequence[str] = ()
        ) -> tuple[MachineCodeAnswer, bytes]:
            return (listed, b"") if source.suffix == ".cubin" and len(processes) == 2 else (forged, b"cubin")

        def end(self) -> None:
            processes.append(1)

    spec = discover(Path(__file__).parent / "tasks").kernel("add")
    chosen = replace(spec, source=tmp_path / "add.cu", options=marked(compiler, ()))  # pyright: ignore[reportArgumentType]
    (part,) = compiled_parts(chosen, [Case(chosen, chosen.workloads["S0"], "S0")], TwoCells(tmp_path, False), "90")
    assert b"cubin" == part.cubin
    assert {"add": "symbol"} == part.made.symbols
    assert ({"half": 1} if compiler == "nvcc" else {"fp32": 1}) == part.made.precisions
    assert "its words" == part.made.log


def test_the_jail_gets_a_runtime_of_its_own_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With one of another compiler each judgement would build the emulator's runtime again, which takes seconds."""
    usual = JailCell(tmp_path, modes=("fast",))._prepared
    other = tmp_path / "g++"
    other.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo another 1.0 || exec {find_compiler().command} "$@"\n')
    other.chmod(0o755)
    monkeypatch.setenv("CXX", str(other))
    assert usual == JailCell(tmp_path, modes=("fast",))._prepared
    assert usual != list(prepared("fast"))
