"""Set-up of the workers that a run starts on its own host: Ctrl-C in their terminal is for the run, which ends them."""

import signal


def _dask_setup(worker: object) -> None:
    """Ignore SIGINT; Dask calls this when the worker starts."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
