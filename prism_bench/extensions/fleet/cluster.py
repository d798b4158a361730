"""Clusters of Dask: started on this host, by Slurm or over SSH, or existing, as `--fleet` names them."""

import asyncio
import logging
import re
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

from prism_bench.errors import BackendUnavailable, PrismBenchError, UsageError
from prism_bench.io.installation import extras_named
from prism_bench.monitor.nvml import devices, visible
from prism_bench.monitor.nvml import opened as nvml_opened

# The value of `--fleet`: the GPUs of this host, a scheduler's address, jobs of Slurm, or hosts reached by SSH

FORMS = "local, an address such as tcp://host:8786, slurm:JOBS, or ssh:host1,host2"
_ADDRESS = re.compile(r"(tcp|tls|ucx|ws|wss)://[^\s/]+:\d{1,5}")
FleetKind = Literal["local", "address", "slurm", "ssh"]


@dataclass(frozen=True)
class FleetSpec:
    """Fleet by its `kind`, with the scheduler's `address`, or the `hosts`, each of which starts a worker per mention.

    `workers` is the number of workers, for `slurm` of jobs; for `local` None means a worker for each GPU.
    """

    kind: FleetKind
    address: str = ""
    hosts: tuple[str, ...] = ()
    workers: int | None = None


def parse(text: str, workers: int | None = None) -> FleetSpec:
    """Return the fleet that the text names; raise a UsageError for another text, or for `workers` without meaning."""
    kind, _, rest = text.partition(":")
    if text == "local":
        return FleetSpec("local", workers=workers)
    if workers is not None:
        raise UsageError(f"--workers {workers}: only local starts so many; {text} names its workers itself")
    if _ADDRESS.fullmatch(text):
        return FleetSpec("address", address=text)
    if kind == "slurm" and re.fullmatch(r"[1-9]\d{0,3}", rest):
        return FleetSpec("slurm", workers=int(rest))
    hosts = tuple(rest.split(","))
    if kind == "ssh" and all(re.fullmatch(r"[\w.@-]+", host) for host in hosts):
        return FleetSpec("ssh", hosts=hosts)
    raise UsageError(f"--fleet {text}: it is {FORMS}")


# Clusters of Dask

_START_SECONDS, ANSWER_SECONDS = 60, 10  # for a scheduler that is started, and for an existing scheduler
_QUIET = {
    "distributed.scheduler.allowed-failures": 0,  # the dispatcher plans the jobs of a lost worker anew
    "distributed.admin.system-monitor.gil.enabled": False,
    "distributed.admin.system-monitor.interval": "10s",  # the worker runs next to timed processes
    "distributed.worker.profile.enabled": False,
}


@contextmanager
def connected(spec: FleetSpec, needs_gpu: bool) -> Generator[Any]:
    """Yield a client of the fleet's scheduler; a cluster that was started for it ends with the block.

    An ExtraMissing names a missing extra, a BackendUnavailable the address if no scheduler answers.
    """
    with extras_named():
        configuration, distributed = _library("dask.config"), _library("distributed")
        for name in ("distributed", "distributed.client", "tornado.application"):  # each has its own level
            logging.getLogger(name).setLevel(logging.CRITICAL)
        with configuration.set(_QUIET), _cluster(spec, needs_gpu) as target:
            try:
                client = distributed.Client(target, timeout=_patience(spec), set_as_default=False)
            except Exception as error:  # of the network, of Dask, or of a damaged message
                raise _no_scheduler(spec, described(error)) from error
            try:
                yield client
            finally:
                with suppress(Exception):  # a scheduler that is gone has nothing left to close
                    client.close(timeout=5)


def described(error: BaseException) -> str:
    """Return the error in one line, with its first cause: `Nanny failed to start.` has no reason."""
    cause: BaseException = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    texts = dict.fromkeys(" ".join(f"{type(link).__name__}: {link}".split())[:300] for link in (error, cause))
    return ", from ".join(texts)


def _no_scheduler(spec: FleetSpec, reason: str) -> BackendUnavailable:
    return BackendUnavailable(
        f"no scheduler answers at {spec.address or spec.kind} ({reason}); start one with 'dask scheduler' and its "
        "workers with 'dask worker', or use --fleet local"
    )


async def _kind_at(address: str) -> str:
    """Return the kind of Dask server that answers at the address: `Scheduler`, `Worker` or `Nanny`."""
    distributed = _library("distributed")
    security = distributed.Security().get_connection_args("client")
    async with distributed.rpc(address, timeout=_patience(FleetSpec("address")), connection_args=security) as server:
        return str((await server.identity())["type"])


def _require_scheduler(spec: FleetSpec) -> None:
    """Raise a BackendUnavailable if no scheduler answers in time: Dask's client waits for a silent port for ever."""
    try:
        kind = asyncio.run(asyncio.wait_for(_kind_at(spec.address), _patience(spec)))
    except TimeoutError as error:
        raise _no_scheduler(spec, f"it is silent for {_patience(spec)} s") from error
    except OSError as error:
        raise _no_scheduler(spec, described(error)) from error
    except Exception as error:  # foreign bytes, read as a message of Dask, may raise anything
        raise _no_scheduler(spec, f"what is there does not speak Dask's protocol: {described(error)}") from error
    if kind != "Scheduler":
        raise _no_scheduler(spec, f"a {kind} of Dask is there")


def _library(name: str) -> Any:
    """Return a module of an extra, untyped, since the types differ between releases."""
    return import_module(name)


def _patience(spec: FleetSpec) -> int:
    return ANSWER_SECONDS if spec.kind == "address" else _START_SECONDS


@contextmanager
def _cluster(spec: FleetSpec, needs_gpu: bool) -> Generator[Any]:
    """Yield the target of a client: an address or a cluster."""
    if spec.kind == "address":
        _require_scheduler(spec)
        yield spec.address
        return
    try:
        cluster = {"local": _local, "slurm": _slurm, "ssh": _ssh}[spec.kind](spec, needs_gpu)
    except (PrismBenchError, ImportError):  # the second is a missing extra
        raise
    except Exception as error:
        raise BackendUnavailable(
            f"the workers of --fleet {spec.kind} did not start ({described(error)}); "
            "'dask scheduler' and 'dask worker' on that host print more"
        ) from error
    try:
        yield cluster
    finally:
        with suppress(Exception):
            cluster.close(timeout=10)


def _local(spec: FleetSpec, needs_gpu: bool) -> Any:
    """Return a cluster of this host with `spec.workers` processes, by default a worker for each GPU."""
    count = spec.workers or (_gpus_here() if needs_gpu else 1)
    return _library("distributed").LocalCluster(
        n_workers=count,
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        dashboard_address=":0",
        memory_limit=0,
        silence_logs=logging.CRITICAL,
        resources={"GPU": 1},
        preload=["prism_bench.extensions.fleet.worker_setup"],
    )


def _gpus_here() -> int:
    """Return the number of GPUs of this host; raise BackendUnavailable without a GPU."""
    try:
        with nvml_opened() as nvml:
            count, reason = len(visible(devices(nvml))), "CUDA_VISIBLE_DEVICES hides all, or NVML lists none"
    except BackendUnavailable as error:
        count, reason = 0, str(error).partition(";")[0]
    if not count:
        raise BackendUnavailable(
            f"no GPU of this host for --fleet local: {reason}; --backend null, emulator or numpy_reference needs none"
        )
    return count


def _slurm(spec: FleetSpec, needs_gpu: bool) -> Any:
    """Return a cluster of `spec.workers` jobs of Slurm, once all of them run."""
    cluster = _library("dask_jobqueue").SLURMCluster(n_workers=spec.workers, **slurm_options(needs_gpu))
    try:
        cluster.wait_for_workers(spec.workers)
    except BaseException:  # Ctrl-C too: waiting jobs must not start later without a run
        cluster.close(timeout=10)
        raise
    return cluster


def slurm_options(needs_gpu: bool) -> dict[str, Any]:
    """Return the options of each job of Slurm: a worker with one thread, and a GPU if one is needed."""
    directives = ["--gres=gpu:1"] if needs_gpu else []
    return {
        "processes": 1,
        "worker_extra_args": ["--resources", "GPU=1", "--nthreads", "1"],
        "job_extra_directives": directives,
    }


def _ssh(spec: FleetSpec, needs_gpu: bool) -> Any:
    """Return a cluster with the scheduler here, and a worker for each mention of a host."""
    _library("asyncssh")
    options = {"nthreads": 1, "memory_limit": "0", "resources": '{"GPU": 1}'}
    return _library("distributed").SSHCluster(["localhost", *spec.hosts], worker_options=options)
