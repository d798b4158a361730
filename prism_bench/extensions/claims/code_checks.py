"""Checks of a claim's machine code: its cubins, their hashes and entries, and what its records say ran."""

import re

from prism_bench.compilation.code import sass_hash, toolchain
from prism_bench.compilation.fatbin import cubin_architecture
from prism_bench.compilation.prebuilt import cubin_resources
from prism_bench.errors import ResultsError
from prism_bench.extensions.claims.document import Claim, ClaimedCode
from prism_bench.extensions.claims.making import device_in
from prism_bench.extensions.claims.packing import unpacked
from prism_bench.record.run_record import RunRecord
from prism_bench.units import count_text

# NVRTC has the ptxas of the same release, which leaves its number in the cubin.
_RELEASE, _NVRTC = re.compile(rb"release (\d+\.\d+)"), re.compile(r"NVRTC (\d+\.\d+)")
_ENTRY, _OPTIONAL = {"symbol": str, "registers": int, "spilled": int, "shared": int}, {"card"}


def check_code(claim: Claim, records: tuple[RunRecord, ...]) -> None:
    """Hold cubins to the hashes of their instructions, and those to what ran."""
    for side in claim.sides:
        for code in side.code:
            cubin = unpacked(claim.files[code.cubin], f"{side.name}: cubin")
            try:
                found = sass_hash(cubin)
            except Exception as error:  # whatever a reader of ELF raises for bytes that are none
                raise ResultsError(f"{side.name}: its cubin cannot be read ({type(error).__name__})") from None
            if found != code.sass:
                raise ResultsError(f"{side.name}: the instructions of its cubin have the hash {found}, not {code.sass}")
            _check_entries(side.name, code, cubin)
            capability = device_in(records[side.record]).compute_capability
            if code.architecture != str(capability):
                raise ResultsError(f"{side.name}: a cubin for sm_{code.architecture}, measured on sm_{capability}")
        ran = records[side.record].case(side.case)
        recorded = ran.code.get("sass") if ran and claim.backend == "cuda" else None
        if len(side.code) == 1 and recorded and recorded != side.code[0].sass:
            raise ResultsError(f"{side.name}: its cubin is not what was timed: {side.code[0].sass}, not {recorded}")


def _check_entries(name: str, code: ClaimedCode, cubin: bytes) -> None:
    """Hold what a claim states of its entries to the cubin: symbols, registers, shared memory, and spills."""
    if code.architecture != str(cubin_architecture(cubin)):
        raise ResultsError(f"{name}: its cubin is for sm_{cubin_architecture(cubin)}, not sm_{code.architecture:.20}")
    release, compiler = _RELEASE.search(toolchain(cubin)), _NVRTC.fullmatch(code.compiler)
    if release and compiler and release[1].decode() != compiler[1]:
        raise ResultsError(f"{name}: its cubin is of release {release[1].decode()}, not of {code.compiler:.40}")
    found = cubin_resources(cubin)
    symbols = [str(stated.get("symbol")) for stated in code.entries.values()]
    if not symbols or len(set(symbols)) < len(symbols):
        raise ResultsError(f"{name}: code.entries is empty, or names one symbol of its cubin twice")
    for text, stated in code.entries.items():
        if set(stated) - _OPTIONAL != set(_ENTRY) or any(type(stated[key]) is not kind for key, kind in _ENTRY.items()):
            raise ResultsError(f"{name}: {text:.80} has other fields than {', '.join(_ENTRY)}")
        known = found.get(str(stated.get("symbol")))
        if known is None:
            raise ResultsError(f"{name}: its cubin has no {stated.get('symbol')!r:.80}, which {text:.80} names")
        if (stated.get("registers"), stated.get("shared")) != (known.registers, known.shared_bytes):
            raise ResultsError(
                f"{name}: {text:.80} takes {count_text(known.registers, 'register')} and {known.shared_bytes} B of "
                "shared memory"
            )
        if stated.get("spilled") and not known.stack_bytes:
            raise ResultsError(f"{name}: {text:.80} cannot spill, since its cubin gives it no stack")
