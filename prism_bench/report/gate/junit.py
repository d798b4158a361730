"""The gate as JUnit XML: a suite for each part, a test for each check.

A bad answer is a failure, one that cannot be trusted an error, one without a verdict is skipped: a report of tests must
not count an unmeasured budget among those that passed.
"""

import re
from collections import Counter
from xml.etree import ElementTree as Xml

from prism_bench.analysis.gate.alerts import command
from prism_bench.analysis.gate.checks import Gate, GateCheck, GatePart

# What XML 1.0 cannot hold, not even escaped (section 2.2).
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def document(gate: Gate) -> str:
    """Return the XML document as text; every part has a suite, also one without any check."""
    root = Xml.Element("testsuites", name="prism-bench check")
    for part in gate.parts:
        root.append(_suite(gate, part))
    Xml.indent(root)
    return Xml.tostring(root, encoding="unicode", xml_declaration=False) + "\n"


def _suite(gate: Gate, part: GatePart) -> Xml.Element:
    tests = [_test(gate, part, check) for check in part.checks] or [_silent(part)]
    kinds = Counter(child.tag for test in tests for child in test)
    counts = {"failures": kinds["failure"], "errors": kinds["error"], "skipped": kinds["skipped"]}
    attributes = {"name": f"prism-bench.{part.name}", "tests": len(tests), **counts, "timestamp": gate.record.created}
    suite = Xml.Element("testsuite", {name: _clean(str(value)) for name, value in attributes.items()})
    suite.extend(tests)
    return suite


def _test(gate: Gate, part: GatePart, check: GateCheck) -> Xml.Element:
    test = _named(part, check.title)
    if check.grave:
        tag = "failure" if check.gravity == "bad" else "error"
        body = Xml.SubElement(test, tag, message=_clean(check.message), type=_clean(check.answer))
        body.text = _clean(f"{check.message}\n{command(gate.record, check)}")
    elif check.gravity == "note":
        Xml.SubElement(test, "skipped", message=_clean(f"{check.answer}: {check.message}"))
    return test


def _silent(part: GatePart) -> Xml.Element:
    test = _named(part, "nothing to ask")
    Xml.SubElement(test, "skipped", message=_clean(part.silent or "nothing to ask"))
    return test


def _named(part: GatePart, name: str) -> Xml.Element:
    return Xml.Element("testcase", classname=f"prism-bench.{part.name}", name=_clean(name))


def _clean(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)
