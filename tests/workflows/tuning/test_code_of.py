"""Code as words: modules that are built into the interpreter have no file, and are known by their names."""

from importlib.util import module_from_spec, spec_from_file_location

from prism_bench.workflows.tuning.code_of import CodeWords


def test_a_module_without_a_file_is_known_by_its_name(tmp_path):
    path = tmp_path / "shared.py"
    path.write_text("import sys\nimport time as clock\n\n\ndef most(n):\n    return sys.maxsize // n + clock.altzone\n")
    spec = spec_from_file_location("shared", path)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    assert [] == [name for name in ("sys", "time") if hasattr(getattr(module, name, None), "__file__")]
    words = list(CodeWords([tmp_path]).of(module.most))
    assert {"sys", "time"} <= set(words)
