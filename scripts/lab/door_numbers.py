"""What a user meets first: CPU seconds to start and to answer, commands, option names, and the size of a site."""

import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import typer

from prism_bench.cli.commands import command_line

ROOT = Path(__file__).resolve().parents[2]
RUNS = ROOT / "reports" / "runs" / "nvidia-h200"
REPEATS = 5
# The CPU seconds that each command may take.
GOALS = {
    ("--version",): 0.1,
    ("--help",): 0.3,
    ("list",): 0.8,
    ("show", "RECORD"): 1.5,
    ("check", "RECORD"): 3.0,
    ("report", "RECORD", "--output", "SITE"): 10.0,
}
MOST_COMMANDS, MOST_NAMES, MOST_MEGABYTES = 26, 90, 12


def main() -> int:
    """Print each number with its goal; return 1 where one misses it."""
    record = max(RUNS.glob("*.json.gz"))
    rows: list[tuple[str, float, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        site = Path(folder) / "site"
        for words, goal in GOALS.items():
            chosen = [str({"RECORD": record, "SITE": site}.get(word, word)) for word in words]
            rows.append((f"{' '.join(words)}, CPU s", cpu_seconds(chosen), goal))
        files = [path for path in site.rglob("*") if path.is_file()]
        rows.append(("site of the record, MB", sum(path.stat().st_size for path in files) / 1e6, MOST_MEGABYTES))
    commands, names = surface()
    rows += [("commands", commands, MOST_COMMANDS), ("option names", names, MOST_NAMES)]
    if "--json" in sys.argv[1:]:
        print(json.dumps({title: {"value": value, "goal": goal} for title, value, goal in rows}, indent=1))
    else:
        for title, value, goal in rows:
            print(f"{title:48} {value:8.2f}  goal {goal:g}{'' if value <= goal else '  missed'}")
    return int(any(value > goal for _, value, goal in rows))


def cpu_seconds(words: Sequence[str]) -> float:
    """Return the median CPU time of the command over REPEATS processes, after one that fills caches of bytecode."""
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    seconds: list[float] = []
    for _ in range(REPEATS + 1):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([Path(sys.executable).with_name("prism-bench"), *words], cwd=ROOT, env=environment,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)  # fmt: skip
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return median(seconds[1:])


def surface() -> tuple[int, int]:
    """Return how many commands the program has, and how many names its options have."""
    group = typer.main.get_command(command_line())
    commands = group.commands  # type: ignore[attr-defined]
    names = {
        name
        for command in commands.values()
        for option in command.params
        if option.param_type_name == "option"
        for name in option.opts
        if name.startswith("--")
    }
    return len(commands), len(names)
