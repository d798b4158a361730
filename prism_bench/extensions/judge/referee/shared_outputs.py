"""Outputs in another process's memory on the same device, copied without the host."""

from collections.abc import Mapping

import numpy as np

from prism_bench.extensions.judge.referee.messages import BufferPlan, CasePlan
from prism_bench.spec.inputs import AnyArray, ArrayModule


def copied_outputs(xp: ArrayModule, plan: CasePlan, handles: Mapping[str, bytes]) -> dict[str, AnyArray]:
    """Return arrays of CuPy, `xp`, with what is in the memory that the handles open, by name.

    Nothing where there is no handle, or where the driver opens or copies one of them not.
    """
    outputs = [one for one in plan.buffers if one.is_written]
    if any(one.nbytes and one.name not in handles for one in outputs):
        return {}
    try:
        return {one.name: _copied(xp, one, handles.get(one.name)) for one in outputs}
    except xp.cuda.runtime.CUDARuntimeError:
        return {}


def _copied(xp: ArrayModule, buffer: BufferPlan, handle: bytes | None) -> AnyArray:
    found, runtime = xp.empty(buffer.shape, np.dtype(buffer.dtype)), xp.cuda.runtime
    if handle is None:
        return found
    opened = runtime.ipcOpenMemHandle(handle)
    try:
        runtime.deviceSynchronize()  # whatever had the new array's memory before
        runtime.memcpy(found.data.ptr, opened, found.nbytes, runtime.memcpyDeviceToDevice)
        runtime.deviceSynchronize()
    finally:
        runtime.ipcCloseMemHandle(opened)
    return found
