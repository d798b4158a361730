"""What a device can do at most, whatever runs on it: bounds that a claimed rate must not exceed."""

from dataclasses import dataclass

L2_BYTES_PER_CLOCK = 128  # that a multiprocessor receives; twice what those of today do
# Operations of a multiprocessor per clock: tensor cores at the narrowest floating-point type, with sparsity.
_OPERATIONS = {
    70: 2048, 75: 2048, 80: 8192, 86: 4096, 87: 8192, 89: 8192, 90: 16384, 100: 65536, 103: 98304, 120: 16384,
}  # fmt: skip
_LATER = 131072
# Fused multiply-adds of a multiprocessor per clock, in float32.
FP32_LANES = {70: 64, 72: 64, 75: 64, 80: 64, 86: 128, 87: 128, 89: 128, 90: 128, 100: 128, 103: 128, 120: 128}


@dataclass(frozen=True)
class DeviceBounds:
    """A device's multiprocessors, clock in hertz, cache in bytes, and its memory `bus` in bytes per second if known."""

    sm_count: int
    compute_capability: int
    clock: float
    l2_bytes: int
    bus: float | None

    def operations(self, clock: float | None = None) -> float:
        """Return the operations per second that no program exceeds, at the higher of its clock and `clock`."""
        each = _OPERATIONS.get(self.compute_capability, _LATER)
        return each * self.sm_count * max(self.clock, clock or 0.0)

    def cache_bandwidth(self, clock: float | None = None) -> float:
        """Return the bytes per second that all multiprocessors can receive from L2."""
        return L2_BYTES_PER_CLOCK * self.sm_count * max(self.clock, clock or 0.0)
