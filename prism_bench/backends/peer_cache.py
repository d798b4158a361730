"""Cache on disk of what peers make before they can be called: code that was built, and choices that were timed.

Code depends on its key alone, so that any process may build it, also next to others. A choice depends on the times that
were measured for it: it is handed from the process that made it alone on the device to the later processes of a run.
"""

import hashlib
from collections.abc import Callable, Iterable

from prism_bench.io.files import cache_folder, writable_cache, write_atomically
from prism_bench.monitor.visible_gpu import cache_of_gpu

BUILDS, CHOICES = "peer_builds", "peer_choices"


def kept_build(key: Iterable[object], build: Callable[[], bytes]) -> bytes:
    """Return the code kept under the key, which names all that decides about it; else build and keep it."""
    return _kept(BUILDS, key, build)


def kept_choice(key: Iterable[object], choose: Callable[[], bytes]) -> bytes:
    """Return the choice that an earlier process of the run kept under the key on this GPU; else choose and keep it."""
    return _kept(cache_of_gpu(CHOICES), key, choose)


def forget_kept_choices() -> int:
    """Remove the choices that were made on this GPU so far, and return how many: later processes choose anew."""
    found = [file for file in cache_folder(cache_of_gpu(CHOICES)).glob("*") if file.is_file()]
    for file in found:
        file.unlink(missing_ok=True)
    return len(found)


def _kept(cache: str, key: Iterable[object], make: Callable[[], bytes]) -> bytes:
    name = hashlib.sha256("\n".join(map(str, key)).encode()).hexdigest()[:32]
    file = cache_folder(cache) / name
    try:
        return file.read_bytes()
    except OSError:
        made = make()
    write_atomically(writable_cache(cache) / name, made)
    return made
