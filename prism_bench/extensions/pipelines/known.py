"""Every pipeline by name: those that are measured, and the short ones that test how families fit together."""

from collections.abc import Sequence

from prism_bench.errors import unknown
from prism_bench.extensions.pipelines.crossings import CROSSINGS
from prism_bench.extensions.pipelines.dendritic import DENDRITIC
from prism_bench.extensions.pipelines.image import IMAGE
from prism_bench.extensions.pipelines.lstm import LSTM, LSTM_SEQUENCE
from prism_bench.extensions.pipelines.pipeline import Pipeline, together
from prism_bench.extensions.pipelines.time_series import TIME_SERIES

ALL_THREE = together("together", "time series, image and dendrites side by side", (TIME_SERIES, IMAGE, DENDRITIC))
PHASES = (LSTM, LSTM_SEQUENCE)
MEASURED = (TIME_SERIES, IMAGE, DENDRITIC, ALL_THREE, *PHASES)
INTEGRATION = (TIME_SERIES, IMAGE, DENDRITIC, ALL_THREE, *CROSSINGS)
KNOWN = {pipeline.name: pipeline for pipeline in (*MEASURED, *CROSSINGS)}


def pipelines(names: Sequence[str] = ()) -> tuple[Pipeline, ...]:
    """Return the pipelines of the names, or without names those that are measured. UsageError for an unknown one."""
    for name in names:
        if name not in KNOWN:
            raise unknown("pipeline", name, KNOWN)
    return tuple(KNOWN[name] for name in names) or MEASURED
