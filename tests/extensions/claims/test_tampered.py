"""Every change of a claim is refused, also where the digest was computed again: what it states has to follow."""

import copy
import json
from dataclasses import replace

import pytest
from lab.claims.own_files import FOLDER, claim_files

from docs.readme import ROOT
from prism_bench.catalogue import Catalogue, discover
from prism_bench.compilation import nvrtc_version
from prism_bench.errors import BackendUnavailable, ResultsError
from prism_bench.extensions.claims.checks import checked
from prism_bench.extensions.claims.document import LARGEST, encoded
from prism_bench.extensions.claims.replaying import ClaimReplay
from tests.extensions.claims.changes import AT_REPLAY, BY_COMPILING, FORGED, OF_CODE, forged_cubin, without_code
from tests.extensions.claims.planted import claim_in, plant, record, resealed
from tests.report.synthetic import case_result


@pytest.fixture(scope="module")
def plain(claim):
    return json.loads(encoded(claim))


def test_the_claim_itself_is_taken(claim):
    taken, records = checked(encoded(claim), "claim.json")
    assert (encoded(claim), 1) == (encoded(taken), len(records))


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_claim_is_refused(plain, name):
    changed = copy.deepcopy(plain)
    FORGED[name](changed)
    assert changed != plain
    with pytest.raises(ResultsError, match=r"^claim\.json: "):
        checked(resealed(changed), "claim.json")


@pytest.mark.parametrize(("seconds", "words"), [(1.8e-11, "TB/s is more than 3 % above"), (3e-6, "launch overhead")])
def test_a_time_beyond_the_limits_of_its_own_record_is_refused(
    catalogue: Catalogue, seconds: float, words: str
) -> None:
    """Every figure follows from the samples, which are forged."""
    limits = {"launch": ("null", 4e-6, 0), "bandwidth": ("copy", 1e-3, 4_000_000_000)}
    name, time, moved = limits["bandwidth" if "TB/s" in words else "launch"]
    ceiling = "bandwidth" if moved else "launch"
    measured = case_result(name, family="machine", times={"cold_time": time}, ceiling=ceiling, bytes=moved)
    made = record(seconds=(seconds, 2 * seconds, 3e-5))
    forged = claim_in(catalogue, replace(made, cases=(*made.cases, measured)))
    with pytest.raises(ResultsError, match=f"kernel: triple cannot take .*{words}"):
        checked(encoded(forged), "claim.json")


@pytest.mark.parametrize("name", OF_CODE)
def test_forged_machine_code_is_refused(plain, name):
    try:
        nvrtc_version()
    except BackendUnavailable as error:
        pytest.skip(str(error))
    changed = copy.deepcopy(plain)
    OF_CODE[name](changed)
    with pytest.raises(ResultsError, match="cubin|named|hash|registers|zlib|stream|machine code|fields"):
        checked(resealed(changed), "claim.json")


@pytest.mark.parametrize("name", BY_COMPILING)
def test_machine_code_that_is_not_of_the_sources_is_refused(plain, catalogue, name):
    changed = copy.deepcopy(plain)
    if not changed["kernel"]["code"]:
        pytest.skip("no compiler of CUDA is here")
    BY_COMPILING[name](changed)
    forged, records = checked(resealed(changed), "claim.json")
    with pytest.raises(ResultsError, match="other instructions of its sources|differ in the entry"):
        ClaimReplay(forged, records, catalogue).replay()


def test_sources_with_headers_of_the_toolkit_do_not_prove_that_a_cubin_is_forged(tmp_path):
    """Another version of a header makes other instructions by the same compiler."""
    catalogue = plant(tmp_path / "kernels")
    source = catalogue.folder / "arith" / "triple.cu"
    source.write_text(f"#include <cuda_fp16.h>\n{source.read_text()}")
    plain = json.loads(encoded(claim_in(catalogue)))
    if not plain["kernel"]["code"]:
        pytest.skip("no compiler of CUDA is here")
    forged_cubin(plain)
    found = ClaimReplay(*checked(resealed(plain), "claim.json"), catalogue, "emulator").replay()
    assert "other" in [one.result for one in found.checks if one.what.startswith("machine code")]


@pytest.fixture
def kept():
    """A claim of a GPU that this repository keeps."""
    paths = [path for path in claim_files(ROOT / FOLDER) if path.stem == "vector_add-S1"]
    if not paths:
        pytest.skip("no claim about vector_add is kept")
    return json.loads(paths[0].read_text())


def test_a_claim_of_a_gpu_has_the_hash_of_what_ran(kept):
    """Without it, any cubin would do."""
    for plain_record in kept["records"]:
        for case in plain_record["cases"]:
            case["code"].pop("sass", None)
    with pytest.raises(ResultsError, match="a hash of the instructions of"):
        checked(resealed(kept), "claim.json")


def test_a_shared_header_less_is_refused_where_the_bundled_catalogue_has_it(kept):
    """A replay compiles the claim's own files, not what happens to be here."""
    (header,) = {path for path in kept["kernel"]["files"] if path.endswith("vector_load.cuh")}
    keys = {side["files"].pop(header) for side in (kept["kernel"], kept["baseline"])}
    kept["files"] = {key: file for key, file in kept["files"].items() if key not in keys}
    forged, records = checked(resealed(kept), "claim.json")
    with pytest.raises(ResultsError, match=f"{header} is reached by its spec and not there"):
        ClaimReplay(forged, records, discover()).replay()


def test_a_claim_without_code_that_says_so_is_taken(plain):
    changed = copy.deepcopy(plain)
    without_code(changed)
    changed["missing"] += [f"the machine code of {side}: unknown" for side in ("triple", "triple:naive")]
    assert () == checked(resealed(changed), "claim.json")[0].kernel.code


@pytest.mark.parametrize("name", AT_REPLAY)
def test_what_the_files_do_not_do_is_refused_before_anything_runs(plain, catalogue, name):
    changed = copy.deepcopy(plain)
    AT_REPLAY[name](changed)
    forged, records = checked(resealed(changed), "claim.json")
    with pytest.raises(ResultsError):
        ClaimReplay(forged, records, catalogue).replay()


@pytest.mark.parametrize("name", ["sentence", "ratio", "time", "source", "launch"])
def test_a_changed_claim_has_another_digest(plain, name):
    changed = copy.deepcopy(plain)
    {**FORGED, "launch": AT_REPLAY["grid"]}[name](changed)
    content = json.dumps(changed, sort_keys=True, separators=(",", ":")).encode() + b"\n"
    with pytest.raises(ResultsError, match="digest"):
        checked(content, "claim.json")


@pytest.mark.parametrize(
    "change",
    [lambda text: text + b" ", lambda text: b'{"backend":"cuda",' + text[1:], lambda text: text.replace(b":", b": ", 1),
     lambda text: text[:-2], lambda text: b"", lambda text: b"[]", lambda text: b"\xff" + text,
     lambda text: text + b" " * LARGEST],
    ids=["blank", "doubled key", "blank inside", "cut", "empty", "list", "no text", "too large"],
)  # fmt: skip
def test_other_bytes_of_the_same_claim_are_refused(claim, change):
    with pytest.raises(ResultsError, match=r"^claim\.json: "):
        checked(change(encoded(claim)), "claim.json")


def test_there_are_many_kinds_of_changes():
    assert len({**FORGED, **OF_CODE, **AT_REPLAY, **BY_COMPILING}) >= 90
