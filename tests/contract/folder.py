"""The folder that the commands of a transcript run in: records, toys and damaged files."""

import copy
import gzip
import json
import shutil
from pathlib import Path

HERE = Path(__file__).resolve().parent
CHECKOUT = HERE.parent.parent
REPORTS = CHECKOUT / "reports"
KINDS = {"h200": "runs/nvidia-h200", "h100": "runs/nvidia-h100-80gb-hbm3", "languages": "languages/nvidia-h200"}
TOYS = ("arith/double", "arith/triple", "machine/nothing")
SLOWER, FASTER = 1.3, 0.7
DAYS, STEP = 14, 8  # record of the series from which on softmax is slower


def newest(kind: str) -> Path:
    """Return the newest committed record of a kind."""
    return max((REPORTS / KINDS[kind]).glob("*.json.gz"))


def fill(folder: Path) -> None:
    """Write the records, catalogues and damaged files that transcripts name."""
    places = {"catalogue": CHECKOUT / "kernels", "budgets": CHECKOUT / "suites" / "budgets"}
    settings = "".join(f"{key} = {json.dumps(str(path))}\n" for key, path in places.items())
    (folder / "prism-bench.toml").write_text(settings)  # an installed package has no budgets
    for kind in KINDS:
        shutil.copy(newest(kind), folder / f"{kind}.json.gz")
    record = json.loads(gzip.decompress((HERE / "data" / "small.json.gz").read_bytes()))
    write(record, folder / "a.json.gz")
    write(changed(record), folder / "b.json.gz")
    for number in range(DAYS):
        of_day = record if number < STEP else changed(record)
        day = of_day | {"created": f"2026-11-{10 + number}T04:00:00", "commit": f"{number:040x}"}
        write(day, folder / "series" / "nvidia-h200" / f"202611{10 + number}T040000Z-{number:08x}.json.gz")
    for name in TOYS:
        for suffix in (".cu", ".py"):
            toy = folder / "toys" / f"{name}{suffix}"
            toy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(HERE.parent / "toys" / f"{name}{suffix}", toy)
    for part in ("scripts", "others"):
        shutil.copytree(HERE / "data" / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(HERE.parent / "monitor" / "fake_nvml.c", folder / "others" / "nvml")
    write_damaged(record, folder / "damaged")


def write(record: dict, path: Path) -> None:
    """Write a record as the product does: compact JSON in gzip."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(json.dumps(record, separators=(",", ":")).encode(), 1, mtime=0))


def changed(record: dict) -> dict:
    """Return the record of a later commit: softmax slower with other code, matmul faster, one wrong, one missing."""
    other = copy.deepcopy(record)
    other |= {"commit": "b" * 40, "created": "2026-11-27T15:00:00"}
    for case in other["cases"]:
        factor = {"softmax": SLOWER, "matmul": FASTER}.get(case["kernel"])
        if factor and case["variant"] is None:
            case["code"]["sass"] = "f" * 16
            for measurement in case["measurements"]:
                if measurement["metric"] == "cold_time" and measurement["subject"] == "kernel":
                    for process in measurement["processes"]:
                        process["counts"] = [round(count * factor) for count in process["counts"]]
    gone = next(case for case in other["cases"] if case["kernel"] == "vector_add" and case["variant"] is not None)
    other["cases"].remove(gone)
    return other


def write_damaged(record: dict, folder: Path) -> None:
    """Write files that are no records, each in another way."""
    folder.mkdir()
    whole = gzip.compress(json.dumps(record).encode(), 1, mtime=0)
    (folder / "truncated.json.gz").write_bytes(whole[: len(whole) // 2])
    (folder / "empty.json.gz").write_bytes(b"")
    (folder / "text.json").write_text("no JSON\n")
    (folder / "list.json").write_text("[1, 2]\n")
    (folder / "object.json").write_text('{"schema": 1}\n')
    (folder / "future.json").write_text('{"schema": 999}\n')
    (folder / "wrong_type.json").write_text(json.dumps(record | {"cases": [{"name": 3}]}))
    without = {key: value for key, value in record.items() if key != "machine"}
    (folder / "no_machine.json").write_text(json.dumps(without))
