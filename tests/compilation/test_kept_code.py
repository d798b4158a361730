"""Machine code of earlier runs, found in the compiler's cache by its hash, and compared instruction by instruction."""

from prism_bench.analysis.bounds.why import code_against
from prism_bench.compilation.cubin import sass_hash
from prism_bench.compilation.program import kept_entries
from tests.compilation.test_compile_source import compiled, folder, needs_nvrtc, rewrite
from tests.report.synthetic import case_result

__all__ = ["folder"]
pytestmark = needs_nvrtc


def built(folder):
    """The code of the source as it is, as a record's case knows it."""
    made = compiled(folder)
    code = {"sass": sass_hash(made.cubin), "architecture": "sm_90", "entries": ["scale"], "registers": 8}
    return case_result("scale", code=code)


def test_code_of_both_runs_is_found_and_compared(folder):
    before = built(folder)
    rewrite(folder / "plain" / "scale.cu", "scaled(x[i])", "sqrtf(scaled(x[i])) + 1.0f")
    after = built(folder)
    found = code_against(before, after, "the run before")
    assert ("changed", ["scale"]) == (found.state, [one.entry for one in found.entries])
    was, now = found.entries[0].kinds["fp32"]
    assert now > was, "the square root takes instructions"
    assert found.entries[0].first is not None


def test_code_that_is_gone_or_damaged_is_not_found(folder):
    case = built(folder)
    assert kept_entries("scale", "sm_90", case.code["sass"])
    assert not kept_entries("scale", "sm_90", "0" * 16)
    assert not kept_entries("scale", "sm_80", case.code["sass"])
    assert not kept_entries("scal", "sm_90", case.code["sass"])
    (cubin,) = (folder.parent / "cache" / "cubin").glob("*.cubin")
    cubin.write_bytes(b"no machine code")
    assert not kept_entries("scale", "sm_90", case.code["sass"])
