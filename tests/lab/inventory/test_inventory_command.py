"""`prism-bench inventory`."""


def test_what_is_here_stands_beside_what_the_documents_say(shell, toys):
    found = shell("inventory", *toys)
    assert 0 == found.code
    for words in ("double", "no record", "170", "GPU optimisation master plan", "definitions unused"):
        assert words in found.out


def test_json_names_definitions_and_gaps(shell, toys):
    found = shell("inventory", *toys, "--json").json
    assert {"documents": "61", "source": "infrastructure status report", "here": 2} == found["claims"]["kernels"]
    double = next(one for one in found["kernels"] if one["kernel"] == "double")
    assert (["doubled", "doubled_by_adding"], [], []) == (double["definitions"], double["unused"], double["gaps"])


def test_a_record_that_is_not_there_ends_with_2(shell, toys):
    found = shell("inventory", *toys, "--record", "nowhere.json.gz")
    assert (2, "prism-bench: nowhere.json.gz: no such record\n") == (found.code, found.err)
