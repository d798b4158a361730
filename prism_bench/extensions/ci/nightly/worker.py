"""A part of a nightly run: `python -m prism_bench.extensions.ci.nightly.worker run ...`.

It runs the command line. It ends, and saves its measurements, when the nightly run that started it ends for any reason:
its standard input is a pipe that closes then.
"""

import os
import select
import signal
import sys
from threading import Thread


def _end_with_parent() -> None:
    """Send this process SIGTERM when the other end of its standard input closes."""
    end = select.poll()
    end.register(0, 0)  # a hang-up is reported without being selected
    end.poll()
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    from prism_bench.__main__ import main

    Thread(target=_end_with_parent, daemon=True).start()
    sys.argv[0] = "prism-bench"
    main()
