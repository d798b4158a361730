"""Claims that a repository publishes: made and replayed in one call on a GPU machine, and called stale with their code.

    scripts/claims [--time-limit SECONDS]

`reports/claims/list.toml` names them. A claim that is there is not made again while its files are the catalogue's, and
an answer about its digest is not asked for again, so that a call that was cut short goes on where it ended. Claims are
in `reports/claims/<machine>/NAME.json`, next to `NAME.replayed-on-<machine>.json` with the answers.
"""

import argparse
import time
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from prism_bench.backends import Backend, open_backend
from prism_bench.catalogue import Catalogue, discover
from prism_bench.errors import PrismBenchError, ResultsError
from prism_bench.extensions.claims.checks import checked
from prism_bench.extensions.claims.document import Claim, canonical, encoded, read_bytes
from prism_bench.extensions.claims.measuring import PROCESSES, ClaimEffort, measured_ceilings
from prism_bench.extensions.claims.replay_checks import SideChecks
from prism_bench.extensions.claims.replay_document import Replay
from prism_bench.extensions.claims.replaying import ClaimReplay, ReplayRequest
from prism_bench.extensions.claims.sources import ClaimRequest, of_builds, of_kernel
from prism_bench.files import write_atomically
from prism_bench.identity import machine

FOLDER = Path("reports/claims")
_REPLAYED = ".replayed-on-"


class ListedClaim(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A claim to make: the `kernel` at a workload or label, against a `baseline` kernel, or else a peer."""

    name: str
    kernel: str
    case: str
    baseline: str = ""
    against: str | None = None


@dataclass(frozen=True)
class OwnClaims:
    """The claims of a folder on this machine; `left` is how many seconds are left for what begins."""

    folder: Path
    catalogue: Catalogue
    backend: Backend
    processes: int = PROCESSES
    limit: float = float("inf")
    _began: float = field(default_factory=time.monotonic)

    @property
    def left(self) -> float:
        """Seconds until nothing more begins."""
        return self.limit - (time.monotonic() - self._began)

    @property
    def machine(self) -> str:
        """The folder of this machine's claims."""
        return machine(self.backend.facts())["id"]

    def make(self) -> Iterator[str]:
        """Make what is missing or stale; yield what became of each."""
        effort = ClaimEffort(self.backend.name, self.processes)
        for one in listed(self.folder):
            path = self.folder / self.machine / f"{one.name}.json"
            if path.is_file() and not stale_files(path, self.catalogue):
                yield f"{path}: kept"
            elif self.left <= 0:
                yield f"{path}: left for the next call"
            else:
                if not effort.ceilings:
                    effort = replace(effort, ceilings=measured_ceilings(effort))
                yield f"{path}: {self._made(one, path, effort)}"

    def _made(self, one: ListedClaim, path: Path, effort: ClaimEffort) -> str:
        request = ClaimRequest(self.catalogue, one.case, one.against)
        try:
            if one.baseline:
                claim = of_builds((one.baseline, one.kernel), request, effort)
            else:
                claim = of_kernel(one.kernel, request, effort)
            write_atomically(path, encoded(claim))
        except PrismBenchError as error:
            return f"not made: {error}"
        return claim.sentence

    def replay(self) -> Iterator[tuple[str, int]]:
        """Replay the claims of all machines that this one has not answered; yield what came of each, and its code."""
        for path in claim_files(self.folder):
            place = path.with_name(f"{path.stem}{_REPLAYED}{self.machine}.json")
            claim, records = checked(read_bytes(path), str(path))
            known = answer_in(place, claim)
            if known:
                yield f"{place}: kept: {known.answer.word}", known.exit_code
            elif self.left <= 0:
                yield f"{place}: left for the next call", 0
            else:
                request = ReplayRequest(self.catalogue, self.backend.name, self.processes)
                found = ClaimReplay(claim, records, request).replay()
                write_atomically(place, f"{canonical(found)}\n".encode())
                yield f"{place}: {found.answer.word}: {found.answer.because}", found.exit_code


def listed(folder: Path) -> tuple[ListedClaim, ...]:
    """Return the claims that `list.toml` of the folder names; a ResultsError where it cannot be read."""
    path = folder / "list.toml"
    try:
        plain = tomllib.loads(path.read_text("utf-8"))
        found = msgspec.convert(plain.get("claim", []), tuple[ListedClaim, ...])
    except (OSError, ValueError, msgspec.ValidationError) as error:
        raise ResultsError(f"{path}: no list of claims ({error})") from None
    return found


def claim_files(folder: Path) -> list[Path]:
    """Return the files of claims below a folder, without those of answers."""
    return sorted(path for path in folder.glob("*/*.json") if _REPLAYED not in path.name)


def answer_in(path: Path, claim: Claim) -> Replay | None:
    """Return the answer in a file; None where there is none about this claim. A ResultsError for a damaged file."""
    if not path.is_file():
        return None
    try:
        found = msgspec.json.decode(path.read_bytes(), type=Replay)
    except msgspec.MsgspecError as error:
        raise ResultsError(f"{path}: no answer of a replay ({error})") from None
    return found if found.claim == claim.digest else None


def stale_files(path: Path, catalogue: Catalogue) -> list[str]:
    """Return the files of a kept claim that the catalogue has no longer; a ResultsError where it is no claim."""
    return SideChecks(*checked(read_bytes(path), str(path))).strange(catalogue)


def main(words: Sequence[str] | None = None) -> int:
    """Make and replay the claims; return 1 where one is not reproduced."""
    parser = argparse.ArgumentParser(prog="claims", description="Make and replay the claims of reports/claims.")
    parser.add_argument("--folder", type=Path, default=FOLDER, help=f"the folder of claims (default: {FOLDER})")
    parser.add_argument("--catalogue", type=Path, help="the catalogue (default: the bundled one)")
    parser.add_argument("--backend", default="cuda", help="the backend (default: cuda)")
    parser.add_argument("--processes", type=int, default=PROCESSES, help=f"processes a side (default: {PROCESSES})")
    parser.add_argument("--time-limit", type=float, default=float("inf"), help="begin nothing after these seconds")
    parser.add_argument("--only", choices=("make", "replay"), help="do one of the two")
    chosen = parser.parse_args(words)
    own = OwnClaims(
        chosen.folder, discover(chosen.catalogue), open_backend(chosen.backend), chosen.processes, chosen.time_limit
    )
    for line in own.make() if chosen.only != "replay" else ():
        print(line, flush=True)
    codes = [0]
    for line, code in own.replay() if chosen.only != "make" else ():
        print(line, flush=True)
        codes.append(code)
    return int(1 in codes)
