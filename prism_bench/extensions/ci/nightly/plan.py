"""Plan of a nightly run: its options and places, and the commands that do the same step by step."""

import os
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from prism_bench.analysis.compare.verdict import START
from prism_bench.errors import UsageError
from prism_bench.io.project import relative
from prism_bench.monitor.devices import VISIBLE

_RECORD = "RECORD"  # the path of the record, which has its name when it is measured


@dataclass(frozen=True)
class NightlyKeys:
    """Keys of the table `nightly` of the project's configuration; options of the command win over them.

    `run` are cases and options of `prism-bench run`; `history` fetches the history before and keeps it afterwards.
    """

    gpus: int = 1
    run: tuple[str, ...] = ()
    history: bool = False
    asv: bool = True


@dataclass(frozen=True)
class NightlyPlan:
    """What is measured (`words` of `prism-bench run`, on `gpus`), in which project, and where the results go.

    Of the words, `processes` is how many measure each case, and `options` are all but those and the cases.
    """

    root: Path
    words: tuple[str, ...]
    gpus: int
    catalogue: Path | None
    runs: Path
    site: Path
    noise: Path
    asv: bool = True
    history: str | None = None  # its address, where it is fetched and kept
    processes: int = START
    options: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        visible = os.environ.get(VISIBLE)
        if visible is not None and self.gpus > 1 and len(visible.split(",")) < self.gpus:
            raise UsageError(f"--gpus {self.gpus}: {VISIBLE}={visible} names fewer; give as many, or unset it")

    @property
    def alert_state(self) -> Path:
        """The folder of the alerts that were sent."""
        return self.runs.parent / "alerts"

    @property
    def devices(self) -> list[str]:
        """The GPU of each part, as CUDA_VISIBLE_DEVICES names it."""
        visible = os.environ.get(VISIBLE)
        return visible.split(",") if visible else [str(i) for i in range(self.gpus)]

    def shown(self, path: Path) -> str:
        """Return a path as a user in the current folder would write it."""
        return str(relative(path))

    def run_words(self, part: int, output: Path) -> list[str]:
        """Return the arguments of `prism-bench` for a part, counted from 1; of several, `output` is its record."""
        words = ["run", "--runs", str(self.runs), *self._catalogue()]
        if self.gpus > 1:
            words += ["--lanes", str(max(1, (os.cpu_count() or 1) // self.gpus))]
        words += self.words
        return [*words, "--part", f"{part}/{self.gpus}", "--output", str(output)] if self.gpus > 1 else words

    def again_words(self, output: Path, cases: Sequence[str], processes: int) -> list[str]:
        """Return the arguments of `prism-bench` that measure cases again; peers were measured before."""
        words = ["run", *self._catalogue(), *self.options, "--no-peers", "--processes", str(processes)]
        return [*words, "--output", str(output), *cases]

    def _catalogue(self) -> list[str]:
        return ["--catalogue", str(self.catalogue)] if self.catalogue else []

    def commands(self, logs: Path) -> Iterator[str]:
        """Yield the commands that do the same, one a line."""
        if self.history:
            yield _command("history", "fetch", "--to", self.history, "--runs", str(self.runs))
        parts = [logs / f"{part}.json.gz" for part in range(1, self.gpus + 1)]
        for part, output in enumerate(parts, 1):
            device = f"{VISIBLE}={self.devices[part - 1]} " if self.gpus > 1 else ""
            yield device + _command(*self.run_words(part, relative(output)))
        if self.gpus > 1:
            yield _command("merge", *map(str, map(relative, parts)), "--runs", str(self.runs))
        files = "--markdown", str(self.site / "check.md"), "--junit", str(self.site / "check.xml")
        places = "--runs", str(self.runs), "--noise", str(self.noise)
        yield _command("check", _RECORD, *places, *self._catalogue(), "--alert", *files)
        yield _command("report", _RECORD, "--runs", str(self.runs), *self._catalogue(), "--output", str(self.site))
        if self.history:
            yield _command("history", "keep", "--to", self.history, "--runs", str(self.runs))


def _command(*words: str) -> str:
    return shlex.join(["prism-bench", *words])
