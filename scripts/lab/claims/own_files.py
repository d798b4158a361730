"""Files of the claims that a repository publishes: their list, the claims of each machine, and answers of replays.

`reports/claims/list.toml` names them. Claims are in `reports/claims/<machine>/NAME.json`. Answers are next to a claim,
in `NAME.replayed-on-<machine>.json`, on a GPU with the first eight digits of its UUID: boards of one kind differ.
"""

import tomllib
from pathlib import Path

import msgspec

from lab.claims.together import Contestants
from prism_bench.catalogue import Catalogue
from prism_bench.errors import ResultsError
from prism_bench.extensions.claims.checks import checked
from prism_bench.extensions.claims.document import PEER, Claim, read_bytes
from prism_bench.extensions.claims.replaying import Replay, SideChecks
from prism_bench.spec.case import Case
from prism_bench.spec.workload import LABELS

FOLDER = Path("reports/claims")
REPLAYED = ".replayed-on-"


class ListedClaim(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A claim to make: the `kernel` at a workload or label, against a `baseline` kernel, or else a peer."""

    name: str
    kernel: str
    case: str
    baseline: str = ""
    against: str | None = None

    def sides(self, catalogue: Catalogue) -> Contestants:
        """Return the cases of both sides; a ResultsError where the catalogue does not have them."""
        baseline = self._case(catalogue, self.baseline) if self.baseline else None
        return Contestants(self._case(catalogue, self.kernel), baseline)

    def _case(self, catalogue: Catalogue, kernel: str) -> Case:
        for case in catalogue.cases([kernel], LABELS):
            if case.kernel == kernel and self.case in (case.label, str(case.workload), case.name):
                return case
        raise ResultsError(f"{self.name}: no case {self.case} of {kernel}")


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
    return sorted(path for path in folder.glob("*/*.json") if REPLAYED not in path.name)


def answer_file(path: Path, machine: str, uuid: str) -> Path:
    """Return the file for the answer of a machine's board about the claim at `path`."""
    board = "".join(letter for letter in uuid.removeprefix("GPU-") if letter.isalnum())[:8]
    return path.with_name(f"{path.stem}{REPLAYED}{'-'.join(filter(None, (machine, board)))}.json")


def answer_files(path: Path) -> list[Path]:
    """Return the files of answers about the claim at `path`."""
    return sorted(one for one in path.parent.glob("*.json") if one.name.startswith(f"{path.stem}{REPLAYED}"))


def read_answer(path: Path) -> Replay:
    """Return the answer in a file; a ResultsError where it holds none."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Replay)
    except (OSError, msgspec.MsgspecError) as error:
        raise ResultsError(f"{path}: no answer of a replay ({error})") from None


def answer_in(path: Path, claim: Claim) -> Replay | None:
    """Return the answer in a file; None where there is none about this claim. A ResultsError for a damaged file."""
    found = read_answer(path) if path.is_file() else None
    return found if found and found.claim == claim.digest else None


def stale_files(path: Path, catalogue: Catalogue) -> list[str]:
    """Return the files of a kept claim that the catalogue has no longer; a ResultsError where it is no claim."""
    return SideChecks(*checked(read_bytes(path), str(path))).unknown_files(catalogue)


def sides_here(claim: Claim, catalogue: Catalogue) -> Contestants | None:
    """Return the cases of a claim's sides in the catalogue; None where it has not the claim's files."""
    if not all(side.files for side in claim.sides) or SideChecks(claim, ()).unknown_files(catalogue):
        return None
    kernel, baseline = (catalogue.anywhere(side.case).configured(side.choice) for side in claim.sides)
    return Contestants(kernel, None if claim.baseline.subject.startswith(PEER) else baseline)
