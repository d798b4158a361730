"""Identity of what is launched: a hash of the kernel's source with its headers, and of what its launch depends on.

A choice that was made for one hash is stale for another. References, peers, edges, workloads, inputs, budgets,
tolerances, comments, docstrings and annotations are no part of it.
"""

import hashlib

from prism_bench.compilation.languages import source_hash
from prism_bench.io.files import family_folder, python_shared_with
from prism_bench.spec.kernel import KernelSpec
from prism_bench.spec.peer import as_call
from prism_bench.workflows.tuning.code_of import CodeWords

FIELDS = ("entry", "launch", "derived", "parameters", "options", "requires", "tune")


def launched(spec: KernelSpec) -> str:
    """Return the hash of the source, its own headers, the signature and the fields of the spec that launches use.

    What their functions use of the catalogue's Python is hashed with them, name by name.
    """
    source = spec.source_path
    assert source is not None, f"{spec.name} comes from no catalogue"
    digest = hashlib.sha256(source_hash(source).encode())
    words = CodeWords((family_folder(source).parent, *python_shared_with(source)))
    passed = [(type(one).__name__, one.name, getattr(one, "shape", None), one.dtype) for one in spec.arguments]
    parts: dict[str, object] = {"arguments": passed, **{field: getattr(spec, field) for field in FIELDS}}
    if spec.callable is not None:
        parts["callable"] = as_call(spec.callable).function
    for name, value in parts.items():
        digest.update(f"{name}=".encode())
        for word in words.of(value):
            digest.update(f"{word}\n".encode())
    return digest.hexdigest()[:16]
