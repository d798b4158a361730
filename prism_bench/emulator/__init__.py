"""CPU runtime for unmodified CUDA C++ kernels, which reports errors that a GPU would hide.

Three modes. `fast` runs a kernel under a chosen thread order. `race` watches each access for races, accesses out of
bounds and unwritten shared memory, and counts the bytes that move. `address` compiles with the address and
undefined-behaviour sanitizers and runs in a child process.

module     compile a source, launch its kernels
build      a source as host C++, compiled and cached
ptx        inline PTX as calls of the runtime
library    a built library in this process: arguments, buffers, launches
isolation  a built library in a child process: messages, crashes
child      the child process
report     findings and traffic of a launch
"""

from prism_bench.emulator.build import entry_not_emulated, not_emulated
from prism_bench.emulator.library import ORDERS, DeviceBuffer, HostBuffer, MappedBuffer
from prism_bench.emulator.module import Module, compile_source
from prism_bench.emulator.report import Access, ArgumentTraffic, LaunchFinding, LaunchReport, Traffic

__all__ = [
    "ORDERS",
    "Access",
    "ArgumentTraffic",
    "DeviceBuffer",
    "HostBuffer",
    "LaunchFinding",
    "LaunchReport",
    "MappedBuffer",
    "Module",
    "Traffic",
    "compile_source",
    "entry_not_emulated",
    "not_emulated",
]
