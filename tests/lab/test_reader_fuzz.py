"""Some hundred bent files for every reader in seconds; scripts/fuzz_readers does ten thousand."""

import pytest
from lab import reader_fuzz
from lab.bending import Bent
from lab.reader_fuzz import BAD, table, verdicts
from lab.reader_subjects import Subject, sample_subjects, subjects

from prism_bench.errors import ResultsError


@pytest.mark.parametrize("subject", subjects(), ids=lambda subject: subject.name)
def test_bent_files_are_refused_by_name_or_read_rightly(subject):
    found = list(verdicts(60, 3, [subject]))
    assert [] == [one.words for one in found if one.outcome in BAD]
    assert 60 == len(found)


def test_bent_captures_of_others_are_refused_by_name_or_read_rightly(samples):
    found = list(verdicts(90, 4, sample_subjects(samples)))
    assert [] == [one.words for one in found if one.outcome in BAD]


def planted(read, allowed=lambda path: {0.0}):
    """A subject whose reader has the behaviour; its file says 0."""

    def make(folder):
        path = folder / "file"
        path.write_text("0")
        return path

    return Subject("planted", make, (lambda path, draw: Bent("nothing", "nothing was done"),), read, allowed)


def outcomes(read, monkeypatch):
    monkeypatch.setattr(reader_fuzz, "_intact", lambda subject: {})
    (found,) = verdicts(1, 1, [planted(read)])
    return found.outcome


def refusing(words):
    def read(path):
        raise ResultsError(words.format(path=path))

    return read


def test_the_judge_knows_good_from_bad(monkeypatch):
    assert "read" == outcomes(lambda path: {"a": 0.0}, monkeypatch)
    assert "wrong number" == outcomes(lambda path: {"a": 7.0}, monkeypatch)
    assert "wrong number" == outcomes(lambda path: {"a": float("inf")}, monkeypatch)
    assert "traceback" == outcomes(lambda path: {"a": 1 / 0}, monkeypatch)
    assert "refused" == outcomes(refusing("{path}: damaged"), monkeypatch)
    assert "unnamed" == outcomes(refusing("damaged"), monkeypatch)
    assert "unnamed" == outcomes(refusing("{path}: damaged\nhere"), monkeypatch)


def test_the_same_seed_bends_the_same_files():
    first, second = ([(one.kind, one.outcome) for one in verdicts(26, 9)] for _ in range(2))
    assert first == second


def test_the_table_counts_every_file_once():
    count = len(subjects())
    rows = table(verdicts(2 * count, 9))
    assert [2] * count + [2 * count] == [row["files"] for row in rows]
    assert 2 * count == sum(rows[-1][name] for name in reader_fuzz.OUTCOMES)
