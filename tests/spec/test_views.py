"""Cases, specs and catalogues at a prompt and in a notebook: one line whatever they hold, a small view of a case."""

import re

import numpy as np
import pytest

from prism_bench.backends.null import NullBackend
from prism_bench.catalogue.catalogue import Catalogue
from prism_bench.spec.case import Case
from prism_bench.spec.kernel import Golden, In, KernelSpec, Launch, Out, Size, Tune, Variant
from prism_bench.spec.tolerance import exact
from prism_bench.spec.workload import Workload


def spec(**more):
    fields = {
        "entry": "twice", "arguments": (In("x", "rows cols"), Out("y", "rows"), Size("rows"), Size("cols")),
        "launch": lambda rows, block: Launch(grid=rows, block=block), "reference": lambda x: x.sum(1),
        "tolerance": exact(), "workloads": {"S0": Workload(rows=4, cols=256)}, "tune": Tune(block=(32, 64)),
        "name": "twice", "family": "basic", "flops": lambda rows, cols: rows * cols,
    }  # fmt: skip
    return KernelSpec(**{**fields, **more})


def case(**more):
    return Case(spec(**more), Workload(rows=4, cols=256), "S0")


def golden():
    """Data that would fill a screen."""
    return Golden(Workload(rows=4, cols=256), {"x": np.zeros((4, 256)).tolist()}, {"y": [0.0] * 4}, "a test")


def test_a_case_is_one_line_with_what_was_chosen():
    assert "<Case twice[rows=4,cols=256] S0>" == repr(case())
    assert "<Case twice[rows=4,cols=256]@block=64 S0>" == repr(case().configured({"block": 64}))


def test_a_spec_is_one_line():
    found = spec(variants={"slow": Variant("slower"), "slowest": Variant("slower still")})
    assert "<KernelSpec twice (basic), 1 workload, variants slow, slowest>" == repr(found)


def test_a_catalogue_is_one_line(tmp_path):
    assert f"<Catalogue 1 kernel, {tmp_path}>" == repr(Catalogue(tmp_path, {"twice": spec()}))


def test_a_runnable_names_its_case():
    with NullBackend().prepare(case(), case().inputs()) as runnable:
        assert "<NullRunnable twice[rows=4,cols=256] S0>" == repr(runnable)


@pytest.mark.parametrize("make", [spec, case])
def test_data_of_a_spec_do_not_fill_the_screen(make):
    assert len(repr(make(golden=(golden(),)))) < 100


def test_the_view_of_a_case_shows_its_buffers_and_its_work():
    html = case()._repr_html_()
    widths = [float(width) for width in re.findall(r'<rect [^>]*width="([0-9.]+)"', html)]
    assert (140.0, 1.0) == tuple(widths)  # 4 kB next to 16 bytes, which still have a mark
    assert "x float32 [4, 256]" in html and "4.10 kB" in html
    assert "<td>moves at least</td><td>4.11 kB</td>" in html and "<td>1.02 kFLOP</td>" in html
    assert "<td>tunable</td><td>block</td>" in html
    assert len(html) < 4000


def test_a_case_that_moves_nothing_has_a_view():
    html = case(arguments=(Size("rows"), Size("cols")), bytes_moved=lambda: 0)._repr_html_()
    assert "<td>0 B</td>" in html and "<svg" not in html
