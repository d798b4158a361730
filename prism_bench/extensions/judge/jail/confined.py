"""Inner stage of a jail: set the limits of resources, install the seccomp filter, and run the worker's program.

Started as `python -m prism_bench.extensions.judge.jail.confined JAIL MODULE ARGUMENTS...`, already in the jail's
namespaces.
"""

import os
import resource
import sys

from prism_bench.extensions.judge.jail.jail import Jail, be_killed_first
from prism_bench.extensions.judge.jail.seccomp import refuse_system_calls


def main(text: str, module: str, *arguments: str) -> None:
    """Confine this process to what the jail allows, and run the module in it."""
    jail = Jail.read(text)
    be_killed_first()
    for kind, most in (
        (resource.RLIMIT_DATA, jail.memory_bytes),
        (resource.RLIMIT_CPU, jail.cpu_seconds),
        (resource.RLIMIT_NPROC, jail.processes),
        (resource.RLIMIT_FSIZE, jail.scratch_bytes),
        (resource.RLIMIT_CORE, 0),
    ):
        if most is not None:
            resource.setrlimit(kind, (most, most))
    usual, _ = resource.getrlimit(resource.RLIMIT_STACK)
    resource.setrlimit(resource.RLIMIT_STACK, (usual, usual))  # the memory limit does not count stacks
    refuse_system_calls()
    os.execv(sys.executable, [sys.executable, "-m", module, *arguments])


if __name__ == "__main__":
    main(*sys.argv[1:])
