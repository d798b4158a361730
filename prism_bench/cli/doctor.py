"""`prism-bench doctor`: what works here, what does not, and its cure."""

from dataclasses import asdict

from prism_bench import options

NAME = "doctor"


def command(json: options.JsonOption = False) -> None:
    """Check what works on this machine and what does not.

    Driver, GPUs, CUDA, libraries, profilers, host and extensions: one finding per check, with cause and cure.

    Ends with 1 where something is broken. Something that is only missing leaves the rest working, and ends with 0.
    """
    from prism_bench.doctor import examine
    from prism_bench.report.terminal.doctor import checks_view

    with options.err().status("checking"):
        found = list(examine())
    if json:
        options.print_json([{"group": group, **asdict(check)} for group, check in found])
    else:
        options.out().print(checks_view(found), highlight=False)
    raise SystemExit(1 if any(check.state == "broken" for _, check in found) else 0)
