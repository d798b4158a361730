"""Pipelines in the terminal and as JSON."""

import io
import json

from rich.console import Console

from prism_bench.extensions.pipelines.results import phases, pipelines_json, pipelines_view, rows
from tests.extensions.planted_programs import program, record


def shown(view):
    console = Console(file=io.StringIO(), width=220, no_color=True)
    console.print(view)
    return console.file.getvalue()


def test_view_compares_pipelines_with_the_goals():
    forms = rows(
        record(
            program("together", "graph", steady=1e-4, overlap=0.5),
            program("lstm", "one_stream", cpu=4e-2),
            program("image", "graph", status="wrong"),
        )
    )
    text = shown(pipelines_view(forms, phases(forms, 16)))
    assert "(asked 2,000)" in text and "50 %" in text
    assert "image:graph: scripted" in text
    assert "200x (asked 50.0x)" in text
    assert "ask for 50 operations a second and report 191 frames" in text


def test_pipelines_as_json():
    forms = rows(record(program("lstm", "one_stream", cpu=4e-2)))
    plain = json.loads(json.dumps(pipelines_json(forms, phases(forms, 16)), allow_nan=False))
    assert ("lstm", 50, 191) == (
        plain["pipelines"][0]["pipeline"],
        plain["asked_per_second"],
        plain["published_frames_per_second"],
    )
    assert "lstm:one_stream" == plain["lstm_phases"][0]["form"]
