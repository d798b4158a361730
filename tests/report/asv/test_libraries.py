"""asv's libraries from a registry: fetched once, only with the known digest, and named where they are missing."""

import hashlib
import io
import tarfile

import pytest

from prism_bench.errors import ResultsError
from prism_bench.report.asv.libraries import Package, carry_libraries

CONTENT = b"var small = 1;"


def tarball(content):
    """A package as npm packs it."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        entry = tarfile.TarInfo("package/dist/small.min.js")
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


PACKED = tarball(CONTENT)
SMALL = Package("small", "1.2.3", hashlib.sha256(PACKED).hexdigest(), {"small.js": "dist/small.min.js"})


@pytest.fixture
def registry(tmp_path, monkeypatch):
    """A folder that serves as the registry, with the package in it; an empty cache."""
    folder = tmp_path / "registry"
    (folder / "small" / "-").mkdir(parents=True)
    (folder / "small" / "-" / "small-1.2.3.tgz").write_bytes(PACKED)
    monkeypatch.setenv("npm_config_registry", folder.as_uri())
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path / "cache"))
    return folder / "small" / "-" / "small-1.2.3.tgz"


def test_a_library_is_put_into_the_site_and_fetched_once(registry, tmp_path):
    carry_libraries(tmp_path / "one", (SMALL,))
    registry.unlink()
    carry_libraries(tmp_path / "two", (SMALL,))
    assert [CONTENT] * 2 == [(tmp_path / site / "vendor" / "small.js").read_bytes() for site in ("one", "two")]


def test_a_registry_that_does_not_answer_is_named(registry, tmp_path):
    registry.unlink()
    with pytest.raises(ResultsError, match=r"small-1\.2\.3\.tgz does not answer"):
        carry_libraries(tmp_path / "site", (SMALL,))


def test_another_digest_is_refused_and_not_kept(registry, tmp_path):
    registry.write_bytes(tarball(b"other"))
    with pytest.raises(ResultsError, match="another digest"):
        carry_libraries(tmp_path / "site", (SMALL,))
    assert not list((tmp_path / "cache").rglob("*.tgz"))
