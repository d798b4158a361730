"""Watch a GPU for a few seconds and print the alerts; without a GPU a script replaces it."""

from collections.abc import Sequence

from prism_bench.errors import BackendUnavailable, UsageError
from prism_bench.monitor.alerts import RULES, ActiveAlert, AlertWatch
from prism_bench.monitor.station import station

# What a device that gets hot and full would report, second by second: degrees Celsius, and the share of memory in use.
SCRIPT = [(0, 71.0, 0.40), (2, 84.0, 0.70), (8, 86.0, 0.88), (12, 80.0, 0.97), (20, 74.0, 0.60)]


def watch_device(seconds: float = 3.0) -> None:
    """Print every reading of the devices that CUDA sees."""
    with station(None, RULES, hertz=5.0, once=False) as watching:
        for moment in watching.moments(interval=0.5, duration=seconds):
            for one in moment.snapshot["status"]["devices"]:
                values = one["values"]
                print(f"{one['name']}: {values['temperature']} C, {values['power']} W, clock {values['sm_clock']} Hz")
            print_alerts(moment.raised, moment.over)


def watch_script() -> None:
    """Apply the same rules to scripted values."""
    now = [0.0]
    watch = AlertWatch(RULES, clock=lambda: now[0])
    for seconds, celsius, share in SCRIPT:
        now[0] = float(seconds)
        print(f"{seconds:3} s: {celsius:.0f} C, {share:.0%} of the memory in use")
        print_alerts(*watch.update("scripted", {"temperature": celsius, "memory_share": share}))


def print_alerts(raised: Sequence[ActiveAlert], over: Sequence[ActiveAlert]) -> None:
    """Print the alerts that began and those that are over."""
    for one in raised:
        print(f"      raised, {one.rule.severity}: {one.message}")
    for one in over:
        print(f"      over: {one.rule.name}")


def main() -> None:
    """Run the example."""
    try:
        watch_device()
    except (BackendUnavailable, UsageError) as error:
        print(f"scripted values, because {error}")
        watch_script()


if __name__ == "__main__":
    main()
