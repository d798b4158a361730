"""The schema: every field survives, samples keep four digits, unknown fields are passed over."""

import gc
import json
import math
from dataclasses import replace

import pytest

from prism_bench.errors import ResultsError
from prism_bench.record import store
from prism_bench.record.measurement import Energy, Evidence, Measurement
from prism_bench.record.run_record import decode, decode_measurement, encode, encode_measurement
from tests.report.synthetic import MACHINE, case_result, cpu_record, gpu_record, record_of


def through_json(measurement):
    return decode_measurement(json.loads(json.dumps(encode_measurement(measurement))))


@pytest.mark.parametrize("scale", [1e-9, 3.7e-6, 1.0, 250.0])
def test_samples_keep_four_digits_at_every_scale(scale):
    samples = (scale, scale * 1.2345, scale * 9.876, scale * 1000)
    found = through_json(Measurement("cold_time", "kernel", (samples,)))
    assert found.samples == pytest.approx(samples, rel=5e-4)


def test_processes_stay_apart_and_evidence_stays():
    one = Measurement(
        "cold_time", "peer:torch", ((1e-6, 2e-6), (3e-6,)), clocks=((1.98e9, 1.965e9), (1.2e9,)), throttled=3,
        valid=False, reason="too fast", notes=("a note",),
    )  # fmt: skip
    found = through_json(one)
    assert [len(group) for group in found.processes] == [2, 1]
    assert found.clocks == one.clocks
    assert (found.throttled, found.valid, found.reason, found.notes) == (3, False, "too fast", ("a note",))


def test_empty_and_zero_samples_survive():
    assert through_json(Measurement("cold_time", "kernel", (), reason="no graphs")).median is None
    assert through_json(Measurement("cold_time", "kernel", ((0.0, 1e-6),))).samples[0] == 0.0


def test_a_record_survives_json():
    record = gpu_record(complete=False, dirty=True, catalogue="mine")
    found = decode(json.loads(json.dumps(encode(record))), "here")
    assert encode(found) == encode(record)
    assert (found.complete, found.dirty, found.catalogue) == (False, True, "mine")


def test_fields_that_nobody_knows_are_passed_over():
    plain = encode(record_of(case_result("k", times={"cold_time": 1e-3})))
    plain["mood"] = plain["cases"][0]["mood"] = plain["cases"][0]["measurements"][0]["mood"] = "sunny"
    assert decode(plain, "here").cases[0].measurement("cold_time").median == pytest.approx(1e-3, rel=5e-4)


def test_cases_and_measurements_are_found_by_name():
    record = record_of(case_result("k", times={"cold_time": 1e-3}))
    assert record.case("k[n=100]").measurement("cold_time").median == pytest.approx(1e-3)
    assert record.case("gone") is None
    assert record.cases[0].measurement("hot_time") is None
    assert record.cases[0].measurement("cold_time", "peer:torch") is None


PARTS = ({"uuid": "b", "kernels": ["k"]}, {"uuid": "a", "kernels": []}, {"uuid": None, "kernels": ["j"]})


def test_the_parts_of_a_merged_record_survive_and_others_have_none():
    assert PARTS == decode(json.loads(json.dumps(encode(gpu_record(parts=PARTS)))), "here").parts
    plain = encode(gpu_record())
    assert "parts" not in plain
    assert () == decode(plain, "here").parts


def test_parts_that_are_no_list_are_damage():
    with pytest.raises(ResultsError, match="here: damaged run record .parts: expected array, got int"):
        decode({**encode(gpu_record()), "parts": 7}, "here")


def test_a_record_knows_its_devices_and_which_of_them_measured_a_kernel():
    merged = gpu_record(machine={"id": "nvidia-h200"}, parts=PARTS)
    assert ("a", "b") == merged.uuids
    assert ["b", None, None] == [merged.unit_of(name) for name in ("k", "j", "null")]
    uuid = MACHINE["uuid"]
    assert ((uuid,), uuid) == (gpu_record().uuids, gpu_record().unit_of("k"))
    assert ((), None) == (cpu_record().uuids, cpu_record().unit_of("k"))


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf, 0.0, -1e-6, 1e300, 5e-324])
def test_a_record_with_odd_numbers_is_written_and_they_are_not_believed(odd, tmp_path):
    evidence = Evidence(1.0, 3, spans={"power": (odd, odd, odd)})
    one = Measurement("cold_time", "kernel", ((1e-6, odd),), clocks=((1.98e9, odd),), evidence=(evidence,))
    energy = replace(one, metric="hot_time", processes=((1e-6,),), clocks=(), energy=Energy(odd, odd, odd, 3))
    case = case_result("k", measurements=(one, energy), verification=({"passed": True, "max_error": odd},))
    found = store.read(store.save(record_of(case, protocol={"version": 1, "odd": odd}), tmp_path / "record.json.gz"))
    assert not found.cases[0].measurement("cold_time").valid
    assert 1e-6 == pytest.approx(found.cases[0].measurement("hot_time").median)
    assert found == store.read(store.save(found, tmp_path / "again.json.gz"))


def test_the_form_that_replaces_another_survives_and_is_absent_elsewhere():
    record = record_of(replace(case_result("a"), before="a:full"), case_result("b"))
    plain = encode(record)
    assert ["a:full", None] == [case.get("before") for case in plain["cases"]]
    assert "before" not in plain["cases"][1]
    assert ["a:full", None] == [case.before for case in decode(plain, "here").cases]


def test_the_seconds_that_a_run_spent_survive_and_a_record_of_before_has_none():
    case = case_result("softmax", spent={"untimed": 0.25, "peer:torch": 1.5})
    record = record_of(case, spent={"compiling": 2.0, "timed": 30.0})
    again = decode(json.loads(json.dumps(encode(record))), "here")
    assert (record.spent, case.spent) == (again.spent, again.cases[0].spent)
    assert "spent" not in encode(record_of(case_result("softmax")))


@pytest.mark.parametrize("odd", [-1.0, 1e12, "long", None, [1.0], {}])
def test_damaged_seconds_are_refused(odd):
    plain = encode(record_of(case_result("softmax")))
    with pytest.raises(ResultsError, match="here: damaged run record .spent"):
        decode({**plain, "spent": {"timed": odd}}, "here")
    plain["cases"][0]["spent"] = {"kernel": odd}
    with pytest.raises(ResultsError, match=r"here: damaged run record .cases\[0\]\.spent"):
        decode(plain, "here")


@pytest.mark.parametrize("source", [b"{", None])
def test_the_cycle_collector_is_as_before_once_a_record_was_read(source):
    assert gc.isenabled()
    plain = encode(record_of(case_result("k", times={"cold_time": 1e-3})))
    if source is None:
        decode(plain, "a record")
    else:
        with pytest.raises(ResultsError):
            decode(source, "a record")
    assert gc.isenabled()


def parts_of(plain):
    """A record's own fields, those of its first case, and those of that case's first measurement."""
    case = plain["cases"][0]
    return {"record": plain, "case": case, "measurement": case["measurements"][0]}


def test_each_absent_field_has_its_default_or_is_named():
    whole = json.dumps(encode(record_of(case_result("k", times={"cold_time": 1e-3}))))
    read, refused = set(), set()
    for part, key in [(part, key) for part, fields in parts_of(json.loads(whole)).items() for key in fields]:
        plain = json.loads(whole)
        del parts_of(plain)[part][key]
        try:
            decode(plain, "here")
            read.add((part, key))
        except ResultsError as error:
            assert key in str(error)
            refused.add((part, key))
    assert {("case", "flops"), ("case", "measurements"), ("measurement", "notes"), ("record", "commit")} <= read
    assert {("case", "name"), ("case", "workload"), ("measurement", "metric"), ("record", "cases")} <= refused
