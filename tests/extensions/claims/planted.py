"""A small catalogue, records of it with planted times, and the claims that they make."""

import json
from dataclasses import replace
from pathlib import Path

from prism_bench.catalogue import discover
from prism_bench.extensions.claims.document import ClaimContest, canonical, sha256
from prism_bench.extensions.claims.making import SideSource, claim_of
from prism_bench.record.run_record import RunRecord
from prism_bench.run.settings import Settings
from prism_bench.spec.peer import PeerFacts
from tests.report.synthetic import case_result, measurement

TOYS = Path(__file__).parent.parent.parent / "toys"
NULL_DEVICE = "no device (scripted times)"
VERIFIED = ({"passed": True, "seed": 0, "output": "y", "compared": 1000, "of": 1000},)
NAIVE = '    variants={"naive": Variant("small blocks", launch=lambda n: Launch(grid=-(-n // 32), block=32))},\n'


def plant(folder):
    """Write the toys with a variant of `triple` into the folder; return their catalogue."""
    family = folder / "arith"
    family.mkdir(parents=True)
    for path in (TOYS / "arith").iterdir():
        if path.is_file():
            (family / path.name).write_text(path.read_text())
    spec = (family / "triple.py").read_text()
    spec = spec.replace("Workload, exact", "Variant, Workload, exact").replace("    edges", f"{NAIVE}    edges")
    (family / "triple.py").write_text(spec)
    return discover(folder)


def record(*, seconds=(1e-5, 2e-5, 3e-5), processes=5, backend="null", device=NULL_DEVICE):
    """A record of `triple`, its variant and a peer, with these medians."""
    own, naive, peer = seconds
    facts = {"verification": VERIFIED, "code": {"sass": "planted"}, "workload": {"n": 1000}, "family": "arith"}
    measured = [measurement("cold_time", own, processes=processes, samples=9),
                measurement("cold_time", peer, "peer:torch", processes=processes, samples=9)]  # fmt: skip
    other = (measurement("cold_time", naive, processes=processes, samples=9, seed=1),)
    cases = (
        replace(case_result("triple", **facts), measurements=tuple(measured),
                peers={"torch": PeerFacts(library="torch", version="2.11.0", kind="library kernel")}),
        replace(case_result("triple", **facts), name="triple:naive[n=1000]", variant="naive", measurements=other),
    )  # fmt: skip
    return RunRecord(
        "2026-11-23T10:00:00", backend, {"id": "planted", "device": device}, {"numpy": "2.4.6"},
        json.loads(json.dumps(Settings().protocol())), cases,
    )  # fmt: skip


def claim_in(catalogue, made=None, baseline="triple:naive[n=1000]", subject="kernel"):
    """The claim about `triple` in a record, against its variant or its peer."""
    made = made or record()
    contest = ClaimContest("cold_time", (made,), (0, "triple[n=1000]", "kernel"), (0, baseline, subject))
    cases = [catalogue.anywhere(name) for name in ("triple[n=1000]", baseline)]
    return claim_of(contest, [SideSource(case, catalogue.folder) for case in cases])


def resealed(plain):
    """The bytes of a changed claim whose digest fits again, as somebody who forges it would write them."""
    plain = {**plain, "digest": ""}
    plain["digest"] = f"sha256:{sha256(canonical(plain).encode())}"
    return f"{canonical(plain)}\n".encode()
