"""compute-sanitizer's words as findings by case."""

from prism_bench.profilers.tools import CHECKS, Tool, command, command_to_file, parse

ENTRIES = {"one[n=1]": ("add_one",), "two[n=1]": ("tiled<4>", "finish"), "two[n=9]": ("tiled<4>", "finish")}
MEMORY = """========= Invalid __global__ write of size 4 bytes
=========     at void tiled<(int)4>(float *, int)+0x160 in /home/somebody/kernels/two.cu:12
=========     by thread (0,0,0) in block (3,0,0)
=========     Access to 0x7f is out of bounds
========="""
RACE = (
    "========= Error: Race reported between Write access at add_one+0xe0 in /x/one.cu:40\n"
    "=========     and Read access at add_one+0xf0 in /x/one.cu:42 [508 hazards]"
)


def during(case, words):
    return f"@@ begin {case}\n{words}\n@@ end {case}\n"


def test_a_finding_belongs_to_the_case_around_it():
    text = during("one[n=1]", "") + during("two[n=1]", MEMORY) + "========= ERROR SUMMARY: 1 error"
    found = parse(text, "memcheck", ENTRIES)
    (finding,) = found.findings
    assert ("two[n=1]", "two.cu:12") == (finding.case, finding.source)
    assert finding.message.startswith("Invalid __global__ write")
    assert (("one[n=1]", "two[n=1]"), 1) == (found.cases, found.counted)


def test_a_late_finding_goes_to_the_last_case_that_has_the_kernel():
    text = during("one[n=1]", "") + during("two[n=1]", "") + during("one[n=1]", MEMORY)
    assert ["two[n=1]"] == [one.case for one in parse(text, "memcheck", ENTRIES).findings]


def test_races_tell_their_place_and_every_other_access():
    race = RACE + "\n=========     and Write access at add_one+0x20 in /x/one.cu:30 [4 hazards]"
    (finding,) = parse(during("one[n=1]", race), "racecheck", ENTRIES).findings
    assert ("one[n=1]", "add_one", "one.cu:40") == (finding.case, finding.kernel, finding.source)
    others = (
        "Read access at add_one+0xf0 in /x/one.cu:42 [508 hazards]",
        "Write access at add_one+0x20 in /x/one.cu:30",
    )
    first = "Error: Race reported between Write access at add_one+0xe0 in /x/one.cu:40"
    assert f"{first} and {others[0]} and {others[1]} [4 hazards]" == finding.message


def test_reads_of_what_nobody_wrote_and_divergent_barriers():
    read = "========= Uninitialized __global__ memory read of size 4 bytes\n=========     at add_one+0x10 in one.cu:3"
    barrier = "========= Barrier error detected. Divergent thread(s) in block\n=========     at finish+0x20"
    assert 1 == len(parse(during("one[n=1]", read), "initcheck", ENTRIES).findings)
    (finding,) = parse(during("two[n=9]", barrier), "synccheck", ENTRIES).findings
    assert ("two[n=9]", "finish", None) == (finding.case, finding.kernel, finding.source)


def test_a_clean_run_has_no_findings_and_its_cases():
    text = (
        "========= COMPUTE-SANITIZER\n"
        + during("one[n=1]", "words of the program")
        + "========= ERROR SUMMARY: 0 errors"
    )
    found = parse(text, "memcheck", ENTRIES)
    assert ((), ("one[n=1]",), 0) == (found.findings, found.cases, found.counted)


def test_a_run_that_was_cut_has_no_summary_and_its_last_case_is_not_done():
    found = parse("@@ begin one[n=1]\n", "memcheck", ENTRIES)
    assert ((), None) == (found.cases, found.counted)


def test_a_case_that_failed_is_not_done():
    assert () == parse("@@ begin one[n=1]\n@@ failed one[n=1]\n", "memcheck", ENTRIES).cases


def test_every_check_names_itself_and_memcheck_separates_allocations():
    tool = Tool("compute-sanitizer", "/bin/cs", "2025.3.1")
    for check in CHECKS:
        words = command(tool, check, ["python", "x.py"])
        assert ["/bin/cs", "--tool", check] == words[:3]
        assert "1000000" == words[words.index("--print-limit") + 1]
        assert ("--padding" in words) == (check == "memcheck")
        assert ["python", "x.py"] == words[-2:]


def test_a_log_of_its_own_has_few_findings_and_no_words_of_the_program(tmp_path):
    tool = Tool("compute-sanitizer", "/bin/cs", "2025.3.1")
    for check in CHECKS:
        words = command_to_file(tool, check, tmp_path / "log")
        assert str(tmp_path / "log") == words[words.index("--log-file") + 1]
        assert "no" == words[words.index("--show-backtrace") + 1]
        assert ("--padding" in words) == (check == "memcheck")


def test_the_tool_waits_for_a_program_that_calls_the_device_late(tmp_path):
    """After ten seconds without a call it would stop listening, and the program's first call would never return."""
    tool = Tool("compute-sanitizer", "/bin/cs", "2025.3.1")
    for words in (command(tool, "racecheck", ["x"]), command_to_file(tool, "racecheck", tmp_path / "log")):
        assert int(words[words.index("--launch-timeout") + 1]) > 1800  # seconds that a judgement may take


def test_what_the_tool_says_of_itself_is_a_remark_and_no_finding():
    found = parse(f"{RACE}\n========= Internal Sanitizer Error: no memory\n", "racecheck", {})
    assert (1, ("Internal Sanitizer Error: no memory",)) == (len(found.findings), found.remarks)
