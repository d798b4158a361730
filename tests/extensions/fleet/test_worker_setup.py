"""Local workers of a fleet ignore Ctrl-C; Dask looks up the hook by its name."""

import subprocess
import sys


def test_dask_makes_local_workers_ignore_ctrl_c():
    script = (
        "import signal\n"
        "from distributed.preloading import Preload\n"
        "preload = Preload(None, 'prism_bench.extensions.fleet.worker_setup', [], '.')\n"
        "import asyncio\n"
        "asyncio.run(preload.start())\n"
        "print(signal.getsignal(signal.SIGINT) is signal.SIG_IGN)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "True" == done.stdout.strip(), done.stderr
