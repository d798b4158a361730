"""Listings of machine code: functions, blocks and kinds, of nvdisasm's and cuobjdump's text."""

from pathlib import Path

import pytest

from prism_bench.compilation.listing import kind_of, opcode_of, read_listing

LISTINGS = Path(__file__).parent / "listings"


def listed(name):
    return read_listing((LISTINGS / name).read_text())


def test_a_label_begins_a_block_and_a_branch_ends_it():
    (scale,) = listed("scale.sass").values()
    assert ["LDC", "FADD", "STG.E", "BRA"] == [opcode_of(block.instructions[0]) for block in scale.blocks
                                               if not block.instructions[0].startswith("LDG")]  # fmt: skip
    assert 5 == len(scale.blocks)


def test_padding_is_no_code():
    (scale,) = listed("scale.sass").values()
    assert 10 == len(scale.instructions)
    assert 160 == scale.code_bytes


def test_instructions_are_counted_by_kind():
    (scale,) = listed("scale.sass").values()
    assert {"global memory": 2, "constant memory": 1, "fp32": 1, "integer": 1, "control": 4, "other": 1} == scale.kinds


def test_cuobjdumps_text_has_every_function_without_the_encoding():
    found = listed("two_functions.txt")
    assert ["first", "second"] == list(found)
    assert "HFMA2.MMA R3, -RZ, RZ, 0, 0" == found["first"].instructions[1]
    assert {"tensor": 1, "control": 1} == found["second"].kinds
    assert {"integer": 1, "half": 1, "control": 2} == found["first"].kinds


def test_a_text_without_functions_has_none():
    assert {} == read_listing("nvdisasm fatal: not a cubin\n")


@pytest.mark.parametrize(
    ("instruction", "kind"),
    [("@!P0 LDG.E.128 R4, desc[UR6][R2.64]", "global memory"), ("STS.64 [R2], R4", "shared memory"),
     ("HGMMA.64x64x16.F32 R24, gdesc[UR8]", "tensor"), ("LDL R2, [R1]", "local memory"),
     ("ULDC.64 UR6, c[0x0]", "constant memory"), ("MUFU.EX2 R2, R3", "fp32"),
     ("DFMA R2, R4, R6, R8", "fp64"), ("HFMA2 R2, R3, R4, R5", "half"),
     ("@UP0 UIADD3 UR4, UR4, 0x1, URZ", "integer"), ("F2FP.BF16.F32.PACK_AB R2, R3, R4", "conversion"),
     ("BSSY B0, `(.L_x_1)", "control"), ("UTMALDG.2D [UR8], [UR4]", "barrier and async"),
     ("LDGSTS.E.BYPASS.128 [R2], [R4.64]", "barrier and async"), ("UTCHMMA gdesc[UR4], gdesc[UR6]", "tensor"),
     ("SHFL.BFLY PT, R2, R3, 0x1, 0x1f", "other"), ("UNHEARDOF R2, R3", "other")],
)  # fmt: skip
def test_the_opcode_decides_the_kind(instruction, kind):
    assert kind == kind_of(instruction)
