"""`prism-bench doctor`: what works here, what does not, and its cure."""

from dataclasses import asdict
from typing import Annotated, NoReturn

import typer

from prism_bench.cli import options
from prism_bench.errors import UsageError

NAME = "doctor"
_LONGEST = 300.0  # seconds


def command(
    all: options.AllOption = False,
    gpu: Annotated[bool, typer.Option("--gpu", help="Check whether the GPU is fit to measure, and its noise.")] = False,
    seconds: options.SecondsOption = None,
    json: options.JsonOption = False,
) -> None:
    """Check what works on this machine and what does not.

    Prints what can be done here, what cannot, and the checks that are broken or worth a note, with cause and cure: of
    the driver, GPUs, CUDA, libraries, profilers, the host and extensions. --all prints the checks that passed as well.

    With --gpu, checks instead whether times of the first GPU can be trusted: clocks, power, heat, memory errors,
    neighbours, and the noise of cold launches. The answer is yes, with care, no, or unknown.

    Ends with 1 where something is broken, or the GPU is not fit; with 3 where that is unknown. Something that is
    only missing leaves the rest working, and ends with 0.
    """
    if gpu:
        if seconds is not None and not 1 <= seconds <= _LONGEST:
            raise UsageError(f"--seconds {seconds:g}: the noise is measured for 1 to {_LONGEST:.0f} seconds")
        _examine_gpu(seconds, json)
    if seconds is not None:
        raise typer.BadParameter("--seconds is the time of the probe, which --gpu makes")
    from prism_bench.doctor import examine
    from prism_bench.report.terminal.machine import doctor_view

    with options.err().status("checking"):
        checks = list(examine())
    if json:
        options.print_json([{"group": group, **asdict(check)} for group, check in checks])
    else:
        options.out().print(doctor_view(checks, all), highlight=False)
    raise SystemExit(1 if any(check.state == "broken" for _, check in checks) else 0)


def _examine_gpu(seconds: float | None, json: bool) -> NoReturn:
    """Print whether the GPU is fit to measure, and exit."""
    from prism_bench.doctor.fitness import SECONDS, examine_gpu
    from prism_bench.report.terminal.machine import fitness_json, fitness_view

    with options.err().status("examining the GPU") as status:
        fitness = examine_gpu(seconds or SECONDS, lambda share: status.update(f"probing the GPU: {share:.0%}"))
    if json:
        options.print_json(fitness_json(fitness))
    else:
        options.out().print(fitness_view(fitness), highlight=False)
    raise SystemExit(fitness.exit_code)
