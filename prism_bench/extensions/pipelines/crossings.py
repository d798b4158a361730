"""Short pipelines across families: what one family writes another reads. They test that kernels fit together."""

from prism_bench.extensions.pipelines.pipeline import Pipeline, Stage
from prism_bench.spec.workload import Workload

forecast_to_softmax = Pipeline(
    "forecast_to_softmax", "time series, neuromorphic, tensor, basic: a reservoir reads a forecast",
    stages=(
        Stage("forecast", "ar_forecast", lambda inputs: Workload(series=1, length=32, lags=4, horizon=inputs)),
        Stage("reservoir", "reservoir_update", lambda neurons, inputs: Workload(neurons=neurons, inputs=inputs),
              feeds={"u": "forecast.forecast"}),
        Stage("readout", "gemv", lambda neurons, classes: Workload(rows=classes, cols=neurons),
              feeds={"x": "reservoir.x_next"}),
        Stage("choice", "softmax", lambda classes: Workload(rows=1, cols=classes), feeds={"x": "readout.y"}),
    ),
    frame=("forecast.history",), results=("choice.y",), carries={"reservoir.x": "reservoir.x_next"},
    workloads={"small": Workload(neurons=20, inputs=3, classes=5),
               "S0": Workload(neurons=1000, inputs=10, classes=100)},
)  # fmt: skip

image_to_information = Pipeline(
    "image_to_information", "pixel, transfer entropy, information theory: how informative the edges of an image are",
    stages=(
        Stage("edges", "conv2d", lambda rows, cols: Workload(rows=rows, cols=cols, k=3)),
        Stage("joint", "histogram_2d",
              lambda rows, cols, bins: Workload(n=rows * cols, rows=bins, columns=bins, y_lo=-12.0, y_hi=12.0),
              feeds={"x": "edges.x", "y": "edges.y"}),
        Stage("entropy", "shannon_entropy_corrected", lambda bins: Workload(rows=bins, cols=bins),
              feeds={"counts": "joint.histogram"}),
    ),
    frame=("edges.x",), results=("joint.histogram", "entropy.entropy"),
    workloads={"small": Workload(rows=12, cols=20, bins=8), "S0": Workload(rows=256, cols=256, bins=64)},
)  # fmt: skip

dendrites_to_oscillators = Pipeline(
    "dendrites_to_oscillators", "dendritic, statistical mechanics: branches set the frequencies of oscillators",
    stages=(
        Stage("dendrites", "dendritic_integration", lambda n: Workload(neurons=n, dendrites=4, inputs=12)),
        Stage("oscillators", "kuramoto_evolution", lambda n: Workload(n=n), feeds={"omega": "dendrites.y"}),
        Stage("order", "order_parameter", lambda n: Workload(n=n), feeds={"theta": "oscillators.theta_next"}),
    ),
    frame=("dendrites.x",), results=("order.r", "order.psi"), carries={"oscillators.theta": "oscillators.theta_next"},
    workloads={"small": Workload(n=17), "S0": Workload(n=256)},
)  # fmt: skip

lstm_to_tensor_cores = Pipeline(
    "lstm_to_tensor_cores", "time series, tensor core, basic: a recurrent state through tensor cores to a choice",
    stages=(
        Stage("lstm", "lstm_cell", lambda batch, hidden: Workload(batch=batch, inputs=hidden, hidden=hidden)),
        Stage("half", "fp32_to_fp16", lambda batch, hidden: Workload(n=batch * hidden), feeds={"x": "lstm.h_next"}),
        Stage("head", "tensor_core_matmul", lambda batch, hidden, classes: Workload(m=batch, n=classes, k=hidden),
              feeds={"a": "half.y"}),
        Stage("choice", "softmax", lambda batch, classes: Workload(rows=batch, cols=classes), feeds={"x": "head.c"}),
    ),
    frame=("lstm.x",), results=("choice.y",), carries={"lstm.h": "lstm.h_next", "lstm.c": "lstm.c_next"},
    workloads={"small": Workload(batch=3, hidden=16, classes=8), "S0": Workload(batch=32, hidden=128, classes=256)},
)  # fmt: skip

quantum_to_divergence = Pipeline(
    "quantum_to_divergence", "quantum, active inference: how far a measurement is from what was believed",
    stages=(
        Stage("gate", "hadamard_gate", lambda qubits: Workload(qubits=qubits, qubit=qubits // 3)),
        Stage("measured", "quantum_measurement", lambda qubits: Workload(qubits=qubits), feeds={"psi": "gate.psi"}),
        Stage("surprise", "kl_divergence", lambda qubits: Workload(rows=1, cols=1 << qubits),
              feeds={"q": "measured.p"}),
    ),
    frame=("gate.psi",), results=("measured.p", "surprise.divergence"),
    workloads={"small": Workload(qubits=5), "S0": Workload(qubits=10)},
)  # fmt: skip

tokens_to_sampling = Pipeline(
    "tokens_to_sampling", "transformer, fused, transformer: the next token of a batch of tokens",
    stages=(
        Stage("embedding", "embedding_lookup",
              lambda tokens, vocabulary, cols: Workload(tokens=tokens, vocabulary=vocabulary, cols=cols)),
        Stage("norm", "layer_norm", lambda tokens, cols: Workload(length=tokens, cols=cols),
              feeds={"x": "embedding.out"}),
        Stage("logits", "fused_linear_gelu",
              lambda tokens, vocabulary, cols: Workload(batch=tokens, inputs=cols, outputs=vocabulary),
              feeds={"x": "norm.y"}),
        Stage("token", "top_k_sampling",
              lambda tokens, vocabulary, k: Workload(rows=tokens, vocabulary=vocabulary, k=k),
              feeds={"logits": "logits.y"}),
    ),
    frame=("embedding.id",), results=("token.token",),
    workloads={"small": Workload(tokens=3, vocabulary=40, cols=16, k=4),
               "S0": Workload(tokens=32, vocabulary=1024, cols=128, k=50)},
)  # fmt: skip

gru_to_free_energy = Pipeline(
    "gru_to_free_energy", "time series, basic, active inference: the free energy of a recurrent belief",
    stages=(
        Stage("gru", "gru_cell", lambda batch, hidden: Workload(batch=batch, inputs=hidden, hidden=hidden)),
        Stage("belief", "softmax", lambda batch, hidden: Workload(rows=batch, cols=hidden), feeds={"x": "gru.h_next"}),
        Stage("energy", "free_energy", lambda batch, hidden: Workload(rows=batch, cols=hidden),
              feeds={"q": "belief.y"}),
    ),
    frame=("gru.x",), results=("energy.free_energy",), carries={"gru.h": "gru.h_next"},
    workloads={"small": Workload(batch=3, hidden=9), "S0": Workload(batch=32, hidden=128)},
)  # fmt: skip

series_to_neighbours = Pipeline(
    "series_to_neighbours", "transfer entropy, information theory, tensor: how densely an embedded series fills space",
    stages=(
        Stage("embedding", "time_delayed_embedding", lambda n, m: Workload(n=n, m=m)),
        Stage("distance", "knn_distances_chebyshev", lambda n, m: Workload(n=n - m + 1, d=m, k=4),
              feeds={"x": "embedding.embedded"}),
        Stage("density", "digamma", lambda n, m: Workload(n=n - m + 1), feeds={"x": "distance.eps"}),
        Stage("total", "reduce_sum", lambda n, m: Workload(n=n - m + 1), feeds={"x": "density.y"}),
    ),
    frame=("embedding.x",), results=("total.result",),
    workloads={"small": Workload(n=40, m=2), "S0": Workload(n=500, m=3)},
)  # fmt: skip

sensors_to_kalman = Pipeline(
    "sensors_to_kalman", "tensor, time series: measurements with their offsets taken off, filtered, with a band",
    stages=(
        Stage("offset", "broadcast_add", lambda filters, m: Workload(rows=filters, cols=m)),
        Stage("filter", "kalman_filter_step", lambda filters, n, m: Workload(filters=filters, n=n, m=m),
              feeds={"z": "offset.y"}),
        Stage("band", "uncertainty_propagation:bands", lambda filters, n: Workload(rows=filters, cols=n),
              feeds={"mean": "filter.x_next"}),
    ),
    frame=("offset.x",), results=("band.lower", "band.upper"),
    carries={"filter.x": "filter.x_next", "filter.p": "filter.p_next"},
    workloads={"small": Workload(filters=3, n=4, m=2), "S0": Workload(filters=64, n=16, m=8)},
)  # fmt: skip

CROSSINGS = (
    forecast_to_softmax, image_to_information, dendrites_to_oscillators, lstm_to_tensor_cores, quantum_to_divergence,
    tokens_to_sampling, gru_to_free_energy, series_to_neighbours, sensors_to_kalman,
)  # fmt: skip
