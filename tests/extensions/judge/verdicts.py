"""Verdicts that nobody judged, for what shows them."""

from prism_bench.extensions.judge.verdict import CheckedCase, JudgedCode, JudgedTime, JudgeVerdict, Objection

CASE = "add[n=3000]"
TIMES = (
    JudgedTime(CASE, "add", "kernel", 3e-6, 2.9e-6, 3.1e-6, 30),
    JudgedTime(CASE, "sent", "submission", 2e-6, 1.9e-6, 2.1e-6, 30),
    JudgedTime(CASE, "bandwidth", "ceiling", 1e-6, 1e-6, 1.1e-6),
)
CODE = JudgedCode("90", "0123abcd", 4096, {"sum": 16}, {"sum": 0}, {"FADD": 2}, {"float32": 2})
RIGHT = JudgeVerdict(
    "sent", "add", "right", checked=(CheckedCase(CASE, "emulator, fast, forward", True),), code=(CODE,),
    unjudged=("compute-sanitizer: it is not installed",), defences=("jail", "races"), times=TIMES,
    evidence={"device": "a device"},
)  # fmt: skip
WRONG = JudgeVerdict(
    "<b>sent</b>", "add", "wrong", (Objection("outputs", "c[0] is 0, reference 1", CASE),),
    (CheckedCase(CASE, "emulator, race, forward", False, "c[0] is 0, reference 1"),), struck=("add[n=0]: nothing",),
)  # fmt: skip
