"""Damaged records, a small part of what `scripts/fuzz` asks about; and the fuzz finds what is planted."""

from functools import cache
from pathlib import Path

import pytest
from lab import record_fuzz
from lab.fuzz_processes import asking, bench_in, table
from lab.record_fuzz import Answer, fuzz
from lab.record_mutations import mutations

from prism_bench.cli import main
from prism_bench.errors import ResultsError
from prism_bench.io.documents import json_text
from prism_bench.record import store
from prism_bench.record.schema import checked
from prism_bench.record.store.points import points_in
from prism_bench.record.store.records import text_at
from prism_bench.spec.metric import CODE
from prism_bench.workflows.compile_table import table_text
from prism_bench.workflows.exported import exported

REPORTS = Path(__file__).resolve().parents[2] / "reports"


@cache
def stored():
    """The newest record and a profiled one, which no test changes: each is read once."""
    return store.read(store.newest(REPORTS / "runs")), store.read(max((REPORTS / "profiles").glob("*/*.json.gz")))


@pytest.fixture
def bench(tmp_path, monkeypatch):
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path / "fuzz" / "cache"))
    (tmp_path / "fuzz").mkdir()
    monkeypatch.chdir(tmp_path / "fuzz")
    return bench_in(tmp_path / "fuzz", *stored())


@pytest.fixture
def ask(bench, monkeypatch):
    import typer.main

    monkeypatch.setattr(typer.main, "get_command", cache(typer.main.get_command))
    return asking(main, lambda: json_text(vars(exported(bench.runs, bench.catalogue))))


def points(record):
    """Return what the quick reader says of a record's measurements: the median, and whether it is trusted."""
    _, columns = points_in(record, "file")
    names = ("case", "metric", "subject")
    keys = zip(*(columns[name] for name in names), strict=True)
    return {
        key: (value, doubt == "")
        for key, value, doubt in zip(keys, columns["value"], columns["doubt"], strict=True)
        if key[1] not in (*CODE, "energy")
    }


def test_both_readers_refuse_and_read_the_same(bench):
    outcomes = []
    for mutation in mutations(record_fuzz.sound_record(bench), 5, 300):
        bench.damaged.write_bytes(mutation.data)
        try:
            record = store.read(bench.damaged)
        except ResultsError as error:
            outcomes.append(False)
            assert str(error).startswith(str(bench.damaged)), mutation.place
            with pytest.raises(ResultsError):
                checked(text_at(bench.damaged), "here")
            continue
        outcomes.append(True)
        told = {
            (case.name, one.metric, one.subject): (
                pytest.approx(one.median, rel=1e-9), one.valid and case.status == "ok",
            )
            for case in record.cases for one in case.measurements if one.samples
        }  # fmt: skip
        quick = points(checked(text_at(bench.damaged), "here"))
        assert {key: trusted for key, (_, trusted) in told.items()} == {key: one[1] for key, one in quick.items()}
        assert all(quick[key][0] == value for key, (value, trusted) in told.items() if trusted), mutation.place
    assert 30 < sum(outcomes) < 270


def test_no_command_ends_in_a_traceback_or_says_something_wrong(bench, ask):
    found = fuzz(bench, ask, seed=1, count=20, rotating=4)
    assert ([], []) == (found.crashes, found.wrong)
    assert (20, 160) == (sum(found.records.values()), sum(found.asked.values()))
    assert 0 < sum(found.refused.values()) < 20
    assert "command,show --json,20," in table_text(table(found))


def planted(ask, words, answer):
    """The answers of `ask`, but for one command that answers `answer`."""
    return lambda asked: answer(ask(asked)) if asked[0] == words else ask(asked)


@pytest.mark.parametrize(
    ("command", "answer", "kept"),
    [
        ("show", lambda one: Answer(1, "", "", "Traceback: planted"), "crashes"),
        ("trend", lambda one: Answer(0, one.out, "Traceback (most recent call last)"), "crashes"),
        ("trend", lambda one: Answer(77, one.out, one.err), "crashes"),
        ("trend", lambda one: Answer(0, '{"a": NaN}', ""), "wrong"),
    ],
)
def test_what_is_planted_is_found(bench, ask, command, answer, kept):
    found = fuzz(bench, planted(ask, command, answer), seed=1, count=2, rotating=0)
    assert getattr(found, kept)


def test_a_number_that_changed_is_found(bench, ask):
    answers = []

    def twice(answer):
        answers.append(answer)
        return answer if len(answers) == 1 else Answer(0, answer.out.replace("e-06", "e-05"), answer.err)

    found = fuzz(bench, planted(ask, "exporter", twice), seed=1, count=4, rotating=0)
    assert {"exporter"} == {name for name, *_ in found.wrong}


def test_a_file_outside_is_found(bench, ask):
    def strays(answer):
        (bench.folder.parent / "stray").write_bytes(b"")
        return answer

    found = fuzz(bench, planted(ask, "exporter", strays), seed=1, count=1, rotating=0)
    assert any("stray" in words for *_, words in found.wrong)


def test_a_fuzz_can_be_made_again():
    sound = {"a": [1, 2, {"b": "c"}], "cases": [{"name": "k"}]}
    first, second = (list(mutations(sound, 3, 50)) for _ in range(2))
    assert first == second != list(mutations(sound, 4, 50))
