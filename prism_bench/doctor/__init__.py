"""What works on this machine and what does not: a finding for each check, with cause and cure."""

from collections.abc import Callable, Iterator

from prism_bench.doctor import checks
from prism_bench.doctor.checks import STATES, Check, broken
from prism_bench.extension import installed

__all__ = ["STATES", "Check", "examine"]

GROUPS: dict[str, Callable[[], Iterator[Check]]] = {
    "device": checks.device_checks,
    "cuda": checks.cuda_checks,
    "libraries": checks.libraries_checks,
    "profiling": checks.profiling_checks,
    "host": checks.host_checks,
}


def groups() -> Iterator[tuple[str, Callable[[], Iterator[Check]]]]:
    """Yield the groups of checks by name, those of extensions last."""
    yield from GROUPS.items()
    for extension in installed():
        for reference in extension.checks:
            yield extension.name, extension.function(reference)


def examine() -> Iterator[tuple[str, Check]]:
    """Yield every group's name with each of its checks; a check that itself fails is a finding like another."""
    for name, group in groups():
        try:
            for check in group():
                yield name, check
        except Exception as error:  # whatever is wrong here is a finding of the doctor
            yield name, broken(name, f"{type(error).__name__}: {error}", "the check itself failed", "report this")
