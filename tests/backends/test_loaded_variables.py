"""Variables of loaded machine code, on a stand-in for CuPy: constants are written, buffers are read."""

from types import SimpleNamespace

import numpy as np
import pytest

from prism_bench import Constant, KernelSpec, Launch, Out, Workload, exact
from prism_bench.backends.cuda.runnable import CudaRunnable
from prism_bench.compilation import compile_source
from prism_bench.compilation.languages import BuiltKernel
from prism_bench.errors import BackendUnavailable, SpecError
from prism_bench.spec.case import Case

SOURCE = """
__constant__ float factors[4];
__device__ unsigned counts[8];
extern "C" __global__ void scale(float* y) {
    atomicAdd(&counts[threadIdx.x], 1u);
    y[threadIdx.x] = factors[threadIdx.x];
}
"""


class Content:
    """An array of CuPy's on memory that somebody else has."""

    def __init__(self, shape, dtype, memptr):
        self.shape, self.dtype, self.data = shape, np.dtype(dtype), memptr
        self.nbytes = self.dtype.itemsize * int(np.prod(shape))

    def view(self, dtype):
        return Content((self.nbytes // np.dtype(dtype).itemsize,), dtype, self.data)

    def reshape(self, shape):
        return Content(shape, self.dtype, self.data)

    def get(self):
        return self.data.bytes[: self.nbytes].view(self.dtype).reshape(self.shape).copy()


class Memory:
    """Device memory, at first of ones."""

    def __init__(self):
        self.bytes = np.ones(64, np.uint8)

    def memset_async(self, value, size):
        self.bytes[:size] = value


@pytest.fixture
def runnable(tmp_path):
    """A case whose code is loaded twice, plainly and for cooperative launches."""
    (tmp_path / "scale.cu").write_text(SOURCE)
    try:
        code = compile_source(tmp_path / "scale.cu", ("scale",), "90")
    except BackendUnavailable as error:
        pytest.skip(str(error))
    spec = KernelSpec(
        entry="scale", name="scale", arguments=(Constant("by", "4", symbol="factors"), Out("y", "4")),
        launch=lambda: Launch(1, 4), reference=lambda by: by, tolerance=exact(), workloads={"S0": Workload()},
    )  # fmt: skip
    memory = {}

    def module(path, enable_cooperative_groups):
        loaded = (path, enable_cooperative_groups)
        return SimpleNamespace(get_global=lambda symbol: memory.setdefault((symbol, *loaded), Memory()))

    runtime = SimpleNamespace(deviceSynchronize=lambda: None)
    made = CudaRunnable.__new__(CudaRunnable)
    made.case = Case(spec, spec.workloads["S0"], "S0")
    made._cupy = SimpleNamespace(
        RawModule=module, ndarray=Content, uint8=np.uint8, cuda=SimpleNamespace(runtime=runtime)
    )
    kernel = BuiltKernel(code.path, code.lowered["scale"], code.resources[code.lowered["scale"]])
    steps = (Launch(1, 4), Launch(1, 4, cooperative=True), Launch(1, 4))
    made._kernels = [(step, (kernel, None)) for step in steps]
    made._buffers = {"by": Content((4,), np.float32, Memory())}
    return made


def test_a_variable_is_read_once_for_each_time_it_is_loaded(runnable):
    first, second = runnable.variables("counts", np.uint32)
    assert [0x01010101] * 8 == first.tolist() == second.tolist()
    runnable.clear_variable("counts")
    assert [[0] * 8] * 2 == [content.tolist() for content in runnable.variables("counts", np.uint32)]


def test_constants_are_written_to_every_copy_of_their_variable(runnable):
    variables = runnable._variables(runnable._kernels)
    assert [("by", (4,), np.float32)] * 2 == [(name, content.shape, content.dtype) for name, content in variables]
    assert variables[0][1].data is not variables[1][1].data
    runnable._buffers["by"] = Content((3,), np.float32, Memory())
    with pytest.raises(SpecError, match="Constant 'by' has 12 bytes; the variable 'factors' has 16"):
        runnable._variables(runnable._kernels)


def test_an_unknown_variable_is_refused_with_those_there_are(runnable):
    with pytest.raises(SpecError, match="'count' is no variable that the kernels use; the machine code has"):
        runnable.clear_variable("count")
