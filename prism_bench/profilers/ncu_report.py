"""ncu's own report files (.ncu-rep), read by NVIDIA's `ncu-report` where that is installed: no ncu, no GPU."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from prism_bench.errors import BackendUnavailable, ResultsError
from prism_bench.io.installation import pip_install
from prism_bench.profilers.launches import ProfiledLaunch, ProfiledValue, ProfilerAdvice
from prism_bench.profilers.numbers import to_si


def read(path: Path | str) -> list[ProfiledLaunch]:
    """Return the launches in the report; BackendUnavailable without the reader, ResultsError without a launch.

    A corrupt file makes the reader no trouble: it gives an empty report, which is an error here.
    """
    try:
        import ncu_report
    except ImportError:
        raise BackendUnavailable(
            f"reading .ncu-rep takes the package ncu-report ({pip_install('ncu')}); without it, export the "
            "report: ncu --import FILE --csv --page raw"
        ) from None
    if not Path(path).is_file():
        raise ResultsError(f"{path}: no such report")
    try:
        context = ncu_report.load_report(str(path))  # pyright: ignore[reportAttributeAccessIssue]  # without stubs
    except (RuntimeError, OSError) as error:
        raise ResultsError(f"{path}: not a readable report ({error})") from error
    ranges = [context.range_by_idx(i) for i in range(context.num_ranges())]
    actions = [one.action_by_idx(i) for one in ranges for i in range(one.num_actions())]
    if not actions:
        raise ResultsError(f"{path}: the report is empty or corrupt: it holds no launch")
    try:
        return [_launch(number, action) for number, action in enumerate(actions)]
    except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
        raise ResultsError(f"{path}: damaged report ({type(error).__name__}: {error})") from error


def _launch(number: int, action: Any) -> ProfiledLaunch:
    metrics = {name: _quantity(action.metric_by_name(name)) for name in action.metric_names()}
    extent = lambda what: tuple(int(_plain(metrics, f"launch__{what}_dim_{axis}", 1)) for axis in "xyz")  # noqa: E731
    major, minor = (_plain(metrics, f"device__attribute_compute_capability_{part}") for part in ("major", "minor"))
    return ProfiledLaunch(
        id=number,
        kernel=action.name(),
        metrics=metrics,
        device=int(_plain(metrics, "launch__device_id", 0)),
        capability=None if major is None else f"{major:.0f}.{minor:.0f}",
        grid=extent("grid"),
        block=extent("block"),
        ranges=_ranges(action),
        rules=tuple(_rule(one) for one in action.rule_results_as_dicts()),
    )


def _plain(metrics: Mapping[str, ProfiledValue], name: str, otherwise: Any = None) -> Any:
    found = metrics.get(name)
    return otherwise if found is None or found.value is None else found.value


def _quantity(metric: Any) -> ProfiledValue:
    unit = metric.unit() or ""
    if metric.kind() == metric.ValueKind_STRING or not metric.has_value():
        return ProfiledValue(None, unit, metric.as_string() or "")
    value = float(metric.as_double())
    if not math.isfinite(value):
        return ProfiledValue(None, unit, str(value))
    value, unit = to_si(value, unit)
    return ProfiledValue(value, unit, str(value))


def _ranges(action: Any) -> tuple[str, ...]:
    """Push/pop ranges around the launch, written as ncu's CSV writes them: `domain:range`."""
    state = action.nvtx_state()
    if state is None:
        return ()
    domains = [state.domain_by_id(i) for i in state.domains()]
    return tuple(f"{domain.name()}:{name}:" for domain in domains for name in domain.push_pop_ranges())


def _rule(result: Mapping[str, Any]) -> ProfilerAdvice:
    said, speedup = result["rule_message"], result.get("speedup_estimation", {})
    return ProfilerAdvice(
        name=result["rule_identifier"],
        kind=str(said["type"]),
        text=said["message"],
        speedup_kind=str(speedup.get("type", "")),
        speedup=speedup.get("speedup"),
    )
