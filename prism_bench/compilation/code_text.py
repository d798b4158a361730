"""CUDA C++ without what does not change its meaning to the compiler: comments, blank lines, space at line ends."""

import re
from functools import lru_cache

# A string or character comes first, so that `//` in it begins no comment.
_TOKEN = re.compile(r"""("(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])')|//[^\n]*|/\*.*?\*/""", re.DOTALL)


@lru_cache(maxsize=1024)  # headers, which most kernels share, in every case of a run
def without_comments(code: str) -> str:
    """Return the code with a blank for each comment, and without empty lines."""
    lines = _TOKEN.sub(lambda found: found[1] or " ", code).splitlines()
    return "\n".join(line.rstrip() for line in lines if line.strip())
