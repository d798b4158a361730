"""Arithmetic of machine code by its precision, from instructions as nvdisasm prints them."""

import pytest

from prism_bench.extensions.judge.machine_code import below, precision_census


@pytest.mark.parametrize(
    ("instruction", "census"),
    [
        ("FADD R7, R2, R5", {"fp32": 1}),
        ("@!P0 FFMA.FTZ R7, R2, R5, R7", {"fp32": 1, "flushed to zero": 1}),
        ("DFMA R4, R2, R4, R6", {"fp64": 1}),
        ("HMUL2 R4, R4.H0_H0, R5.H0_H0", {"half": 1}),
        ("HFMA2.MMA R5, -RZ, RZ, 1.875, 0", {}),  # loads a constant
        ("HFMA2 R5, -RZ, RZ, 0, 5.9604644775390625e-08", {}),
        ("HADD2.F32 R4, -RZ, R4.H0_H0", {}),  # widens data that are halves
        ("F2FP.F16.F32.PACK_AB R4, RZ, R4", {"half": 1}),
        ("F2F.F32.F16 R4, R4", {}),
        ("HMMA.16816.F32 R8, R4, R6, R8", {"half": 1}),
        ("HMMA.1684.F32.TF32 R8, R4, R6, R8", {"tf32": 1}),
        ("QGMMA.64x64x32.F32.E4M3.E4M3 R24, gdesc[UR4], R24", {"fp8": 1}),
        ("MUFU.EX2.F16 R9, R2.H1", {"half": 1}),
        ("MUFU.TANH.BF16 R0, R2", {"half": 1}),
        ("MUFU.EX2 R0, R2", {"fp32": 1}),
        ("REDG.E.ADD.F16x2.RN.STRONG.GPU desc[UR4][R2.64], R5", {"half": 1}),
        ("REDG.E.ADD.BF16x8.RN.STRONG.GPU desc[UR4][R2.64], R8", {"half": 1}),
        ("REDG.E.ADD.F32.FTZ.RN.STRONG.GPU desc[UR4][R2.64], R5", {}),
        ("@P1 ATOMG.E.ADD.F16x2.RN.STRONG.GPU PT, R7, desc[UR4][R2.64], R5", {"half": 1}),
        ("UBLKRED.G.S.ADD.BF16.RN [UR6], [UR4], UR5", {"half": 1}),
        ("I2F.F16 R9, R2", {"half": 1}),
        ("I2F.U8 R9, R2", {}),
        ("IDP.4A.S8.S8 R7, R2, R2, R9", {"fp8": 1}),
        ("IADD3 R1, R1, 1, RZ", {}),
    ],
)
def test_an_instruction_counts_by_the_precision_that_it_calculates_in(instruction: str, census: dict[str, int]) -> None:
    assert precision_census([instruction]) == census


def test_what_is_below_the_least_precision_is_named() -> None:
    census = {"half": 2, "tf32": 1, "fp32": 9}
    assert below(census, "fp32") == ("half", "tf32")
    assert below(census, "tf32") == ("half",)
    assert below(census, "fp8") == ()
