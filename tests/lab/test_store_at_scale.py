"""The table of scale has a row for every command that must work in bounded memory."""

from lab import store_at_scale
from lab.store_at_scale import Scale, measured


def test_every_command_that_reads_all_records_is_measured(tmp_path, monkeypatch):
    monkeypatch.setattr(store_at_scale, "_timed", lambda what, caches, *words: {"what": what, "command": words[0]})
    monkeypatch.setattr(store_at_scale, "one_more", lambda scale, day: None)
    rows = list(measured(Scale(9, 3, tmp_path), tmp_path / "cache"))
    assert {"trend", "check", "comment", "report", "export"} == {row["command"] for row in rows}
    assert len(rows) == len({row["what"] for row in rows})
