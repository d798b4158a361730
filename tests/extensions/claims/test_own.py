"""`scripts/claims` on the null backend: claims are made once and replayed once, and made again with their code."""

import json

import pytest

from prism_bench.backends.null import SCRIPT
from prism_bench.errors import ResultsError
from prism_bench.extensions.claims.own import main
from prism_bench.extensions.claims.own_files import claim_files, listed
from tests.extensions.claims.planted import plant

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


@pytest.mark.parametrize("text", ["[[claim]]\nname = 3\n", "claim", "[[claim]]\nname = 'a'\nother = 1\n"])
def test_a_list_that_is_none_is_refused(tmp_path, text):
    (tmp_path / "list.toml").write_text(text)
    with pytest.raises(ResultsError, match="no list of claims"):
        listed(tmp_path)
