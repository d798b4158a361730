"""`prism-bench store fetch` and `keep`: what one run keeps, the next one fetches; no source is touched."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from prism_bench.extensions.ci.keeping import Checkout, keep, opened
from prism_bench.extensions.ci.keeping.branch import Base
from tests.cli.clones import Clone, alerts, git, remote_project  # noqa: F401

PLACES = ("runs/box/new.json.gz", "nights/box.jsonl", "asv-nights/box/a.json", "alerts/box.json")


@pytest.fixture(params=["branch:history", "folder", "memory"])
def address(request, tmp_path):
    """Every kind of place."""
    if request.param == "memory":
        fsspec = pytest.importorskip("fsspec", reason="fsspec is an extra: pip install 'prism-gpu-bench[history]'")
        fsspec.filesystem("memory").store.clear()
        return "memory://bucket/prefix"
    return str(tmp_path / "kept") if request.param == "folder" else request.param


@pytest.fixture
def clone(remote, address, shell, monkeypatch, tmp_path):
    """A function that clones the project anew."""

    def make(name):
        git(tmp_path, "clone", "--quiet", str(remote), name)
        return Clone(tmp_path / name, shell, monkeypatch, address)

    return make


def test_the_first_run_finds_none(clone, address):
    one = clone("one")
    for action in ("fetch", "list"):
        done = one.history(action)
        assert (0, f"history: none yet at {address}\n") == (done.code, done.out)


def test_what_one_run_keeps_the_next_one_fetches(clone):
    one, two = clone("one"), clone("two")
    for name in (*PLACES, "site/a.html"):
        one.write(name, name)
    kept = one.history("keep", "--json").json
    assert sorted([*PLACES, "runs/box/old.json.gz"]) == kept["written"]
    fetched = two.history("fetch", "--json").json
    assert (5, sorted(PLACES)) == (fetched["files"], sorted(fetched["written"]))
    assert {"runs/box/old.json.gz": "kept with the sources", **{name: name for name in PLACES}} == two.kept()


def test_keeps_follow_each_other_and_the_checkout_stays(clone):
    one, two = clone("one"), clone("two")
    one.write("nights/box.jsonl", "1\n")
    before = git(one.folder, "rev-parse", "HEAD")
    one.history("keep")
    one.write("nights/box.jsonl", "1\n2\n")
    one.history("keep")
    assert (before, "?? reports/nights/") == (
        git(one.folder, "rev-parse", "HEAD"), git(one.folder, "status", "--short"),
    )  # fmt: skip
    keeps = two.history("list", "--json").json["keeps"]
    assert [1, 2] == [keep["files"] for keep in keeps]
    assert keeps[0]["when"] >= keeps[1]["when"]
    two.history("fetch")
    assert "1\n2\n" == two.kept()["nights/box.jsonl"]


def test_twice_is_once(clone):
    one = clone("one")
    one.write("nights/box.jsonl", "1\n")
    assert one.history("keep", "--json").json["id"]
    again = one.history("keep", "--json").json
    assert (None, []) == (again["id"], again["written"])
    assert [] == one.history("fetch", "--json").json["written"]
    assert 1 == len(one.history("list", "--json").json["keeps"])


def test_two_machines_in_turn_lose_nothing(clone):
    one, two, three = clone("one"), clone("two"), clone("three")
    for checkout in (one, two):
        checkout.history("fetch")
        checkout.write(f"nights/{checkout.folder.name}.jsonl", "1\n")
        assert 0 == checkout.history("keep").code
    one.write("nights/one.jsonl", "1\n2\n")  # still without the other's first run
    assert 0 == one.history("keep").code
    three.history("fetch")
    assert {"nights/one.jsonl": "1\n2\n", "nights/two.jsonl": "1\n"}.items() <= three.kept().items()


def test_a_keep_without_a_fetch_loses_nothing(clone):
    one, two, three = clone("one"), clone("two"), clone("three")
    one.write("nights/box.jsonl", "1\n")
    one.history("keep")
    assert "nothing new" in two.history("keep").out
    three.history("fetch")
    assert "1\n" == three.kept()["nights/box.jsonl"]


def test_what_was_removed_here_stays_there(clone):
    one, two = clone("one"), clone("two")
    one.write("runs/box/a.json.gz", "a")
    one.history("keep")
    (one.folder / "reports/runs/box/a.json.gz").unlink()
    assert "nothing new" in one.history("keep").out
    two.history("fetch")
    assert "a" == two.kept()["runs/box/a.json.gz"]


def test_records_of_one_name_are_both_kept(clone):
    """Two machines of one name that began in the same second."""
    one, two, three = clone("one"), clone("two"), clone("three")
    one.write("runs/box/20261120T221405Z-aaaaaaaa.json.gz", "first")
    two.write("runs/box/20261120T221405Z-aaaaaaaa.json.gz", "second")
    assert [0, 0] == [checkout.history("keep").code for checkout in (one, two)]
    assert "nothing new" in two.history("keep").out
    three.history("fetch")
    both = {f"runs/box/20261120T221405Z-aaaaaaaa{n}.json.gz": text for n, text in (("", "first"), ("-2", "second"))}
    assert both.items() <= three.kept().items()
    two.history("fetch")
    assert both.items() <= two.kept().items()
    assert "nothing new" in two.history("keep").out


def test_a_record_that_is_not_kept_yet_survives_a_fetch(clone):
    one, two, three = clone("one"), clone("two"), clone("three")
    one.write("runs/box/20261120T221405Z-aaaaaaaa.json.gz", "first")
    two.write("runs/box/20261120T221405Z-aaaaaaaa.json.gz", "second")
    one.history("keep")
    two.history("fetch")
    contents = {"kept with the sources", "first", "second"}
    assert contents == set(two.kept().values())
    assert 1 == len(two.history("keep", "--json").json["written"])
    three.history("fetch")
    assert contents == set(three.kept().values())
    assert 3 == len(three.kept()), "each content once"


def test_a_record_that_grew_replaces_its_earlier_version(clone):
    one, two = clone("one"), clone("two")
    one.write("runs/box/a.json.gz", "cut short")
    one.history("keep")
    two.history("fetch")
    one.write("runs/box/a.json.gz", "complete")
    assert ["runs/box/a.json.gz"] == one.history("keep", "--json").json["written"]
    assert ["runs/box/a.json.gz"] == two.history("fetch", "--json").json["written"]
    assert "complete" == two.kept()["runs/box/a.json.gz"]


def test_ledgers_of_one_machine_in_two_checkouts_are_joined(clone):
    one, two, three = clone("one"), clone("two"), clone("three")
    one.write("nights/box.jsonl", "1\n")
    one.history("keep")
    two.history("fetch")
    one.write("nights/box.jsonl", "1\n2\n")
    two.write("nights/box.jsonl", "1\n3\n")
    for checkout in (one, two):
        assert 0 == checkout.history("keep").code
    three.history("fetch")
    assert "1\n2\n3\n" == three.kept()["nights/box.jsonl"]
    one.history("fetch")
    assert "1\n2\n3\n" == one.kept()["nights/box.jsonl"]


def test_the_state_of_alerts_is_merged_and_what_was_settled_stays_settled(clone):
    one, two, three = clone("one"), clone("two"), clone("three")
    one.write("alerts/failures.json", alerts("a", "b"))
    one.history("keep")
    two.history("fetch")
    one.write("alerts/failures.json", alerts("b"))  # `a` is settled
    two.write("alerts/failures.json", alerts("a", "b", "c"))
    assert [0, 0] == [checkout.history("keep").code for checkout in (one, two)]
    three.history("fetch")
    assert {"b", "c"} == set(json.loads(three.kept()["alerts/failures.json"])["entries"])


def test_results_of_asv_are_the_last_writers(clone):
    one, two, three = clone("one"), clone("two"), clone("three")
    for checkout, text in ((one, "1"), (two, "2")):
        checkout.write("asv-nights/benchmarks.json", text)
        assert 0 == checkout.history("keep").code
    three.history("fetch")
    assert "2" == three.kept()["asv-nights/benchmarks.json"]


def test_many_keepers_at_once_lose_nothing(clone, address):
    clones = [clone(f"clone{i}") for i in range(4)]
    for i, one in enumerate(clones):
        one.write(f"runs/box{i}/a.json.gz", str(i))
        one.write("nights/box.jsonl", f"{i}\n")

    def kept(one):
        target = opened(address, one.folder)
        return keep(target, Checkout(one.folder / "reports/runs", Base(one.folder, address))).id

    with ThreadPoolExecutor(4) as pool:
        assert 4 == len(set(pool.map(kept, clones)) - {None})
    last = clone("last")
    last.history("fetch")
    found = last.kept()
    assert {f"runs/box{i}/a.json.gz": str(i) for i in range(4)}.items() <= found.items()
    assert {"0", "1", "2", "3"} == set(found["nights/box.jsonl"].split())


def test_verify_finds_what_cannot_be_read(clone):
    one = clone("one")
    (one.folder / "reports/runs/box/old.json.gz").unlink()
    one.write("alerts/box.json", alerts("a"))
    one.history("keep")
    assert (0, 1) == (one.history("verify").code, one.history("verify", "--json").json["files"])
    one.write("runs/box/a.json.gz", "no record")
    one.write("nights/box.jsonl", "{}\n")
    one.history("keep")
    done = one.history("verify", "--json")
    assert 1 == done.code
    first, second = sorted(done.json["problems"])
    assert first.startswith("nights/box.jsonl:1: not a nightly run")
    assert second.startswith("runs/box/a.json.gz: not a readable run record")


def test_verify_goes_on_after_a_content_that_is_gone(clone, address, tmp_path):
    """Wherever it is kept: one of three files is missing, and the two others are read."""
    one = clone("one")
    (one.folder / "reports/runs/box/old.json.gz").unlink()
    for name in "ab":
        one.write(f"alerts/{name}.json", alerts(name))
    one.write("nights/box.jsonl", "{}\n")
    one.history("keep")
    if address.startswith("branch"):
        blob = git(one.folder, "hash-object", "reports/alerts/a.json")
        (one.folder / ".git/objects" / blob[:2] / blob[2:]).unlink()
    elif address.startswith("memory"):
        store = pytest.importorskip("fsspec").filesystem("memory").store
        del store[next(name for name in store if name.endswith("/a.json"))]
    else:
        next((tmp_path / "kept").rglob("a.json")).unlink()
    done = one.history("verify", "--json")
    problems = [one for one in done.json["problems"] if "branch history: " not in one]  # git's own sentence
    assert (1, 3, 2) == (done.code, done.json["files"], len(problems))
    unread, gone = sorted(problems, key=lambda problem: not problem.startswith("nights/box.jsonl:1: not a nightly run"))
    assert "not a nightly run" in unread and "a.json" in gone


def test_a_project_configures_its_history(shell, tmp_path, monkeypatch):
    """The address is relative to the configuration, from any folder below it; an option wins."""
    (tmp_path / "prism-bench.toml").write_text('storage = "measured"\n[history]\nto = "kept"\n')
    (tmp_path / "measured/runs/box").mkdir(parents=True)
    (tmp_path / "measured/runs/box/a.json.gz").write_text("a")
    (tmp_path / "deeper").mkdir()
    monkeypatch.chdir(tmp_path / "deeper")
    done = shell("store", "keep", "--json").json
    assert (str(tmp_path / "kept"), ["runs/box/a.json.gz"]) == (done["history"], done["written"])
    assert 1 == len(shell("store", "keep", "--to", "other", "--json").json["written"])
    assert (tmp_path / "deeper/other/keeps").is_dir()
    (tmp_path / "prism-bench.toml").write_text('[history]\ntoo = "kept"\n')
    done = shell("store", "keep")
    assert (2, True) == (done.code, "unknown key 'too'; did you mean to?" in done.err)
