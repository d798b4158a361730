"""Differences of machine code: counts by kind, resources, and the first block that differs; JSON and words."""

import json
import re
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from prism_bench.compilation import compile_source, listing
from prism_bench.compilation.cubin import Resources
from prism_bench.compilation.listing import CodeFacts, CompiledEntry, differences, entry_difference, read_listing
from prism_bench.errors import BackendUnavailable
from prism_bench.io.installation import pip_install
from prism_bench.report.plain import changes_of, code_difference_json
from prism_bench.report.terminal.verification import code_difference_view

LISTINGS = Path(__file__).parent / "listings"
BEFORE, AFTER = Resources(registers=8), Resources(registers=10, spill_stores=4, shared_bytes=512)


def facts(name, resources, entry="scale"):
    return CodeFacts(resources, read_listing((LISTINGS / name).read_text())[entry])


@pytest.fixture
def changed():
    """The difference of the stored listings."""
    return entry_difference("scale", facts("scale.sass", BEFORE), facts("scale_after.sass", AFTER))


def test_the_counts_of_both_sides_are_by_kind(changed):
    moved = {kind: counts for kind, counts in changed.kinds.items() if counts[0] != counts[1]}
    assert {"local memory": (0, 1), "fp32": (1, 2)} == moved
    assert changed.spills_grew


def test_the_first_block_that_differs_is_shown_from_the_line_before(changed):
    assert 2 == changed.first.number
    assert ("FADD R3, R3, R2", "@!P1 BRA `(.L_x_1)") == changed.first.before
    assert "FFMA R3, R3, R2, R2" == changed.first.after[1]


def test_a_long_block_is_shown_in_part(monkeypatch):
    monkeypatch.setattr(listing, "SHOWN", 1)
    found = entry_difference("scale", facts("scale.sass", BEFORE), facts("scale_after.sass", AFTER))
    assert (1, 1) == (len(found.first.before), len(found.first.after))


def test_other_names_of_labels_are_no_difference():
    text = (LISTINGS / "scale.sass").read_text()
    moved = CodeFacts(BEFORE, read_listing(text.replace(".L_x_", ".L_x_7"))["scale"])
    assert () == differences({"scale": facts("scale.sass", BEFORE)}, {"scale": moved})


def test_other_targets_of_cuobjdump_are_no_difference():
    text = (LISTINGS / "two_functions.txt").read_text()
    moved = CodeFacts(BEFORE, read_listing(text.replace("BRA 0x30", "BRA 0x90"))["first"])
    assert () == differences({"first": facts("two_functions.txt", BEFORE, "first")}, {"first": moved})


def test_more_registers_alone_are_a_difference():
    before = facts("scale.sass", BEFORE)
    (found,) = differences({"scale": before}, {"scale": replace(before, resources=AFTER)})
    assert found.first is None
    assert "registers 8 -> 10 (+2)" in changes_of(code_difference_json([found])[0])


def test_an_entry_of_one_side_is_added_or_removed():
    one = facts("scale.sass", BEFORE)
    plain = code_difference_json([*differences({"old": one}, {"new": one})])
    assert [("new", "added"), ("old", "removed")] == [(found["entry"], found["state"]) for found in plain]
    assert [None, 8] == plain[0]["registers"]


def test_without_listings_the_resources_are_left(changed):
    (plain,) = code_difference_json([entry_difference("scale", CodeFacts(BEFORE), CodeFacts(AFTER))])
    assert ({}, None, [None, None]) == (plain["kinds"], plain["first_difference"], plain["instructions"])
    assert ["registers 8 -> 10 (+2)", "spill bytes 0 -> 4 (+4)", "shared bytes 0 -> 512 (+512)"] == changes_of(plain)


def shown(entries, **options):
    """Return the lines at 80 columns."""
    console = Console(width=80, file=StringIO(), markup=False)
    with console.capture() as caught:
        console.print(code_difference_view(entries, **options))
    return [line.rstrip() for line in caught.get().splitlines()]


def test_json_and_terminal_show_the_same(changed):
    plain = json.loads(json.dumps(code_difference_json([changed])))
    lines = shown(plain)
    assert max(map(len, lines)) <= 80
    words = " ".join(line.strip() for line in lines)
    assert "scale: registers 8 -> 10 (+2), spill bytes 0 -> 4 (+4)" in words
    assert "local memory 0 -> 1 (+1)" in words
    start = next(number for number, line in enumerate(lines) if "block 2" in line)
    assert ["FADD R3, R3, R2", "- @!P1 BRA `(.L_x_1)", "+ FFMA R3, R3, R2, R2"] == [
        line.strip() for line in lines[start + 1 : start + 4]
    ]


def test_equal_numbers_are_said_to_be_other_operands():
    text = (LISTINGS / "scale.sass").read_text()
    other = CodeFacts(BEFORE, read_listing(text.replace("FADD R3, R3, R2", "FADD R3, R2, R3"))["scale"])
    plain = code_difference_json(differences({"scale": facts("scale.sass", BEFORE)}, {"scale": other}))
    assert "other operands or another order" in " ".join(map(str.strip, shown(plain)))


def test_two_compiled_sources_differ_by_their_instructions(tmp_path):
    """The whole way, where NVRTC and nvdisasm are installed."""
    code = 'extern "C" __global__ void scale(float* x) { x[threadIdx.x] *= 2; }'
    compiled = []
    for name, text in (("a", code), ("b", code.replace("*= 2", "= __expf(x[threadIdx.x])"))):
        (tmp_path / f"{name}.cu").write_text(text)
        try:
            made = compile_source(tmp_path / f"{name}.cu", ("scale",), "90")
            listing.listing_of(made.path)
        except BackendUnavailable as error:
            pytest.skip(str(error))
        compiled.append({"scale": CompiledEntry(made.path, "scale", made.resources["scale"])})
    (found,), reason = listing.code_differences(*compiled)
    assert reason is None
    assert found.kinds["fp32"][0] < found.kinds["fp32"][1]
    assert ((), None) == listing.code_differences(compiled[0], compiled[0])


def test_without_a_disassembler_it_is_said_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setattr(listing, "tool", lambda name: None)
    with pytest.raises(BackendUnavailable, match=re.escape(pip_install("compile"))):
        listing.listing_of(tmp_path / "x.cubin")


def test_a_disassembler_that_cannot_read_the_file_is_named(monkeypatch, tmp_path):
    program = tmp_path / "nvdisasm"
    program.write_text("#!/bin/sh\necho unknown architecture >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setattr(listing, "tool", lambda name: str(program))
    with pytest.raises(BackendUnavailable, match=r"nvdisasm does not list x.cubin: unknown architecture"):
        listing.listing_of(tmp_path / "x.cubin")
