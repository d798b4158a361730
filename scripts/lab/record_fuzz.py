"""Every command that reads records, asked about damaged ones: none may end in a traceback or give a wrong number.

A damaged record is the newest of three; the two before it are sound. A command may refuse it by name, or read it and
distrust what is impossible in it. It may not crash, write outside of its folder, or say anything else than before of a
case that was not touched or of the other records.
"""

import csv
import gzip
import io
import json
import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from lab.record_mutations import Mutation, mutations
from prism_bench.record.schema import LONGEST, SHORTEST

DAMAGED = "20261105T000000Z-damaged.json.gz"


@dataclass(frozen=True)
class Answer:
    """What a command ended with and printed; `crash` is the traceback of what it did not catch."""

    code: int
    out: str
    err: str
    crash: str | None = None


@dataclass(frozen=True)
class FuzzBench:
    """The folder of the fuzz: `old` and `other` are sound records below `runs`, `part` is a part to merge with."""

    folder: Path
    runs: Path
    old: Path
    part: Path
    catalogue: Path

    @property
    def damaged(self) -> Path:
        """The place of the damaged record, next to the sound ones."""
        return self.old.with_name(DAMAGED)

    @property
    def outputs(self) -> Path:
        """The folder that commands write to."""
        return self.folder / "outputs"


Ask = Callable[[Sequence[object]], Answer]


def questions(bench: FuzzBench) -> dict[str, tuple[object, ...]]:
    """Return the words of every command that reads a record, by its name."""
    record, runs, out = bench.damaged, ("--runs", bench.runs), bench.outputs
    kernels = ("--catalogue", bench.catalogue)
    return {
        "show --json": ("show", record, "--json", *kernels),
        "trend --json": ("trend", *runs, "--json"),
        "export --all": ("export", "--all", *runs, "--output", out / "all.csv"),
        "exporter": ("exporter",),
        "show": ("show", record, *kernels),
        "check": ("check", record, *runs, *kernels, "--output", out / "check.md", "--output", out / "check.xml"),
        "check --json": ("check", record, *runs, *kernels, "--json"),
        "compare": ("compare", bench.old, record, "--all"),
        "compare --json": ("compare", record, bench.old, "--json"),
        "digest": ("comment", *runs, *kernels, "--since", "2026-01-01", "--output", out / "digest.html"),
        "report": ("report", *runs, *kernels, "--output", out / "site"),
        "export": ("export", record, "--output", out / "samples.csv"),
        "export asv": ("export", record, "--format", "asv", "--output", out / "asv"),
        "store merge": ("store", "merge", record, bench.part, "--runs", out / "merged", "--json"),
        "check --accept": ("check", record, "--accept", "--output", out / "baseline.toml", *kernels),
        "profile": ("profile", record, "--json"),
    }


ALWAYS = ("show --json", "trend --json", "export --all", "exporter")


@dataclass
class Findings:
    """Counts by mutation and command, and what went wrong."""

    asked: Counter = field(default_factory=Counter)
    codes: Counter = field(default_factory=Counter)
    records: Counter = field(default_factory=Counter)
    refused: Counter = field(default_factory=Counter)
    crashes: list[tuple[str, str, str, str]] = field(default_factory=list)
    wrong: list[tuple[str, str, str, str]] = field(default_factory=list)

    def add(self, other: "Findings") -> None:
        """Add what another part of the same fuzz found."""
        for name in ("asked", "codes", "records", "refused", "crashes", "wrong"):
            setattr(self, name, getattr(self, name) + getattr(other, name))


def fuzz(
    bench: FuzzBench, ask: Ask, *, seed: int, count: int, rotating: int = 3, seconds: float = math.inf
) -> Findings:
    """Ask about `count` damaged records: each the commands of ALWAYS and `rotating` others in turn.

    After so many `seconds` no other record is begun.
    """
    end = time.monotonic() + seconds
    sound = sound_record(bench)
    before = _Truth.of(bench, ask, sound)
    findings = Findings()
    others = [name for name in questions(bench) if name not in ALWAYS]
    for number, mutation in enumerate(mutations(sound, seed, count)):
        if time.monotonic() > end:
            break
        start = number * rotating % len(others)
        turn = [*others, *others][start : start + rotating]
        bench.damaged.write_bytes(mutation.data)
        findings.records[mutation.kind] += 1
        for name in (*ALWAYS, *turn):
            _ask(name, _answered(bench, ask, name), mutation, findings, before)
        _require_inside(bench, mutation, findings)
    bench.damaged.unlink(missing_ok=True)
    return findings


def sound_record(bench: FuzzBench) -> dict:
    """Return the JSON of the record that is damaged."""
    return json.loads(gzip.decompress(bench.old.read_bytes())) | {"created": "2026-11-05T00:00:00"}


def _answered(bench: FuzzBench, ask: Ask, name: str) -> Answer:
    """Run the command and return its answer; a table that it writes counts as printed."""
    table = bench.outputs / "all.csv"
    table.unlink(missing_ok=True)
    answer = ask(questions(bench)[name])
    return replace(answer, out=table.read_text("utf-8")) if name == "export --all" and table.is_file() else answer


def _ask(name: str, answer: Answer, mutation: Mutation, findings: Findings, before: "_Truth") -> None:
    """Count the answer, and keep it where it is none."""
    findings.asked[name] += 1
    findings.codes[name, answer.code] += 1
    what = (name, mutation.kind, mutation.place[:200])
    crash = answer.crash or (answer.err if "Traceback (most recent" in answer.err else None)
    if crash or answer.code not in (0, 1, 2, 3):
        findings.crashes.append((*what, crash or f"exit code {answer.code}"))
        return
    if name == "show --json" and answer.code == 2:
        findings.refused[mutation.kind] += 1
    findings.wrong += [(*what, words) for words in before.contradictions(name, answer, mutation)]


def _require_inside(bench: FuzzBench, mutation: Mutation, findings: Findings) -> None:
    """Check that nothing is outside the folders that commands may write to."""
    known = {bench.runs, bench.outputs, bench.part, bench.folder / "cache"}
    odd = [path for path in (*bench.folder.iterdir(), *bench.folder.parent.iterdir()) if path not in known]
    odd = [path for path in odd if path != bench.folder]
    merged = [path for path in (bench.outputs / "merged").glob("*/*") if path.parent.parent != bench.outputs / "merged"]
    for path in (*odd, *merged):
        findings.wrong.append(("files", mutation.kind, mutation.place[:200], f"something wrote {path}"))


@dataclass(frozen=True)
class _Truth:
    """What the commands say of the sound record, by command, file and case."""

    names: tuple[str, ...]
    said: Mapping[str, Mapping]

    @staticmethod
    def of(bench: FuzzBench, ask: Ask, sound: dict) -> "_Truth":
        bench.damaged.write_bytes(json.dumps(sound).encode())
        said = {name: values_in(name, _answered(bench, ask, name).out) for name in _VALUES}
        bench.damaged.unlink()
        return _Truth(tuple(case["name"] for case in sound["cases"]), said)

    def contradictions(self, name: str, answer: Answer, mutation: Mutation) -> Iterator[str]:
        """Yield differences to the answer before about parts that were not touched, and impossible values."""
        if name.endswith("--json") and answer.out:
            try:
                json.loads(answer.out, parse_constant=_refuse)
            except ValueError as error:
                yield f"no JSON: {error}"
                return
        if name not in _VALUES or (answer.code == 2 and not answer.out):
            return
        found = values_in(name, answer.out)
        yield from (f"{key} is {value}" for key, value in found.items() if not SHORTEST / 2 <= value <= LONGEST)
        if mutation.structured:
            for key, value in self._untouched(name, mutation, found).items():
                if key not in found or not math.isclose(found[key], value, rel_tol=1e-9):
                    yield f"{key} is {found.get(key)}, and was {value}"

    def _untouched(self, name: str, mutation: Mutation, found: Mapping) -> dict:
        """Return the values before of what the mutation leaves alone.

        Of the damaged file: the cases that were not touched, where the file was read at all.
        """
        read = any(key[0] == DAMAGED for key in found) and mutation.place.partition(" ")[0] != "cases"
        case = None if mutation.case is None else self.names[mutation.case]
        said = self.said[name].items()
        return {key: value for key, value in said if key[0] != DAMAGED or (read and key[1] != case)}


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is no JSON")


def values_in(name: str, out: str) -> dict[tuple[str, str, str], float]:
    """Return the times that a command printed, by file, case and metric."""
    return dict(_VALUES[name](out)) if out.strip() else {}


def _shown(out: str) -> Iterator[tuple]:
    for case in json.loads(out)["cases"]:
        for metric, one in case["derived"]["times"].items():
            yield (DAMAGED, case["name"], metric), one["median"]


def _exported(out: str) -> Iterator[tuple]:
    csv.field_size_limit(1 << 30)
    for row in csv.DictReader(io.StringIO(out)):
        if row["doubt"] == "" and row["subject"] == "kernel":
            yield (Path(row["file"]).name, row["case"], row["metric"]), float(row["value"])


def _served(out: str) -> Iterator[tuple]:
    plain = json.loads(out)
    for case, metric, value in () if plain["unreadable"] else plain["seconds"]:
        yield (DAMAGED, case, metric), value


_VALUES: dict[str, Callable[[str], Iterator[tuple]]] = {
    "show --json": _shown,
    "export --all": _exported,
    "exporter": _served,
}
