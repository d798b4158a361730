"""Changes of a claim, by name: what a forger would do, whose digest fits again."""

import base64
import io
import zlib

from elftools.elf.elffile import ELFFile

from prism_bench.compilation import sass_hash
from prism_bench.extensions.claims.document import PackedFile, sha256
from prism_bench.extensions.claims.making import unpacked


def put(path, value):
    """A change that sets the value at a dotted path."""

    def change(plain):
        *above, last = [int(one) if one.isdigit() else one for one in path.split(".")]
        place = plain
        for one in above:
            place = place[one]
        place[last] = value(place.get(last) if isinstance(place, dict) else place[last]) if callable(value) else value

    return change


def drop(path):
    """A change that removes what is at a dotted path."""

    def change(plain):
        *above, last = [int(one) if one.isdigit() else one for one in path.split(".")]
        place = plain
        for one in above:
            place = place[one]
        del place[last]

    return change


def swapped(plain):
    plain["kernel"], plain["baseline"] = plain["baseline"], plain["kernel"]


def same_side(plain):
    plain["baseline"] = plain["kernel"]


def in_file(suffix, *, rehash):
    """A change of a file's content; with `rehash` its hash is set everywhere, too."""

    def change(plain):
        key = next(key for path, key in plain["kernel"]["files"].items() if path.endswith(suffix))
        file = plain["files"].pop(key)
        file["content"] += "\n// faster"
        plain["files"][sha256(file["content"].encode()) if rehash else key] = file

    return change


def in_cubin(plain):
    """Other instructions, with every hash of the file as it should be."""
    cubin = plain["kernel"]["code"][0]["cubin"]
    content = bytearray(zlib.decompress(base64.b64decode(plain["files"].pop(cubin)["content"])))
    section = next(one for one in ELFFile(io.BytesIO(content)).iter_sections() if one.name.startswith(".text."))
    content[section["sh_offset"] + 8] ^= 1
    renewed = sha256(bytes(content))
    plain["files"][renewed] = {"encoding": "zlib+base64", "content": base64.b64encode(zlib.compress(content)).decode()}
    for code in (*plain["kernel"]["code"], *plain["baseline"]["code"]):
        code["cubin"] = renewed


def of_entry(field, value):
    """A change of what is stated of the kernel's entry."""
    return put(f"kernel.code.0.entries.tripled.{field}", value)


def of_entries(change):
    return put("kernel.code.0.entries", change)


def recoded(change):
    """A change of the packed text of the cubin, whose hash stays."""

    def apply(plain):
        file = plain["files"][plain["kernel"]["code"][0]["cubin"]]
        file["content"] = change(file["content"])

    return apply


def without_code(plain):
    """No machine code, as if none had been known."""
    for side in (plain["kernel"], plain["baseline"]):
        for code in side["code"]:
            plain["files"].pop(code["cubin"], None)
        side["code"] = []


def without_files(plain):
    plain["baseline"] |= {"files": {}, "spec": "", "code": [], "launches": []}


def with_file(path, text):
    """Another file of the kernel that its spec does not reach."""

    def change(plain):
        plain["files"][sha256(text.encode())] = {"encoding": "text", "content": text}
        plain["kernel"]["files"][path] = sha256(text.encode())

    return change


def repacked(plain):
    """A text as base64: the same content in other bytes."""
    file = next(one for one in plain["files"].values() if one["encoding"] == "text")
    content = base64.b64encode(zlib.compress(file["content"].encode())).decode()
    file |= {"encoding": "zlib+base64", "content": content}


def with_case(plain):
    plain["records"][0]["cases"].append({**plain["records"][0]["cases"][0], "name": "other[n=1]"})


def by_another_tool(plain):
    for case in plain["records"][0]["cases"]:
        case["family"] = "imported"


def forged_cubin(plain):
    """Other instructions, whose hash is stated as well: only the sources show that they are others."""
    in_cubin(plain)
    for code in (*plain["kernel"]["code"], *plain["baseline"]["code"]):
        code["sass"] = sass_hash(unpacked(PackedFile(**plain["files"][code["cubin"]]), "cubin"))


KERNEL, NAIVE = "records.0.cases.0", "records.0.cases.1"
TIMES = f"{KERNEL}.measurements.0"
FORGED = {
    "sentence": put("sentence", lambda text: text.replace("2.", "9.")),
    "ratio": put("ratio.value", 3.5), "ratio's low end": put("ratio.low", 1.0),
    "ratio's high end": put("ratio.high", 9.0), "no interval": put("ratio.low", None),
    "confidence": put("ratio.confidence", 0.5), "metric": put("metric", "hot_time"),
    "backend": put("backend", "cuda"), "device": put("device", "NVIDIA H200"),
    "median": put("kernel.seconds", 1e-6), "median's interval": put("kernel.low", 1e-6),
    "baseline's median": put("baseline.seconds", 1e-3), "baseline's interval": put("baseline.high", 1e-3),
    "case": put("kernel.case", "double[n=1000]"), "subject": put("kernel.subject", "peer:torch"),
    "record": put("kernel.record", 7), "record before the first": put("kernel.record", -1),
    "swapped sides": swapped, "one side": same_side, "kernel's name": put("kernel.name", "magic"),
    "baseline's name": put("baseline.name", "the best library"), "a peer less": put("peers", []),
    "peer's ratio": put("peers.0.ratio", 9.0), "protocol": put("protocol.settings.version", 2),
    "protocol's hash": put("protocol.sha256", "0" * 64), "ceilings": put("ceilings", {"bandwidth": 1e12}),
    "software": put("software.numpy", "9.9"), "seeds": put("inputs.seeds", [5]),
    "rule of hidden inputs": put("inputs.hidden", "none"), "silence": put("missing", []),
    "time": put(f"{TIMES}.processes.0.counts", lambda counts: [count // 4 + 1 for count in counts]),
    "unit of times": put(f"{TIMES}.processes.1.unit", lambda unit: unit / 2),
    "a process less": drop(f"{TIMES}.processes.0"),
    "invalid times": put(f"{TIMES}.valid", False), "wrong output": put(f"{KERNEL}.verification.0.passed", False),
    "no verification": put(f"{KERNEL}.verification", []), "baseline not verified": put(f"{NAIVE}.verification", []),
    "status": put(f"{KERNEL}.status", "wrong"), "record's backend": put("records.0.backend", "cuda"),
    "record's device": put("records.0.machine.device", "NVIDIA H200"),
    "record's protocol": put("records.0.protocol.processes_apart", True),
    "damaged record": put("records.0.cases", []), "no record": put("records", []),
    "schema": put("schema", 2), "format": put("format", "claim"), "unknown field": put("proof", "yes"),
    "field less": drop("ceilings"), "origin": put("origin", "nvbench"),
    "source": in_file(".cu", rehash=False), "reference": in_file(".py", rehash=False),
    "source under its new hash": in_file(".cu", rehash=True),
    "file's hash": put("kernel.files", lambda files: dict.fromkeys(files, "0" * 64)),
    "file less": put("files", {}),
    "file more": put(f"files.{sha256(b'more')}", {"encoding": "text", "content": "more"}),
    "encoding": put("files", lambda files: {key: {**one, "encoding": "rot13"} for key, one in files.items()}),
    "path above": put("kernel.files", lambda files: dict.fromkeys(["../../x.py"], min(files.values()))),
    "absolute path": put("kernel.files", lambda files: dict.fromkeys(["/etc/x.py"], min(files.values()))),
    "spec": put("kernel.spec", "arith/other.py"), "sources of a side": without_files,
    "hashes of inputs": put("inputs.sha256", {}), "packing": repacked, "a case more": with_case,
    "a record more": put("records", lambda records: [*records, records[0]]),
    "seed of a verification": put(f"{KERNEL}.verification.0.seed", 77),
    "nothing compared": put(f"{KERNEL}.verification.0.compared", 0),
    "workload": put(f"{KERNEL}.workload.n", 1), "kernel of a case": put(f"{KERNEL}.kernel", "double"),
    "variant of a case": put(f"{KERNEL}.variant", "naive"), "another tool": by_another_tool,
}  # fmt: skip
OF_CODE = {
    "hash of instructions": put("kernel.code.0.sass", "0" * 16), "cubin's hash": put("kernel.code.0.cubin", "0" * 64),
    "instructions": in_cubin, "architecture": put("kernel.code.0.architecture", "100"),
    "symbol": of_entry("symbol", "other"), "registers": of_entry("registers", 8), "shared": of_entry("shared", 64),
    "spilled": of_entry("spilled", 16), "no base64": recoded(lambda text: f"{text}!"),
    "no machine code": without_code, "compiler": put("kernel.code.0.compiler", "NVRTC 1.0"),
    "no entry": put("kernel.code.0.entries", {}),
    "an entry twice": of_entries(lambda one: {**one, "more": one["tripled"]}),
    "field of an entry": of_entry("fast", 1), "field less of an entry": drop("kernel.code.0.entries.tripled.spilled"),
    "type of a field": of_entry("spilled", "0"), "device of the cubin": put("records.0.machine.compute_capability", 80),
    "cut stream": recoded(lambda text: text[:400]), "no stream": recoded(lambda text: f"AAAA{text}"),
}  # fmt: skip
BY_COMPILING = {
    "instructions with their hash": forged_cubin,
    "name of an entry": of_entries(lambda one: {"tripled<8>": one["tripled"]}),
}
AT_REPLAY = {
    "grid": put("kernel.launches.0.grid", [1]), "block": put("baseline.launches.0.block", [1024]),
    "a launch less": put("kernel.launches", []), "inputs": put("inputs.sha256.x", "0" * 64),
    "an input less": put("inputs.sha256", lambda one: {**one, "more": "0" * 64}),
    "configuration": put("kernel.choice", {"block": 64}),
    "what was configured": put(f"{KERNEL}.configuration", {"block": 64}),
    "file that is not reached": with_file("arith/more.cu", "int x;"),
    "spec of the sources": put("kernel.spec", "arith/triple.cu"),
}  # fmt: skip
