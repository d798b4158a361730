"""What `--fleet` names: the GPUs of this host, a scheduler's address, jobs of Slurm, or hosts reached by SSH."""

import re
from dataclasses import dataclass
from typing import Literal

from prism_bench.errors import UsageError

FORMS = "local, an address such as tcp://host:8786, slurm:JOBS, or ssh:host1,host2"
_ADDRESS = re.compile(r"(tcp|tls|ucx|ws|wss)://[^\s/]+:\d{1,5}")
FleetKind = Literal["local", "address", "slurm", "ssh"]


@dataclass(frozen=True)
class FleetSpec:
    """A fleet by its `kind`: the scheduler's `address`, or the `hosts` where one worker for each mention starts.

    `workers` is how many workers to start, of `slurm` the number of jobs; of `local` None is one for each GPU.
    """

    kind: FleetKind
    address: str = ""
    hosts: tuple[str, ...] = ()
    workers: int | None = None


def parse(text: str, workers: int | None = None) -> FleetSpec:
    """Return the fleet that the words name; a UsageError lists the forms, and where `workers` have no meaning."""
    kind, _, rest = text.partition(":")
    if text == "local":
        return FleetSpec("local", workers=workers)
    if workers is not None:
        raise UsageError(f"--workers {workers}: only local starts so many; {text} names its workers itself")
    if _ADDRESS.fullmatch(text):
        return FleetSpec("address", address=text)
    if kind == "slurm" and re.fullmatch(r"[1-9]\d{0,3}", rest):
        return FleetSpec("slurm", workers=int(rest))
    hosts = tuple(rest.split(","))
    if kind == "ssh" and all(re.fullmatch(r"[\w.@-]+", host) for host in hosts):
        return FleetSpec("ssh", hosts=hosts)
    raise UsageError(f"--fleet {text}: it is {FORMS}")
