"""Programs of other extensions that are measured under each allocator."""

from prism_bench.extension import offered
from prism_bench.run.task_worker import Programs


def installed_programs() -> Programs | None:
    """Return the programs that an installed extension offers; None where there are none."""
    offer = offered("programs")
    return offer() if offer else None
