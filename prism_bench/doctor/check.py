"""One finding of the doctor."""

from dataclasses import dataclass

# Well; worth knowing; absent, and what needs it does not work; there and not working.
STATES = ("works", "note", "missing", "broken")


@dataclass(frozen=True)
class Check:
    """`name` of what was looked at, its `state`, what was `found`; where it is not well, the `cause` and the `cure`."""

    name: str
    state: str
    found: str
    cause: str | None = None
    cure: str | None = None


def works(name: str, found: object) -> Check:
    """Return a check that passed."""
    return Check(name, "works", str(found))


def note(name: str, found: str, cause: str, cure: str) -> Check:
    """Return a check that passed, with a note that numbers may suffer."""
    return Check(name, "note", found, cause, cure)


def missing(name: str, cause: str, cure: str) -> Check:
    """Return a check of something that is missing."""
    return Check(name, "missing", "not here", cause, cure)


def broken(name: str, found: str, cause: str, cure: str) -> Check:
    """Return a check of something that exists and does not work."""
    return Check(name, "broken", found, cause, cure)
