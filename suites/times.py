"""asv suites: one per metric of `prism_bench/spec/metric.py`; the last one is the CPU's."""

from typing import Any

from suites.measured import Measured, Pass


class Cold(Measured):
    """One launch, caches cleared before it."""

    metric = "cold_time"

    def track_cold_time(self, cache: Pass, case: str) -> dict[str, Any]:
        return self.samples(cache, case)


class Hot(Measured):
    """One launch of many, back to back, caches warm."""

    metric = "hot_time"

    def track_hot_time(self, cache: Pass, case: str) -> dict[str, Any]:
        return self.samples(cache, case)


class Launch(Measured):
    """What the host spends to enqueue the kernel."""

    metric = "launch_time"

    def track_launch_time(self, cache: Pass, case: str) -> dict[str, Any]:
        return self.samples(cache, case)


class EndToEnd(Measured):
    """Inputs to the device, kernel, outputs back."""

    metric = "end_to_end_time"

    def track_end_to_end_time(self, cache: Pass, case: str) -> dict[str, Any]:
        return self.samples(cache, case)


class Wall(Measured):
    """One call of the reference on the CPU."""

    metric = "wall_time"

    def track_wall_time(self, cache: Pass, case: str) -> dict[str, Any]:
        return self.samples(cache, case)

    # asv reads the name that its pages show from the function.
    track_wall_time.pretty_name = "times.Wall.track_wall_time (the NumPy reference on the CPU, no kernel)"  # pyright: ignore[reportFunctionMemberAccess]
