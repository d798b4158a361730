"""Programs of other extensions that are measured under each allocator."""

from prism_bench.extension import installed
from prism_bench.run.task_worker import Programs


def installed_programs() -> Programs | None:
    """Return the programs that an installed extension offers; None where there are none."""
    offers = (extension for extension in installed() if extension.programs)
    return next((extension.function(str(extension.programs))() for extension in offers), None)
