"""`prism-bench doctor`: what works here, what does not, and its cure."""

from dataclasses import asdict
from typing import Annotated

import typer

from prism_bench import options

NAME = "doctor"


def command(
    all: Annotated[bool, typer.Option("--all", help="Show every check, also those that passed.")] = False,
    json: options.JsonOption = False,
) -> None:
    """Check what works on this machine and what does not.

    Prints what can be done here, what cannot, and the checks that are broken or worth a note, with cause and cure: of
    the driver, GPUs, CUDA, libraries, profilers, the host and extensions.

    Ends with 1 where something is broken. Something that is only missing leaves the rest working, and ends with 0.
    """
    from prism_bench.doctor import examine
    from prism_bench.report.terminal.doctor import doctor_view

    with options.err().status("checking"):
        found = list(examine())
    if json:
        options.print_json([{"group": group, **asdict(check)} for group, check in found])
    else:
        options.out().print(doctor_view(found, all), highlight=False)
    raise SystemExit(1 if any(check.state == "broken" for _, check in found) else 0)
