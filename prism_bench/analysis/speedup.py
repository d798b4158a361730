"""The kernels of a run that are compared with the CPU and with libraries."""

from typing import TYPE_CHECKING

from prism_bench.analysis.reading import Reading

if TYPE_CHECKING:
    import pandas


def compared(reading: Reading) -> "pandas.DataFrame":
    """Return the rows of the summary with a kernel and a rival to it, without forms that are kept to compare with.

    Where there was no device these are the rows with the CPU alone.
    `cpu` is the CPU's wall time, with or without a device.
    """
    frame, cpu = reading.frame, reading.frame["cpu_time"]
    alone_on_cpu = reading.record.backend == "numpy_reference"  # elsewhere a kernel's wall time is no reference's
    frame = frame.assign(cpu=cpu.fillna(frame["wall_time"]) if alone_on_cpu else cpu)
    beside = frame["cold_time"].notna() & (frame["best_peer_time"].notna() | frame["cpu"].notna())
    alone = frame["cpu"].notna() & bool(frame["cold_time"].isna().all())
    return frame[(beside | alone) & frame["ceiling"].isna() & frame["before"].isna()]
