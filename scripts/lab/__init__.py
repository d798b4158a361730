"""What tests the instrument, or publishes its own results: simulations, fuzzing, soak, own claims."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from prism_bench.errors import ResultsError
from prism_bench.profilers.tools import last_words

REPOSITORY = Path(__file__).resolve().parents[2]  # tables are written into its reports/


def printed_json(folder: Path, *words: str, **environment: str) -> Any:
    """Return what `prism-bench` prints with `--json` in a folder; ResultsError with its last lines if it is no JSON."""
    program = [sys.executable, "-m", "prism_bench", *words, "--json"]
    ended = subprocess.run(program, cwd=folder, capture_output=True, text=True, env={**os.environ, **environment})
    try:
        return json.loads(ended.stdout)
    except json.JSONDecodeError as error:
        raise ResultsError(f"prism-bench {words[0]}: {last_words(ended.stderr)}") from error
