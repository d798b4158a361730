"""One updated comment on the pull request or merge request of a job, on GitHub or GitLab."""

import os
import time
from collections.abc import Callable, Mapping

from prism_bench.errors import ForgeError
from prism_bench.extensions.ci.forges.github import GitHub
from prism_bench.extensions.ci.forges.gitlab import GitLab
from prism_bench.extensions.ci.forges.requests import Api

__all__ = ["posted"]


def posted(
    text: str, number: int | None = None, environment: Mapping[str, str] | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> str:  # fmt: skip
    """Write the comment whose first line is the mark of `text`, or update it; return its address.

    `number` is that of the pull request, by default the one of the job's event. A ForgeError with the cure where there
    is no token, no right, no pull request, or no answer.
    """
    known = os.environ if environment is None else environment
    if known.get("GITLAB_CI"):
        forge = GitLab(known, lambda url, headers: Api(url, headers, sleep))
    elif known.get("GITHUB_REPOSITORY"):
        forge = GitHub(known, lambda url, headers: Api(url, headers, sleep))
    else:
        raise ForgeError(
            "this is no job of GitHub or GitLab: run it there, or set GITHUB_REPOSITORY=owner/name and GITHUB_TOKEN "
            "and give --pull-request"
        )
    return forge.posted(text, number)
