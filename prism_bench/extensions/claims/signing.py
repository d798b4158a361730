"""Signatures of claims, detached and next to the file, by minisign or sigstore where they are installed.

A digest shows that a claim was not changed by accident. Who made it, only a signature shows.
"""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from prism_bench.errors import BackendUnavailable, ResultsError, UsageError
from prism_bench.extensions.claims.fetching import fetched_next_to
from prism_bench.io.files import temporary_folder

MINISIGN, SIGSTORE = "minisign", "sigstore"
SUFFIXES = {MINISIGN: ".minisig", SIGSTORE: ".sigstore.json"}
_SECONDS = 300  # sigstore may ask a person to log in


def require_signer(how: str) -> None:
    """Raise an error unless `how` is `minisign:KEY_FILE` or `sigstore`, and its program is installed."""
    tool, _, key = how.partition(":")
    if how != SIGSTORE and not (tool == MINISIGN and key):
        raise UsageError(f"--sign {how}: write minisign:KEY_FILE, or sigstore")
    _require_program(tool)


def sign(path: Path, how: str) -> Path:
    """Sign the file; `how` is `minisign:KEY_FILE` or `sigstore`. Returns the signature's path."""
    require_signer(how)
    tool, _, key = how.partition(":")
    words: list[str] = [MINISIGN, "-S", "-s", key, "-m", str(path), "-x", f"{path}{SUFFIXES[MINISIGN]}"]
    if tool == SIGSTORE:
        words = [SIGSTORE, "sign", "--overwrite", "--bundle", f"{path}{SUFFIXES[SIGSTORE]}", str(path)]
    done = _run(words)
    if done.returncode:
        raise ResultsError(f"{path}: {tool} did not sign it: {_last_line(done)}")
    return Path(f"{path}{SUFFIXES[tool]}")


def require_signature(place: str, content: bytes, by: str | None) -> str:
    """Return in words who signed a claim; `by` is `minisign:PUBLIC_KEY` or `sigstore:IDENTITY,ISSUER`.

    A ResultsError where a signature is wanted and is not there, or is another one's.
    """
    if by is None:
        there = [tool for tool, suffix in SUFFIXES.items() if fetched_next_to(place, suffix) is not None]
        return f"signed by {there[0]}, unchecked: --signed-by checks it" if there else "not signed"
    tool, _, signer = by.partition(":")
    identity, _, issuer = signer.partition(",")
    if tool not in SUFFIXES or not identity or (tool == SIGSTORE) != bool(issuer):
        raise UsageError(f"--signed-by {by}: write minisign:PUBLIC_KEY or sigstore:IDENTITY,ISSUER")
    signature = fetched_next_to(place, SUFFIXES[tool])
    if signature is None:
        raise ResultsError(f"{place}: no signature {SUFFIXES[tool]} next to it")
    with temporary_folder("prism-claim-") as folder:
        file, signed = folder / "claim.json", folder / f"claim.json{SUFFIXES[tool]}"
        file.write_bytes(content)
        signed.write_bytes(signature)
        words = [MINISIGN, "-V", "-q", "-P", identity, "-m", str(file), "-x", str(signed)]
        if tool == SIGSTORE:
            words = [SIGSTORE, "verify", "identity", "--bundle", str(signed), "--cert-identity", identity]
            words += ["--cert-oidc-issuer", issuer, str(file)]
        done = _run(words)
    if done.returncode:
        raise ResultsError(f"{place}: its signature is not by {identity}: {_last_line(done)}")
    return f"signed by {identity}"


def _require_program(name: str) -> None:
    if shutil.which(name) is None:
        raise BackendUnavailable(f"{name} is not installed; a claim can be made and replayed without a signature")


def _run(words: Sequence[str]) -> subprocess.CompletedProcess[str]:
    _require_program(words[0])
    try:
        return subprocess.run(words, capture_output=True, text=True, timeout=_SECONDS, stdin=None)
    except subprocess.TimeoutExpired:
        raise ResultsError(f"{words[0]} has not ended in {_SECONDS} s") from None


def _last_line(done: subprocess.CompletedProcess[str]) -> str:
    lines = (done.stderr or done.stdout).strip().splitlines()
    return lines[-1] if lines else f"it ended with {done.returncode}"
