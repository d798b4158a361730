"""`scripts/claims` on the null backend: claims are made once and replayed once, and made again with their code."""

import json
from dataclasses import replace

import pytest
from lab.claims import own_making, together
from lab.claims.own import main
from lab.claims.own_files import answer_file, claim_files, listed

from prism_bench.backends.null import SCRIPT
from prism_bench.errors import ResultsError
from prism_bench.record import store
from tests.extensions.claims.planted import plant, record

LIST = '[[claim]]\nname = "tripled"\nkernel = "triple"\nbaseline = "triple:naive"\ncase = "S0"\n'


@pytest.fixture
def words(tmp_path, monkeypatch):
    """The command line on a planted catalogue whose variant takes twice as long."""
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"triple:naive*": {"seconds": 2e-6}}))
    monkeypatch.setenv(SCRIPT, str(script))
    monkeypatch.setenv("PRISM_BENCH_MACHINE", "planted")
    plant(tmp_path / "kernels")
    folder = tmp_path / "claims"
    folder.mkdir()
    (folder / "list.toml").write_text(LIST)
    catalogue = ("--catalogue", str(tmp_path / "kernels"))
    return ("--folder", str(folder), *catalogue, "--backend", "null", "--processes", "2")


def test_claims_are_made_and_replayed_once(words, tmp_path, capsys):
    assert 0 == main([*words, "--time-limit", "0"])
    assert "left for the next call" in capsys.readouterr().out
    assert 0 == main(words)
    printed = capsys.readouterr().out
    assert "tripled.json: triple[n=1000] on no device (scripted times): 2.00x of triple:naive" in printed
    assert "tripled.replayed-on-planted.json: reproduced" in printed
    (path,) = claim_files(tmp_path / "claims")
    before = path.read_bytes()
    assert 0 == main(words)
    assert 2 == capsys.readouterr().out.count(": kept")
    source = tmp_path / "kernels" / "arith" / "triple.cu"
    source.write_text(f"{source.read_text()}// changed\n")
    assert 0 == main([*words, "--only", "make"])
    assert before != path.read_bytes()


PEER = '[[claim]]\nname = "peer"\nkernel = "triple"\ncase = "S0"\n'


def test_claims_of_a_record_need_no_measurement(words, tmp_path, capsys, monkeypatch):
    (tmp_path / "claims" / "list.toml").write_text(LIST + PEER)
    path = store.save(record(), tmp_path / "record.json.gz")
    monkeypatch.setattr(own_making, "measured_together", None)
    assert 0 == main([*words, "--only", "make", "--record", str(path)])
    printed = capsys.readouterr().out
    assert "2.00x of triple:naive" in printed and "3.00x of torch (torch 2.11.0" in printed


def test_what_a_record_cannot_give_is_measured(words, tmp_path, capsys):
    unverified = replace(record(), cases=tuple(replace(one, verification=()) for one in record().cases))
    path = store.save(unverified, tmp_path / "record.json.gz")
    assert 0 == main([*words, "--only", "make", "--record", str(path)])
    assert "(measured now, for the record: triple" in capsys.readouterr().out


def test_many_claims_are_replayed_by_one_run_of_each_sort(words, tmp_path, capsys, monkeypatch):
    more = PEER.replace('"peer"', '"again"')
    (tmp_path / "claims" / "list.toml").write_text(LIST + PEER + more)
    path = store.save(record(), tmp_path / "record.json.gz")
    assert 0 == main([*words, "--only", "make", "--record", str(path)])
    runs = []

    def peers(measurement, catalogue, cases):
        runs.append([case.name for case in cases])
        return record()

    monkeypatch.setattr(together.ClaimMeasurement, "peers", peers)
    monkeypatch.setattr(together.ClaimMeasurement, "builds", lambda *_: (record(), record()))
    assert 0 == main([*words, "--only", "replay"])
    printed = capsys.readouterr().out
    assert [["triple[n=1000]"]] == runs
    assert 3 == printed.count("-planted.json: reproduced")
    assert 0 == main([*words, "--only", "agreement"])
    assert "the intervals meet in 3 of 3 replays (100 %)" in capsys.readouterr().out


def test_a_claim_whose_code_is_not_here_is_replayed_from_its_own_files(words, tmp_path, capsys):
    assert 0 == main([*words, "--only", "make"])
    source = tmp_path / "kernels" / "arith" / "triple.cu"
    source.write_text(f"{source.read_text()}// changed\n")
    assert 0 == main([*words, "--only", "replay", "--current"])
    assert "left out: its code has changed" in capsys.readouterr().out
    assert 0 == main([*words, "--only", "replay"])
    assert "-planted.json: reproduced" in capsys.readouterr().out


def test_boards_of_one_machine_have_files_of_their_own(tmp_path):
    path = tmp_path / "tripled.json"
    assert "tripled.replayed-on-h200-12345678.json" == answer_file(path, "h200", "GPU-12345678-9abc").name
    assert "tripled.replayed-on-h200.json" == answer_file(path, "h200", "").name


@pytest.mark.parametrize("text", ["[[claim]]\nname = 3\n", "claim", "[[claim]]\nname = 'a'\nother = 1\n"])
def test_a_list_that_is_none_is_refused(tmp_path, text):
    (tmp_path / "list.toml").write_text(text)
    with pytest.raises(ResultsError, match="no list of claims"):
        listed(tmp_path)
