"""Set-up of local workers, which ignore Ctrl-C in their terminal: the run gets it, and ends them."""

import signal


def dask_setup(worker: object) -> None:
    """Ignore SIGINT; Dask calls this when the worker starts."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
