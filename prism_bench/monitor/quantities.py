"""Everything that is read of a device: one line per quantity, in SI units."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Quantity:
    """One `name` in `unit` (SI, `1` for a share); `dcgm` is its name in DCGM, which reports `scale` times it.

    `kind` is `gauge`, or `counter` for what only grows until the driver is loaded again.
    """

    name: str
    unit: str
    meaning: str
    dcgm: str | None = None
    scale: float = 1.0
    kind: str = "gauge"


_MIB = 1 / (1 << 20)

QUANTITIES = {
    one.name: one
    for one in (
        Quantity("utilization", "1", "share of the driver's last window in which any kernel ran",
                 "DCGM_FI_DEV_GPU_UTIL", 100.0),
        Quantity("memory_utilization", "1", "share of that window in which memory was read or written",
                 "DCGM_FI_DEV_MEM_COPY_UTIL", 100.0),
        Quantity("memory_used", "B", "device memory in use, by anybody", "DCGM_FI_DEV_FB_USED", _MIB),
        Quantity("memory_free", "B", "device memory that is free", "DCGM_FI_DEV_FB_FREE", _MIB),
        Quantity("memory_total", "B", "device memory", "DCGM_FI_DEV_FB_TOTAL", _MIB),
        Quantity("sm_clock", "Hz", "clock of the multiprocessors", "DCGM_FI_DEV_SM_CLOCK", 1e-6),
        Quantity("memory_clock", "Hz", "clock of the memory", "DCGM_FI_DEV_MEM_CLOCK", 1e-6),
        Quantity("max_sm_clock", "Hz", "highest clock of the multiprocessors", "DCGM_FI_DEV_MAX_SM_CLOCK", 1e-6),
        Quantity("power", "W", "power now", "DCGM_FI_DEV_POWER_USAGE_INSTANT"),
        Quantity("power_average", "W", "its mean over about a second (before Ampere: now)", "DCGM_FI_DEV_POWER_USAGE"),
        Quantity("power_limit", "W", "the power limit in force", "DCGM_FI_DEV_POWER_MGMT_LIMIT"),
        Quantity("energy", "J", "energy since the driver was loaded",
                 "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", 1e3, "counter"),
        Quantity("temperature", "degC", "temperature of the chip", "DCGM_FI_DEV_GPU_TEMP"),
        Quantity("memory_temperature", "degC", "temperature of the memory", "DCGM_FI_DEV_MEMORY_TEMP"),
        Quantity("clock_reasons", "1", "bits that say why the clock is not higher",
                 "DCGM_FI_DEV_CLOCKS_EVENT_REASONS"),
        Quantity("power_throttled", "s", "time for which the power limit held the clock down",
                 "DCGM_FI_DEV_POWER_VIOLATION", 1e9, "counter"),
        Quantity("thermal_throttled", "s", "time for which heat held the clock down",
                 "DCGM_FI_DEV_THERMAL_VIOLATION", 1e9, "counter"),
        Quantity("board_throttled", "s", "time for which the board's limits held the clock down",
                 "DCGM_FI_DEV_BOARD_LIMIT_VIOLATION", 1e9, "counter"),
        Quantity("pcie_sent", "B/s", "PCIe traffic from the device", "DCGM_FI_DEV_PCIE_TX_THROUGHPUT", 1e-3),
        Quantity("pcie_received", "B/s", "PCIe traffic to the device", "DCGM_FI_DEV_PCIE_RX_THROUGHPUT", 1e-3),
        Quantity("pcie_replays", "1", "PCIe packets that were sent again",
                 "DCGM_FI_DEV_PCIE_REPLAY_COUNTER", kind="counter"),
        Quantity("ecc_corrected", "1", "memory errors that ECC corrected since the driver was loaded",
                 "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", kind="counter"),
        Quantity("ecc_uncorrected", "1", "memory errors that ECC could not correct since the driver was loaded",
                 "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", kind="counter"),
        Quantity("rows_remapped", "1", "memory rows replaced after errors",
                 "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", kind="counter"),
        Quantity("remap_failed", "1", "1 where a row could not be replaced", "DCGM_FI_DEV_ROW_REMAP_FAILURE"),
        Quantity("mig", "1", "1 where the device is cut into MIG slices", "DCGM_FI_DEV_MIG_MODE"),
        Quantity("sm_active", "1", "mean share of the multiprocessors at work", "DCGM_FI_PROF_SM_ACTIVE"),
        Quantity("sm_occupancy", "1", "resident warps over the most there can be", "DCGM_FI_PROF_SM_OCCUPANCY"),
        Quantity("tensor_active", "1", "share of the time in which tensor cores worked",
                 "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"),
        Quantity("dram_active", "1", "memory traffic over the most there can be", "DCGM_FI_PROF_DRAM_ACTIVE"),
    )
}  # fmt: skip

# Why the clock is not higher: bits of nvmlDeviceGetCurrentClocksEventReasons. The last five are harm, the rest is news.
REASONS = {
    0x1: "idle",
    0x2: "application clocks",
    0x10: "sync boost",
    0x100: "display clock",
    0x4: "sw power cap",
    0x8: "hw slowdown",
    0x20: "sw thermal",
    0x40: "hw thermal",
    0x80: "power brake",
}
HARMFUL = ("hw slowdown", "sw thermal", "hw thermal", "power brake")


def reasons_in(bits: float | None) -> tuple[str, ...]:
    """Return the words for the bits, unknown ones by their number; none where nothing was read."""
    bits = int(bits or 0)
    known = [word for bit, word in REASONS.items() if bits & bit]
    rest = bits & ~sum(REASONS)
    return (*known, *([f"reason {rest:#x}"] if rest else []))
