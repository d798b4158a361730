"""Peers of specs: what they ask for, what absent libraries say, and how their facts travel in records."""

import json
from dataclasses import replace

import pytest

from prism_bench.errors import SpecError
from prism_bench.io.installation import pip_install
from prism_bench.record.run_record import decode_case, encode_case
from prism_bench.spec import arguments
from prism_bench.spec.case import Case
from prism_bench.spec.peer import LIBRARIES, Library, Peer, PeerFacts, as_peer
from tests.built_in import CATALOGUE
from tests.report.synthetic import gpu_record


@pytest.mark.parametrize("asked", ["torch and cupy", "none"])
def test_asks_for_exactly_one_library(asked: str) -> None:
    call = (lambda torch, cupy: None) if asked == "torch and cupy" else (lambda x: x)
    with pytest.raises(SpecError, match=f"not for {asked}"):
        _ = Peer(call).library


def test_peers_of_the_catalogue_ask_for_one_library_and_for_names_of_their_case() -> None:
    cases = {case.kernel: case for case in CATALOGUE.cases()}.values()
    odd = [(case.kernel, name, extra) for case in cases for name in case.spec.peers
           if (extra := _unknown(case, case.spec.peer(name)))]  # fmt: skip
    assert [] == odd
    assert any(case.spec.peers for case in cases)


def _unknown(case: Case, peer: Peer) -> set[str]:
    return {*arguments.wanted(peer.call)} - {*case.axes, *(array.name for array in case.spec.inputs), peer.library.name}


def test_a_plain_function_is_a_peer_that_is_timed_as_it_is() -> None:
    def call(torch): ...

    assert (Peer(call), False) == (as_peer(call), as_peer(call).prepares)


def test_an_absent_library_says_how_to_install_it() -> None:
    absent = Library("absent", "absent_library.part", "absent-library", "torch")
    assert (False, None) == (absent.is_installed(), absent.installed_version())
    assert f"absent-library is not installed ({pip_install('peers-strong', anywhere=True)})" == absent.why_absent


def test_the_registry_names_libraries_by_their_own_names() -> None:
    assert [(name, name) for name in LIBRARIES] == [(name, library.name) for name, library in LIBRARIES.items()]


def test_facts_travel_in_a_record_and_cases_without_peers_have_no_table() -> None:
    case = gpu_record().cases[0]
    facts = PeerFacts(library="torch", version="2.11.0", form="eager", kind="eager chain", calls=4, launches=5)
    plain = json.loads(json.dumps(encode_case(replace(case, peers={"torch": facts}))))
    assert ({"torch": facts}, False) == (decode_case(plain).peers, "peers" in encode_case(case))
