"""A choice with whatever a test changes."""

from prism_bench.workflows.tuning.choice import TuningChoice

TOOLS = {"driver": "580.1", "nvrtc": "13.0"}


def choice(**changes):
    """The choice of block 64 for `tripled` at n = 2500, twice as fast as the default."""
    plain = {
        "kernel": "tripled", "workload": {"n": 2500}, "configuration": {"block": 64, "items": 1},
        "default": {"block": 128, "items": 1}, "seconds": (2e-6, 1e-6), "speedup": 2.0, "interval": (1.9, 2.1),
        "reason": "faster", "tried": 5, "refused": 0, "source": "abc", "toolchain": TOOLS,
        "created": "2026-01-02T03:04:05",
    }  # fmt: skip
    return TuningChoice(**{**plain, **changes})
