"""`prism-bench check`: whether a record passes the gate, and the baseline that later records are compared with."""

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from prism_bench.cli import measuring, options
from prism_bench.errors import ResultsError
from prism_bench.units import count_text

NAME = "check"
_AcceptOption = Annotated[
    bool, typer.Option("--accept", help="Make the record the baseline of its device, without judging it.")
]
_OutputOption = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="Write the baseline to this file, not next to the device's budgets."),
]


def command(
    record: options.RecordArgument = None,
    runs: options.RunsOption = options.DEFAULT_RUNS,
    catalogue: options.CatalogueOption = None,
    markdown: Annotated[Path | None, typer.Option(help="Write Markdown for a pull request to this file.")] = None,
    junit: Annotated[Path | None, typer.Option(help="Write JUnit XML to this file.")] = None,
    github: Annotated[bool, typer.Option("--github", help="Print GitHub annotations as well.")] = False,
    alert: Annotated[
        bool, typer.Option("--alert", help="Alert the webhooks of PRISM_BENCH_WEBHOOK and PRISM_BENCH_SLACK_WEBHOOK.")
    ] = False,
    alert_state: Annotated[
        Path | None, typer.Option(help="Keep in this folder which alerts were sent; default: <runs>/../alerts.")
    ] = None,
    noise: measuring.NoiseOption = measuring.DEFAULT_NOISE,
    accept: _AcceptOption = False,
    require_device: Annotated[str | None, typer.Option(help="Refuse to accept a record of any other device.")] = None,
    output: _OutputOption = None,
    json: options.JsonOption = False,
) -> None:
    """Check a record against its budgets, baseline and history.

    Did it run well, are its budgets met, is it slower than the baseline, the last record or its own past?

    With --accept nothing is judged: the record's medians are kept as the baseline of its device, next to its budgets.
    Without RECORD they are those of the newest commit.

    Ends with 2 where nothing could be judged. Unmeasured budgets count as neither met nor missed.
    """
    judging = {"--markdown": markdown, "--junit": junit, "--github": github}
    judging |= {"--alert": alert, "--alert-state": alert_state}
    accepting = {"--require-device": require_device, "--output": output}
    if accept:
        options.refuse(judging, "leave it out with --accept")
        _accept(record, runs, catalogue, require_device, output, json=json)
        return
    options.refuse(accepting, "it is for --accept")
    from prism_bench.analysis.gate.checks import judged
    from prism_bench.io.documents import no_collection
    from prism_bench.report import gate
    from prism_bench.report.terminal import gate as terminal

    kernels = options.open_catalogue(catalogue)
    state = alert_state or runs.parent / "alerts"
    with gate.failures(state, options.remark) if alert else nullcontext():
        with options.err().status("reading records"), no_collection():
            passed = judged(record, kernels, runs, noise)
        if json:
            options.print_json(gate.view(passed))
        else:
            options.out().print(terminal.view(passed), crop=False)
        gate.write_files(passed, markdown, junit)
    if github:  # on standard error where JSON is on the other stream: GitHub reads both
        for line in gate.lines(passed, kernels, Path.cwd()):
            typer.echo(line, err=json)
    if alert:
        gate.send(passed, state, options.remark)
    raise SystemExit(passed.exit_code)


def _accept(
    record: Path | None, runs: Path, catalogue: Path | None, device: str | None, output: Path | None, *, json: bool
) -> None:
    """Write the record's medians as the baseline of its device; refuse a record of another `device`."""
    from prism_bench.analysis.gate.budgets import baseline_of, baseline_path, known_case, write_baseline
    from prism_bench.record import store

    source, kernels = record or store.newest_commit(runs), options.open_catalogue(catalogue)
    if record is None and source != (last := store.newest(runs)):
        options.remark(f"{source.name} is of the newest commit; {last.name} was measured later", "yellow")
    # A reader elsewhere can follow the record's path where it is relative to the current folder, or is a name.
    path, here = source.resolve(), Path.cwd()
    portable = path.relative_to(here).as_posix() if path.is_relative_to(here) else path.name
    baseline = baseline_of(store.read(source), portable)
    if device and device != baseline.device:
        raise ResultsError(f"{source}: it is of {baseline.device}, not of {device}")
    for case in dict.fromkeys(case for case, _ in baseline.seconds):
        known_case(case, kernels, str(source))
    target = write_baseline(baseline, output or baseline_path(baseline.device, kernels))
    count = len({case for case, _ in baseline.seconds})
    if json:
        options.print_json({"path": str(target), "record": str(source), "device": baseline.device, "cases": count})
    else:
        options.line(f"baseline: {count_text(count, 'case')} of {source.name} for {baseline.device}: {target}")
