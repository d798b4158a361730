"""Details of a record's points: what verdicts and evidence need of the samples, without the samples.

They are kept in shards next to the points, row by row, and no trend reads them.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy

from prism_bench.record.schema import MeasurementFile, RecordFile
from prism_bench.record.store.columns import Column

QUARTILES = ("lower_quartile", "upper_quartile")  # of all samples, in seconds
# The highest power in watts and temperature in degrees Celsius while they were taken; energy of one launch in joules.
# NaN where nothing was read.
READ = ("power", "temperature", "energy")
# Whether another process was busy on the device.
DISTURBED = "disturbed"
# Medians of the processes in seconds, a list for each point: what `compare` judges.
PROCESSES = "processes"
DETAILS = (*QUARTILES, *READ, DISTURBED, PROCESSES)


def details_in(record: RecordFile) -> dict[str, Any]:
    """Return the columns of DETAILS for the points of a checked record, in the order of `points_in`.

    PROCESSES is a list of arrays; the others are arrays. Times are float64, what was read is float32.
    """
    measured = [one for case in record.cases for one in case.measurements if any(g.counts for g in one.processes)]
    found: dict[str, Any] = {}
    quartiles = numpy.array([_quartiles(one) for one in measured], "f8").reshape(-1, len(QUARTILES))
    found |= dict(zip(QUARTILES, numpy.ascontiguousarray(quartiles.T), strict=True))
    read = numpy.array([_read(one) for one in measured], "f4").reshape(-1, len(READ))
    found |= dict(zip(READ, numpy.ascontiguousarray(read.T), strict=True))
    found[DISTURBED] = numpy.array([any(part.busy_neighbours for part in one.evidence) for one in measured], bool)
    found[PROCESSES] = [numpy.array(list(_medians(one)), "f8") for one in measured]
    return found


def _quartiles(one: MeasurementFile) -> tuple[float, float]:
    samples = numpy.concatenate([_seconds(group.counts, group.unit) for group in one.processes])
    lower, upper = numpy.quantile(samples, (0.25, 0.75)).tolist()
    return lower, upper


def _read(one: MeasurementFile) -> tuple[float, ...]:
    joules = one.energy.joules if one.energy and one.energy.joules is not None else float("nan")
    return _highest(one, "power"), _highest(one, "temperature"), joules


def _seconds(counts: Sequence[int], unit: float) -> Column:
    return numpy.array(counts, "f8") * unit


def _highest(one: MeasurementFile, quantity: str) -> float:
    found = [part.spans[quantity][2] for part in one.evidence if quantity in part.spans]
    return max(found, default=float("nan"))


def _medians(one: MeasurementFile) -> Iterator[float]:
    for group in one.processes:
        if group.counts:
            yield float(numpy.median(_seconds(group.counts, group.unit)))
