"""asv's page without a network, held against the page of the asv that is installed."""

import json
import re
from importlib.resources import files

import asv
import pytest

from prism_bench.errors import ResultsError
from prism_bench.report.asv.libraries import PACKAGES, STAND_INS, inserted, localised, write_twins
from tests.report.asv.site import page


def test_nothing_is_left_to_load_from_elsewhere():
    tags = re.findall(r"<(?:script|link|img)\b[^>]*>", localised(page()))
    assert len(tags) > 15
    assert [] == [tag for tag in tags if "//" in tag or "integrity" in tag or "crossorigin" in tag]


def test_every_stand_in_is_used_and_some_package_has_it():
    made = localised(page())
    assert set(STAND_INS.values()) == {name for package in PACKAGES for name in package.files}
    assert all(f'"vendor/{name}"' in made for name in STAND_INS.values())


def test_the_shim_stands_after_jquery_and_before_asv():
    made = localised(page())
    assert made.index("vendor/jquery.min.js") < made.index("offline.js") < made.index('"asv.js"')


def test_asv_still_registers_pages_and_asks_for_its_data_as_the_shim_expects():
    script = (files(asv) / "www" / "asv.js").read_text("utf-8")
    assert "this.register_page = function(name, show_function)" in script
    assert {"url + ", '"index.json" + ', '"info.json",'} == set(
        re.findall(r"""url: (url \+ |"[\w.]+"(?: \+ |,))""", script)
    )
    assert script.count("$.ajax({") == script.count('dataType: "json"') == 3


def test_a_library_that_we_do_not_carry_is_named():
    with pytest.raises(ResultsError, match=r"loads https://cdn.example.org/vue.js, which this version"):
        localised(page().replace("</head>", '<script src="https://cdn.example.org/vue.js"></script></head>'))


def test_a_newer_library_is_not_taken_for_ours():
    with pytest.raises(ResultsError, match="jquery-4.0.0.min.js"):
        localised(page().replace("jquery-3.3.1.min.js", "jquery-4.0.0.min.js"))


@pytest.mark.parametrize("text", ["", "here and here"])
def test_a_page_without_one_place_is_refused(text):
    with pytest.raises(ResultsError, match="no one place for our additions"):
        inserted(text, "here", "x")


def test_every_data_file_gets_a_twin(tmp_path):
    (tmp_path / "graphs" / "a b").mkdir(parents=True)
    for name in ("index.json", "graphs/a b/times.json"):
        (tmp_path / name).write_text(json.dumps([1, float("nan")]))
    (tmp_path / "asv.js").write_text("")
    write_twins(tmp_path)
    assert {"index.json.js", "times.json.js"} == {path.name for path in tmp_path.rglob("*.json.js")}
    assert "prism_bench_file([1, NaN]);\n" == (tmp_path / "index.json.js").read_text()
