"""Form of machine code: what is wrong with a cubin is named, whatever its bytes are."""

import struct
from pathlib import Path
from random import Random

import pytest

from prism_bench.compilation.cubin import entry_symbols
from prism_bench.extensions.judge import machine_code
from prism_bench.extensions.judge.machine_code import form_objections, precision_objections

_FILE, _SECTION = struct.Struct("<16sHHIQQQIHHHHHH"), struct.Struct("<IIQQQQIIQQ")  # the headers of ELF files
CUBIN = Path(__file__).parent / "museum" / "honest_machine_code.cubin"


def spoiled(rng: Random) -> bytes:
    """Return machine code with some bytes of its header and tables changed, or left out."""
    content = bytearray(CUBIN.read_bytes())
    for _ in range(rng.choice((1, 2, 5, 20))):
        place = rng.choice((rng.randrange(64), len(content) - rng.randrange(9, 2000), rng.randrange(len(content))))
        odd = rng.choice((b"\xff" * 8, b"\0" * 8, rng.getrandbits(63).to_bytes(8, "little"), b"\xff", b""))
        content[place : place + max(1, len(odd))] = odd
    return bytes(content)


def test_bytes_that_are_no_machine_code_are_an_objection() -> None:
    assert [] == list(form_objections(CUBIN.read_bytes(), ["attack"]))
    rng, words = Random(20261127), list[str]()
    for _ in range(1500):
        words += [one.text for one in form_objections(spoiled(rng), ["attack"])]
    assert {"no ELF file that can be read" in one for one in words} == {True, False}


def with_another_table(cubin: bytes, hidden: bytes, name: str) -> bytes:
    """Return machine code with a second table of symbols, without those that have `hidden` in their names.

    The first one has the `name` of another section then, or none.
    """
    header = list(_FILE.unpack_from(cubin))
    headers = [list(_SECTION.unpack_from(cubin, header[6] + place * header[11])) for place in range(header[12])]

    def content(section: list[int]) -> bytes:
        return cubin[section[4] : section[4] + section[5]]

    texts = content(headers[header[13]])
    names = [texts[one[0] : texts.index(b"\0", one[0])].decode() for one in headers]
    table = headers[names.index(".symtab")]
    symbols, labels = content(table), content(headers[table[6]])
    shown = [symbols[at : at + 24] for at in range(0, len(symbols), 24)]
    shown = [one for one in shown if hidden not in labels[int.from_bytes(one[:4], "little") :].split(b"\0")[0]]
    body = cubin[64:] + b"".join(shown)
    second = [*table[:4], len(cubin), 24 * len(shown), *table[6:]]
    table[0] = headers[names.index(name)][0]
    header[6], header[12] = 64 + len(body), header[12] + 1
    return _FILE.pack(*header) + body + b"".join(_SECTION.pack(*one) for one in [*headers, second])


@pytest.mark.parametrize("name", [".shstrtab", ".symtab", ""])
def test_machine_code_has_one_table_of_symbols(name: str) -> None:
    """Readers go by names; a driver that goes by kinds would take the other table, with a kernel that nobody saw."""
    cubin = CUBIN.with_name("has_another_kernel_in_its_cubin.cubin").read_bytes()
    assert {"other", "attack"} == set(entry_symbols(cubin))
    hiding = with_another_table(cubin, b"other", name)
    assert ("attack",) == entry_symbols(hiding)
    (one,) = form_objections(hiding, ["attack"])
    assert "it has two sections of the name" in one.text


@pytest.mark.parametrize("name", ["at ack", "at\nack", "\u00a0ttack", "at\tack"])
def test_a_kernel_has_a_name_that_a_listing_can_have(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else its instructions are in nobody's census: a listing is read by lines and words."""
    monkeypatch.setattr(machine_code, "entry_symbols", lambda cubin: [name])
    (odd,) = form_objections(CUBIN.read_bytes(), [name])
    assert "names that no compiler gives" in odd.text


def test_instructions_that_nothing_lists_have_no_precision() -> None:
    assert [] == list(precision_objections({"fp32": 2}, "fp32"))
    assert [] == list(precision_objections({}, "fp32")), "it calculates nothing"
    (low,) = precision_objections({"half": 3, "fp32": 2}, "fp32")
    assert "3 instructions work in half; the task asks for fp32" == low.text
    (unlisted,) = precision_objections(None, "fp32")
    assert "nothing lists its instructions; the task asks for fp32" == unlisted.text


def test_an_objection_names_few_kernels_and_no_long_name(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"{'x' * 500}{number}" for number in range(90)]
    monkeypatch.setattr(machine_code, "undefined_symbols", lambda cubin: [*names, "vprintf"])
    monkeypatch.setattr(machine_code, "why_unreadable", lambda cubin: "")
    monkeypatch.setattr(machine_code, "entry_symbols", lambda cubin: ["one", *names])
    others, prints = form_objections(b"", ["one"])
    assert others.text.endswith("... and 87 more kernels")
    assert len(others.text) < 500
    assert "it prints from the device (vprintf)" == prints.text
    monkeypatch.setattr(machine_code, "undefined_symbols", lambda cubin: names)
    assert 3 == len(list(form_objections(b"", ["one"], compiled_here=True)))
