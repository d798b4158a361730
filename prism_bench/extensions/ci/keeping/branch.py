"""History on a branch of the remote, separate from the sources, and the last common state of a checkout."""

import hashlib
import os
import re
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

from prism_bench.errors import HistoryMoved, ResultsError, UsageError
from prism_bench.extensions.ci.keeping.storage import BRANCH, Content, HistoryState, Keep, is_kept, is_merged
from prism_bench.io.documents import Schema
from prism_bench.io.files import write_atomically
from prism_bench.units import count_text

# Git never asks for a password and never hangs.

_SECONDS = 600
_ENVIRONMENT = {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
_FOLDER = "or keep the history in a folder: --to FOLDER"


@dataclass(frozen=True)
class GitDone:
    """Result of a git command: its exit code, output and errors."""

    code: int
    output: bytes
    errors: str

    @property
    def reason(self) -> str:
        """The line of the errors that names the cause."""
        lines = self.errors.strip().splitlines()
        telling = [line for line in lines if line.startswith(("fatal:", "error:", "remote:"))] or lines
        return telling[0].strip() if telling else "git gave no reason"

    @property
    def text(self) -> str:
        """The output without blanks around it."""
        return self.output.decode(errors="replace").strip()


@dataclass(frozen=True)
class Git:
    """Git in `folder`, with additions to the environment."""

    folder: Path
    extra: Mapping[str, str] = field(default_factory=dict)

    def run(self, *arguments: str, stdin: bytes = b"") -> GitDone:
        """Run a command and return any result; raise UsageError if git is missing or does not answer."""
        settings = {"GIT_SSH_COMMAND": "ssh -o BatchMode=yes", **os.environ, **_ENVIRONMENT, **self.extra}
        command = ["git", "-C", str(self.folder), *arguments]
        try:
            done = subprocess.run(command, input=stdin, capture_output=True, env=settings, timeout=_SECONDS)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise UsageError(f"git does not answer here ({error}): install git, {_FOLDER}") from None
        return GitDone(done.returncode, done.stdout, done.stderr.decode(errors="replace"))

    def __call__(self, *arguments: str, stdin: bytes = b"") -> GitDone:
        """Run a command that must succeed; raise UsageError with git's reason if it fails."""
        done = self.run(*arguments, stdin=stdin)
        if done.code:
            raise UsageError(f"git {arguments[0]} failed: {done.reason}")
        return done

    def require_repository(self) -> None:
        """Raise UsageError if the folder is in no repository."""
        if self.run("rev-parse", "--git-dir").code:
            raise UsageError(f"{self.folder} is in no git repository: run this in a clone, {_FOLDER}")

    def require_remote(self, remote: str) -> None:
        """Raise UsageError if the repository has no such remote."""
        if self.run("remote", "get-url", remote).code:
            raise UsageError(f"the repository has no remote {remote}: 'git remote add {remote} URL', {_FOLDER}")


# The branch: a commit for each keep. The checkout does not change.

_REMOTE, _PREFIX = "origin", "reports/"
_WHO = {
    f"GIT_{role}_{fact}": value
    for role in ("AUTHOR", "COMMITTER")
    for fact, value in {"NAME": "Prism Bench", "EMAIL": "prism-bench@localhost"}.items()
}
# Git's reports while another push is in progress and the branch has not moved yet.
_OTHER_PUSH = re.compile(r"cannot lock ref|failed to update ref|fetch first|non-fast-forward|incorrect old value")
_AGAIN = "fetch it again in a new clone"
_WRITE = "give the job a token that may write (on GitHub: 'permissions: contents: write')"


class Branch:
    """The branch `name` of the remote `origin` of the repository around `folder`."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self._git = name, Git(folder)
        self.address = f"{BRANCH}{name}"
        self._git.require_repository()
        if not name or self._git.run("check-ref-format", "--branch", name).code:
            raise UsageError(f"--to {self.address}: {name!r} is no name of a branch")
        self._git.require_remote(_REMOTE)

    @cached_property
    def _algorithm(self) -> str:
        return self._git("rev-parse", "--show-object-format").text

    @property
    def _ref(self) -> str:
        return f"refs/prism-bench/{self.name}"

    def digest(self, data: bytes) -> str:
        """Return the hash of git's blob."""
        return hashlib.new(self._algorithm, b"blob %d\0" % len(data) + data).hexdigest()

    def read(self) -> HistoryState:
        """Fetch the branch; raise UsageError if it holds other files, ResultsError if the remote does not answer."""
        if not self._tip():
            return HistoryState()
        done = self._git.run("fetch", "--quiet", "--no-tags", _REMOTE, f"+refs/heads/{self.name}:{self._ref}")
        if done.code:
            raise ResultsError(f"{_REMOTE} does not give the branch {self.name}: {done.reason}; try again")
        version = self._git("rev-parse", self._ref).text
        rows = self._git("ls-tree", "-r", "-z", "--full-tree", version).output.decode(errors="replace").split("\0")
        files = dict(self._file(row) for row in rows if row)
        return HistoryState(files, version)

    def _tip(self) -> str:
        """Return the commit that the remote's branch is at; empty if there is no such branch."""
        done = self._git.run("ls-remote", "--exit-code", _REMOTE, f"refs/heads/{self.name}")
        if done.code not in (0, 2):
            raise ResultsError(
                f"{_REMOTE} does not answer: {done.reason}; check the address, the network and the token"
            )
        return done.text.partition("\t")[0]

    def _file(self, row: str) -> tuple[str, tuple[str, ...]]:
        """Return name and digests of a row of `ls-tree`; raise UsageError for a file that no history holds."""
        facts, _, path = row.partition("\t")
        mode, _, digest = facts.split(" ")[:3]
        name = path.removeprefix(_PREFIX)
        if mode != "100644" or name == path or not is_kept(name):
            raise UsageError(
                f"the branch {self.name} is no history, it has {path!r}: name another one, --to branch:NAME"
            )
        return name, (digest,)

    def contents(self, files: Iterable[tuple[str, str]]) -> Iterator[bytes | ResultsError]:
        """Yield the contents of blobs, or errors."""
        wanted = list(files)
        done = self._git.run("cat-file", "--batch", stdin="".join(f"{digest}\n" for _, digest in wanted).encode())
        if done.code:  # git ends at a damaged blob
            for name, digest in wanted:
                done = self._git.run("cat-file", "blob", digest)
                yield ResultsError(f"{name}: {done.reason}; {_AGAIN}") if done.code else done.output
            return
        position = 0
        for name, digest in wanted:
            end = done.output.find(b"\n", position)
            header = done.output[position:end].split()
            position = end + 1
            if len(header) != 3:
                yield ResultsError(f"{name}: the clone lacks {digest} of the branch {self.name}; {_AGAIN}")
                continue
            yield done.output[position : position + int(header[2])]
            position += int(header[2]) + 1

    def write(self, state: HistoryState, changes: Mapping[str, Content]) -> str:
        """Push one commit with the changes; raise HistoryMoved if the branch moved since `state` was read."""
        commit = self._commit(state, changes)
        done = self._git.run("push", "--quiet", "--no-verify", _REMOTE, f"{commit}:refs/heads/{self.name}")
        if done.code:
            if self._tip() != state.version or _OTHER_PUSH.search(done.errors):
                raise HistoryMoved(f"the branch {self.name} changed again and again: keep once more")
            raise ResultsError(f"{_REMOTE} refused the branch {self.name}: {done.reason}; {_WRITE}")
        return commit

    def _commit(self, state: HistoryState, changes: Mapping[str, Content]) -> str:
        """Return a new commit after that of the state; the index of the checkout is not used."""
        handle, index = tempfile.mkstemp(prefix="prism-bench-index-")
        os.close(handle)
        os.unlink(index)  # git takes an empty file for a damaged index
        git = Git(self._git.folder, {**_WHO, "GIT_INDEX_FILE": index})
        try:
            if state.version:
                git("read-tree", state.version)
            rows: list[str] = []
            for name, content in changes.items():
                data = content if isinstance(content, bytes) else content.read_bytes()
                blob = self._git("hash-object", "-w", "--stdin", stdin=data).text
                rows.append(f"100644 {blob}\t{_PREFIX}{name}\0")
            git("update-index", "-z", "--index-info", stdin="".join(rows).encode())
            tree = git("write-tree").text
        finally:
            Path(index).unlink(missing_ok=True)
        parent = ("-p", state.version) if state.version else ()
        return git("commit-tree", tree, *parent, "-m", f"Keep {count_text(len(changes), 'file')} of nightly runs").text

    def keeps(self) -> list[Keep]:
        """Return the commits of the branch, the newest first."""
        state = self.read()
        if not state.version:
            return []
        form = "--format=%x00%H%x09%cI%x09%an"
        log = self._git("log", form, "--name-only", "--no-renames", "-m", "--first-parent", state.version).text
        keeps: list[Keep] = []
        for block in filter(None, map(str.strip, log.split("\0"))):
            header, *names = block.splitlines()
            commit, when, who = header.split("\t")
            keeps.append(Keep(commit, when, who, sum(bool(PurePosixPath(name).name) for name in names)))
        return keeps

    def problems(self) -> list[str]:
        """Return what git finds wrong with the objects of the branch."""
        state = self.read()
        done = self._git.run("rev-list", "--objects", "--quiet", state.version) if state.version else None
        return [f"the branch {self.name}: {done.reason}"] if done and done.code else []


# The last common state of a checkout and its history shows which side changed a file since.

_SCHEMA = Schema("what was common with a history", 1, "prism-bench store fetch")


class Base:
    """Last common state: digests by name and merged contents, in `.prism-bench/history/<address>` of the checkout."""

    def __init__(self, folder: Path, address: str) -> None:
        digest = hashlib.sha256(address.encode()).hexdigest()[:16]
        self._folder = own_folder(folder) / "history" / digest
        plain: Mapping[str, Any] = _SCHEMA.read(self._folder / "base.json") or {}
        self._digests = _SCHEMA.kind_of(plain.get("files", {}), dict[str, str], self._folder / "base.json")

    def digest(self, name: str) -> str:
        """Return the digest of the common content; empty if there was none."""
        return self._digests.get(name, "")

    def content(self, name: str) -> bytes | None:
        """Return the common content of a file that is merged; None if there was none."""
        path = self._folder / "files" / name
        return path.read_bytes() if is_kept(name) and path.is_file() else None

    def write(self, digests: Mapping[str, str], contents: Mapping[str, bytes]) -> None:
        """Write the common state; the digests come last, so that an interrupted write leaves the former state."""
        for name, data in contents.items():
            if is_merged(name):
                write_atomically(self._folder / "files" / name, data)
        self._digests = {**self._digests, **digests}
        _SCHEMA.write(self._folder / "base.json", {"files": dict(sorted(self._digests.items()))})


def own_folder(folder: Path) -> Path:
    """Return `.prism-bench` in the folder, created with a `.gitignore` that keeps all of it out of git."""
    hidden = folder / ".prism-bench"
    if not (hidden / ".gitignore").is_file():
        write_atomically(hidden / ".gitignore", b"*\n")
    return hidden
