"""One shard: points of some records as a Parquet file, the rows of each record together, the oldest record first.

What the records are is in the footer, under HEADER: their facts, how many rows each has, and the seal of the file that
they were read from. So a reader knows a shard by its footer, and reads the points of those records that it needs.
"""

import io
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy
import orjson

from prism_bench.errors import ResultsError
from prism_bench.io.files import write_atomically
from prism_bench.io.installation import extras_named
from prism_bench.record.store.points import (
    DISTURBED,
    NUMBERS,
    PROCESSES,
    QUARTILES,
    READ,
    WORDS,
    Column,
    Facts,
    PointBlock,
    counted,
    seconds,
    smallest_kind,
    units_of,
)

_SCHEMA = 1
_HEADER = b"prism_bench"
GROUP = 1 << 16  # rows; a group of rows, which is read as a whole, ends with the record that fills it
BOARD = "board"  # the column that the first shards lack
_UNIT = "unit"  # the exponent of ten of a point's unit of time: see `decimals`
_REPEATED = (*WORDS, "samples", "throttled", DISTURBED, _UNIT)
_SHARED = ("software", "protocol", "boards")
_SPLIT = ("clock", *READ)


@dataclass(frozen=True)
class ShardRecord:
    """One record of a shard: its facts, the seal of its file, and how many rows it has."""

    facts: Facts
    seal: str
    rows: int


@dataclass(frozen=True)
class ShardHeader:
    """What a shard holds: its records, the names of their cases and metrics; `maker` is of the code that made it."""

    records: tuple[ShardRecord, ...]
    names: Mapping[str, list[str]]
    maker: str


@dataclass(frozen=True, eq=False)
class ShardPart:
    """A record on its way into a shard, with its rows as an Arrow table."""

    record: ShardRecord
    rows: Any


def header_of(path: Path) -> ShardHeader:
    """Return the header of the shard at `path`; raise FileNotFoundError, or a ResultsError where it is damaged."""
    return _header(_opened(path), path)


def points_of(
    path: Path, wanted: Mapping[str, str], numbers: Collection[str] = tuple(NUMBERS)
) -> dict[str, PointBlock]:
    """Return the points of the wanted records, files by their seals, by file: those of them that the shard has.

    Raise FileNotFoundError, or a ResultsError that names the shard where it is damaged.
    """
    parquet = _opened(path)
    header = _header(parquet, path)
    chosen = [record.seal == wanted.get(record.facts.file) for record in header.records]
    if not any(chosen):
        return {}
    ends = numpy.cumsum([record.rows for record in header.records])
    groups, first = _groups(parquet, ends - [record.rows for record in header.records], ends, chosen)
    kept = [name for name in (*WORDS, *numbers, _UNIT) if name in parquet.schema_arrow.names or name != BOARD]
    columns, vocabulary = _columns(_table(parquet, path, groups, kept))
    if BOARD not in vocabulary:
        vocabulary[BOARD] = sorted({_only_board(record.facts) for record in header.records})
    blocks: dict[str, PointBlock] = {}
    for record, end, is_wanted in zip(header.records, (ends - first).tolist(), chosen, strict=True):
        if is_wanted:
            columns_of_record = {name: column[end - record.rows : end] for name, column in columns.items()}
            if BOARD not in columns_of_record:
                columns_of_record[BOARD] = numpy.full(
                    record.rows, vocabulary[BOARD].index(_only_board(record.facts)), "i4"
                )
            blocks[record.facts.file] = PointBlock(
                record.facts.file, record.seal, record.facts, None, columns_of_record, vocabulary
            )
    return blocks


def parts_of(path: Path) -> list[ShardPart]:
    """Return all records of the shard with all columns; raise what `header_of` raises."""
    parquet = _opened(path)
    header = _header(parquet, path)
    table = _table(parquet, path, range(parquet.metadata.num_row_groups), None)
    ends = numpy.cumsum([record.rows for record in header.records]).tolist()
    parts = [
        ShardPart(record, table.slice(end - record.rows, record.rows))
        for record, end in zip(header.records, ends, strict=True)
    ]
    return parts if BOARD in table.column_names else [_with_board(part) for part in parts]


def _with_board(part: ShardPart) -> ShardPart:
    """Return a part of a shard that is older than the column of boards, with that column."""
    arrow = _library("pyarrow")
    boards = arrow.array([_only_board(part.record.facts)] * part.record.rows, arrow.string()).dictionary_encode()
    return ShardPart(part.record, part.rows.append_column(BOARD, boards))


def _only_board(facts: Facts) -> str:
    """Return the board that measured a whole record; empty where it is unknown, or where there are several."""
    return "" if "+" in facts.device or " " in facts.device else facts.device


def part_of(block: PointBlock) -> ShardPart:
    """Return a record's points, and its details where it has them, as a part of a shard."""
    arrow = _library("pyarrow")
    if block.facts is None:
        raise ValueError(f"{block.file} has no facts: {block.problem}")
    texts = {
        word: arrow.DictionaryArray.from_arrays(
            arrow.array(block.columns[word], arrow.int32()), arrow.array(block.vocabulary[word], arrow.string())
        )
        for word in WORDS
    }
    columns = texts | {name: arrow.array(block.columns[name]) for name in NUMBERS}
    units, values = units_of(block.columns["value"]), block.columns["value"]
    columns |= {_UNIT: arrow.array(units), "value": arrow.array(counted(values, units))}
    if block.details:
        columns |= {name: arrow.array(block.details[name]) for name in (*READ, DISTURBED)}
        columns |= {name: arrow.array(counted(block.details[name] - values, units)) for name in QUARTILES}
        columns[PROCESSES] = _lists(block.details[PROCESSES], values, units)
    return ShardPart(ShardRecord(block.facts, block.seal, block.rows), arrow.table(columns))


def _lists(medians: Sequence[Column], values: Column, units: Column) -> Any:
    """Return the medians of each point's processes, as differences from its value."""
    arrow, lengths = _library("pyarrow"), [len(values_of_point) for values_of_point in medians]
    flat = numpy.concatenate([numpy.empty(0), *medians]) - numpy.repeat(values, lengths)
    ends = numpy.cumsum([0, *lengths]).astype("i4")
    return arrow.ListArray.from_arrays(arrow.array(ends), arrow.array(counted(flat, numpy.repeat(units, lengths))))


def write_shard(path: Path, parts: Sequence[ShardPart], maker: str = "") -> None:
    """Write the parts, oldest first, as the shard at `path`, whole or not at all; an OSError where that cannot be."""
    data = io.BytesIO()
    table = _library("pyarrow").concat_tables([part.rows for part in parts], promote_options="default")
    table = table.unify_dictionaries()
    split = {name: "BYTE_STREAM_SPLIT" for name in table.column_names if name in _SPLIT}
    writer = _library("pyarrow.parquet").ParquetWriter(
        data,
        table.schema,
        compression="zstd",
        compression_level=9,
        store_schema=False,
        write_page_checksum=True,
        use_dictionary=list(_REPEATED),
        column_encoding=split,
        write_statistics=False,
    )
    with writer:
        for first, end in _cut(part.record.rows for part in parts):
            writer.write_table(table.slice(first, end - first), row_group_size=max(1, end - first))
        writer.add_key_value_metadata({_HEADER: _encoded([part.record for part in parts], table, maker)})
    write_atomically(path, data.getvalue())


def _cut(lengths: Iterable[int]) -> list[tuple[int, int]]:
    """Return first and last row of each group: whole records, GROUP rows or somewhat more."""
    first, end, groups = 0, 0, list[tuple[int, int]]()
    for length in lengths:
        end += length
        if end - first >= GROUP:
            groups.append((first, end))
            first = end
    return [*groups, (first, end)] if end > first or not groups else groups


def _encoded(records: Sequence[ShardRecord], table: Any, maker: str) -> bytes:
    """Return the header as JSON; software, protocols and boards, which repeat, are numbered."""
    tables: dict[str, list[Any]] = {name: [] for name in _SHARED}
    plain: list[dict[str, Any]] = []
    for record in records:
        facts = dict(vars(record.facts))
        for name, known in tables.items():
            if facts[name] not in known:
                known.append(facts[name])
            facts[name] = known.index(facts[name])
        plain.append({"facts": facts, "seal": record.seal, "rows": record.rows})
    names = {word: sorted(table[word].unique().to_pylist()) for word in ("case", "metric")}
    return orjson.dumps({"schema": _SCHEMA, "maker": maker, "words": names, **tables, "records": plain})


def _opened(path: Path) -> Any:
    parquet = _library("pyarrow.parquet")
    checked = {"page_checksum_verification": True, "memory_map": False}
    try:
        try:
            return parquet.ParquetFile(path, read_dictionary=list(WORDS), **checked)
        except KeyError:
            return parquet.ParquetFile(path, read_dictionary=[word for word in WORDS if word != BOARD], **checked)
    except FileNotFoundError:
        raise
    except (OSError, _library("pyarrow").ArrowException) as error:
        raise _damaged(path, error) from error


def _header(parquet: Any, path: Path) -> ShardHeader:
    try:
        plain = orjson.loads(parquet.metadata.metadata[_HEADER])
        if plain["schema"] != _SCHEMA:
            raise ResultsError(f"{path}: schema {plain['schema']!r} of shards is not {_SCHEMA}; upgrade prism-bench")
        shared = {name: plain[name] for name in _SHARED if name in plain}
        records = tuple(
            ShardRecord(
                Facts(**record["facts"] | {name: known[record["facts"][name]] for name, known in shared.items()}),
                record["seal"],
                record["rows"],
            )
            for record in plain["records"]
        )
        header = ShardHeader(records, plain["words"], plain["maker"])
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise _damaged(path, error) from error
    if sum(record.rows for record in records) != parquet.metadata.num_rows:
        raise _damaged(path, "its records have another number of rows")
    return header


def _groups(parquet: Any, begins: Column, ends: Column, chosen: Sequence[bool]) -> tuple[list[int], int]:
    """Return the row groups, in a row, that hold the chosen records, and the first row of the first of them."""
    lengths: list[int] = [
        parquet.metadata.row_group(place).num_rows for place in range(parquet.metadata.num_row_groups)
    ]
    bounds = list(accumulate(lengths, initial=0))
    wanted = numpy.array(chosen)
    first = max(0, bisect_right(bounds, int(begins[wanted].min())) - 1)
    last = bisect_left(bounds, int(ends[wanted].max()))
    return list(range(first, max(last, first))), bounds[first]


def _table(parquet: Any, path: Path, groups: Iterable[int], columns: Sequence[str] | None) -> Any:
    try:
        rows = parquet.read_row_groups(list(groups), columns=columns, use_threads=False)
        return rows.unify_dictionaries().combine_chunks()
    except (OSError, _library("pyarrow").ArrowException) as error:
        raise _damaged(path, error) from error


def _columns(table: Any) -> tuple[dict[str, Column], dict[str, list[str]]]:
    columns = {name: _numbers(table[name].chunks) for name in NUMBERS if name in table.column_names}
    columns["value"] = seconds(columns["value"], _numbers(table[_UNIT].chunks))
    vocabulary: dict[str, list[str]] = {}
    for word in [name for name in table.column_names if name in WORDS]:
        chunks = table[word].chunks
        vocabulary[word] = chunks[0].dictionary.to_pylist() if chunks else []
        kind = smallest_kind(len(vocabulary[word]))
        columns[word] = _numbers([chunk.indices for chunk in chunks]).astype(kind)
    return columns, vocabulary


def _numbers(chunks: Sequence[Any]) -> Column:
    """Return the numbers of a column of one chunk or none: Arrow's own `to_numpy` imports pandas, for half a second."""
    if not chunks:
        return numpy.empty(0, "i4")
    (only,) = chunks
    if only.null_count:
        return only.to_numpy(zero_copy_only=False)
    kind = numpy.dtype(only.type.to_pandas_dtype())
    return numpy.frombuffer(only.buffers()[1], kind, len(only), only.offset * kind.itemsize)


def _damaged(path: Path, reason: object) -> ResultsError:
    return ResultsError(f"{path}: not a readable shard ({reason}); restore it, or remove it where its records are kept")


def _library(name: str) -> Any:
    with extras_named():
        return import_module(name)
