"""Contents of a history: each file is read as what its name promises."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from prism_bench.errors import PrismBenchError
from prism_bench.extensions.ci.alerts import ledger as alert_ledger
from prism_bench.extensions.ci.asv_runs import ledger as asv_ledger
from prism_bench.extensions.ci.keeping.names import ALERTS, ASV, LEDGERS, RECORDS, is_shard
from prism_bench.extensions.ci.keeping.targets import HistoryTarget, sound_contents
from prism_bench.io.documents import json_of
from prism_bench.record import store
from prism_bench.record.store.parquet import parts_of

_READERS = {
    RECORDS: store.read,
    LEDGERS: asv_ledger.read,
    ALERTS: alert_ledger.read,
    ASV: lambda path: json_of(path, "a result of asv"),
}


def content_problems(target: HistoryTarget, files: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Yield a sentence for each file that is missing, has another digest, or cannot be read as what it is."""
    with TemporaryDirectory() as folder:
        for (name, _), data in zip(files, sound_contents(target, files), strict=True):
            if isinstance(data, bytes):
                yield from _unreadable(Path(folder) / Path(name).name, name, data)
            else:
                yield str(data)


def _unreadable(path: Path, name: str, data: bytes) -> Iterator[str]:
    path.write_bytes(data)
    try:
        reader = parts_of if is_shard(name) else _READERS[name.partition("/")[0]]
        reader(path)
    except PrismBenchError as error:
        yield str(error).replace(str(path), name, 1)
    finally:
        path.unlink()
