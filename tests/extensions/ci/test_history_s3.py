"""`prism-bench store fetch` and `keep` against an S3 server: what one clone keeps, another one fetches."""

import pytest

from tests.cli.clones import Clone, alerts, git, remote_project  # noqa: F401

WHY = "an S3 server for tests needs pip install 'moto[server]' s3fs"
ADDRESS = "s3://results/prism-bench"


@pytest.fixture(scope="module")
def server():
    """The endpoint of a server of S3 that forgets what it has when the tests end."""
    pytest.importorskip("s3fs", reason=WHY)
    moto = pytest.importorskip("moto.server", reason=WHY)
    running = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    yield "http://{}:{}".format(*running.get_host_and_port())
    running.stop()


@pytest.fixture
def clone(server, remote, shell, monkeypatch, tmp_path):
    """A function that clones the project anew, configured as a user would do it."""
    import s3fs

    for name, value in {"ACCESS_KEY_ID": "any", "SECRET_ACCESS_KEY": "any", "DEFAULT_REGION": "us-east-1"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    files = s3fs.S3FileSystem(endpoint_url=server, skip_instance_cache=True)
    if files.exists("results"):
        files.rm("results", recursive=True)
    files.mkdir("results")

    def make(name):
        git(tmp_path, "clone", "--quiet", str(remote), name)
        text = f'[history]\nto = "{ADDRESS}"\n\n[history.options]\nendpoint_url = "{server}"\n'
        (tmp_path / name / "prism-bench.toml").write_text(text)
        return Clone(tmp_path / name, shell, monkeypatch, ADDRESS)

    make.files = files
    return make


def test_what_one_clone_keeps_another_one_fetches(clone):
    one, two = clone("one"), clone("two")
    assert f"history: none yet at {ADDRESS}\n" == one.history("fetch").out
    one.write("nights/box.jsonl", "1\n")
    one.write("runs/box/new.json.gz", "record")
    assert 0 == one.history("keep").code
    fetched = two.history("fetch", "--json").json
    assert ["nights/box.jsonl", "runs/box/new.json.gz"] == sorted(fetched["written"])
    two.write("nights/box.jsonl", "1\n2\n")
    assert 0 == two.history("keep").code
    one.history("fetch")
    assert "1\n2\n" == one.kept()["nights/box.jsonl"]
    assert 2 == len(one.history("list", "--json").json["keeps"])


def test_two_clones_that_have_not_seen_each_other_lose_nothing(clone):
    one, two, three = clone("one"), clone("two"), clone("three")
    for checkout in (one, two):
        checkout.write(f"nights/{checkout.folder.name}.jsonl", "1\n")
    assert [0, 0] == [checkout.history("keep").code for checkout in (one, two)]
    three.history("fetch")
    assert {"nights/one.jsonl", "nights/two.jsonl"} <= set(three.kept())


def test_a_damaged_content_is_found(clone):
    one = clone("one")
    (one.folder / "reports/runs/box/old.json.gz").unlink()
    one.write("alerts/box.json", alerts("a"))
    one.history("keep")
    assert 0 == one.history("verify").code
    kept = [path for path in clone.files.find("results") if path.endswith("box.json")]
    clone.files.pipe_file(kept[0], alerts("b").encode())
    done = one.history("verify")
    assert 1 == done.code and "alerts/box.json" in done.out


def test_a_bucket_that_does_not_exist_is_not_made(clone):
    one = clone("one")
    one.write("nights/box.jsonl", "1\n")
    done = one.history("keep", to="s3://resluts/prism-bench")
    assert 2 == done.code and "check the address, the network and the credentials" in done.out + done.err
    assert not clone.files.exists("resluts")
