"""What a profiler watches: every case of an order launched once between marks, and verified; a program of its own.

    python -m prism_bench.studies.profile_worker ORDER EVENTS

ORDER is a JSON file with backend, catalogue, cases, verify, traffic, seconds, case_seconds, once; to EVENTS goes a line
of JSON per event: {"begin": case}, {"at": what is done with it}, {"late": case}, {"end": case, "status", "reason",
"launches", "following"}, {"left": [cases]}. A case that fails is told and passed over. What makes the device useless,
or takes too long, ends the process: whoever started it goes on with the rest in another.
"""

import json
import os
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from threading import Timer

from prism_bench.backends import open_backend
from prism_bench.catalogue import discover
from prism_bench.errors import BackendUnavailable
from prism_bench.kernel import Launch
from prism_bench.run.measuring import is_sticky
from prism_bench.run.verification import compare_outputs, complaint, passed
from prism_bench.strict_json import json_line
from prism_bench.studies.marks import Marks

TOO_LONG, STICKY = 70, 71  # exit statuses


class Watched:
    """The cases of one order on one backend."""

    def __init__(self, backend, order, tell):
        self._backend, self._order, self._tell = backend, order, tell
        self._marks = Marks(backend.xp)

    def cases(self, catalogue) -> None:
        """Every case of the order, until its time is over."""
        names, deadline = self._order["cases"], time.monotonic() + self._order["seconds"]
        with self._marks.profiled() if self._order["once"] else nullcontext():
            for done, name in enumerate(names):
                if time.monotonic() > deadline:
                    self._tell({"left": names[done:]})
                    return
                self._tell({"begin": name})
                self._tell({"end": name, **self._guarded(catalogue.case(name))})

    def _guarded(self, case):
        guard = Timer(self._order["case_seconds"], self._late, (case,))
        guard.daemon = True
        guard.start()
        try:
            return self._case(case)
        except MemoryError as error:
            return {"status": "skipped", "reason": f"{case.name}: out of memory: {error}", "launches": 0}
        except BackendUnavailable as error:
            return {"status": "skipped", "reason": str(error), "launches": 0}
        except Exception as error:  # a spec's own functions may raise anything
            failed = {"status": "failed", "reason": f"{case.name}: {type(error).__name__}: {error}", "launches": 0}
            if is_sticky(self._backend, error):
                self._tell({"end": case.task, **failed})
                os._exit(STICKY)
            return failed
        finally:
            guard.cancel()

    def _late(self, case):
        self._tell({"late": case.task})
        os._exit(TOO_LONG)

    def _case(self, case):
        inputs = case.inputs()
        with self._backend.prepare(case, inputs) as runnable:
            self._at("a first launch, which the profiler does not watch")
            runnable()  # loaded, and its caches of instructions warm
            runnable.reset(inputs)
            self._marks.wait()
            self._at("the launch that the profiler watches")
            following = self._launch(case, runnable)
            self._at("comparing with the reference")
            entries = self._compared(case, inputs, runnable) if self._order["verify"] else []
        launches = sum(isinstance(step, Launch) and not step.is_empty for step in case.plan.steps(self._backend.device))
        status, reason = ("ok", None) if passed(entries) else ("wrong", complaint(case, self._backend.name, entries))
        return {"status": status, "reason": reason, "launches": launches, "following": following}

    def _at(self, stage):
        self._tell({"at": stage})

    def _launch(self, case, runnable):
        """Launch between the marks; how many kernels of ours followed, to drive what the case left in L2 to memory."""
        harness = getattr(self._backend, "harness", None) if self._order["traffic"] else None
        if harness:
            harness.clear_caches()
        with nullcontext() if self._order["once"] else self._marks.profiled():
            with self._marks.range(case.task):
                runnable()
            if harness:
                with self._marks.range(f"after {case.task}"):
                    harness.write_back()
        return int(harness is not None)

    def _compared(self, case, inputs, runnable):
        outputs = runnable.arrays(output.name for output in case.spec.outputs)
        return compare_outputs(self._backend, case, inputs, outputs, 0)


def main() -> None:
    """Work through the order."""
    order = json.loads(Path(sys.argv[1]).read_text())
    with Path(sys.argv[2]).open("a", buffering=1) as events:
        tell = lambda event: events.write(json_line(event) + "\n")  # noqa: E731
        backend = open_backend(order["backend"])
        Watched(backend, order, tell).cases(discover(order["catalogue"]))


if __name__ == "__main__":
    main()
