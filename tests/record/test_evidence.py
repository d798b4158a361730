"""Evidence survives a record as it was, to four digits, and an older record without any is still read."""

import json

from prism_bench.record.measurement import Energy, Evidence, Measurement, merged, plain_energy, plain_evidence
from prism_bench.record.run_record import decode_measurement, encode_measurement
from prism_bench.record.schema import CaseFile, checked_measurement, impossible

SEEN = Evidence(
    seconds=0.35,
    readings=7,
    spans={"sm_clock": (1.92e9, 1.98e9, 1.98e9), "power": (120.5, 610.0, 655.0)},
    reasons={"sw power cap": 0.5},
    throttled={"power": 0.125},
    neighbours=("train.py (pid 77)",),
    busy_neighbours=True,
    events=("Xid 79",),
    missing={"memory_temperature": "not offered by this device"},
    lost="lost at 12:00:01: GPU is lost",
)
SPENT = Energy(joules=0.0125, uncertainty=0.0004, window=0.25, launches=1200)


def measured(*evidence, **facts):
    return Measurement("hot_time", "kernel", ((1e-6, 2e-6),), evidence=evidence, **facts)


def through_json(plain):
    return json.loads(json.dumps(plain))


COUNTED = Energy(0.0125, 0.0004, 0.25, 1200, None, 118.5, 0.0101, 0.0005, 0.1, "module", -0.0125)


def test_evidence_survives_json():
    for energy in (SPENT, COUNTED, Energy(reason="no counter")):
        found = decode_measurement(through_json(encode_measurement(measured(SEEN, energy=energy))))
        assert ((SEEN,), energy) == (found.evidence, found.energy)


def test_what_is_empty_takes_no_room():
    assert {"seconds": 0.1, "readings": 0} == plain_evidence(Evidence(0.1, 0))
    assert plain_energy(None) is None
    assert not {"evidence", "energy"} & set(encode_measurement(measured()))


def test_a_measurement_carries_it_through_a_record():
    found = decode_measurement(through_json(encode_measurement(measured(SEEN, energy=SPENT))))
    assert ((SEEN,), SPENT) == (found.evidence, found.energy)


def test_an_older_record_has_none():
    plain = through_json(encode_measurement(measured(SEEN, energy=SPENT)))
    del plain["evidence"], plain["energy"]
    found = decode_measurement(plain)
    assert ((), None) == (found.evidence, found.energy)


def test_an_older_energy_is_read_as_it_was_and_an_impossible_new_field_is_named():
    assert {"joules", "uncertainty", "window", "launches"} == set(plain_energy(SPENT))
    plain = through_json(encode_measurement(measured(energy=COUNTED)))
    plain["energy"]["idle_power"] = -5.0
    case = CaseFile(name="a", kernel="a", family="", label="S1", workload={}, bytes=8, status="ok")
    assert "an energy with idle_power of -5" in impossible(case, checked_measurement(plain, "a record"))


def test_each_process_keeps_its_own_and_the_first_energy_counts():
    other = Evidence(0.2, 4)
    one = merged([measured(SEEN), measured(other, energy=SPENT)])
    assert ((SEEN, other), SPENT) == (one.evidence, one.energy)


def test_the_highest_value_is_that_of_the_span():
    assert 655.0 == SEEN.highest("power")
    assert SEEN.highest("fan") is None
