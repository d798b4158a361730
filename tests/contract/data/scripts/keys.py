"""Print what a JSON file holds apart from this machine's values: those of the keys named, and the types of all others.

A name such as `cases.status` is that of a key of each object in a list. Seconds spent waiting for compilation are left
out: whether a run waits depends on the machine.
"""

import json
import re
import sys

WAITING = "compilation ahead"


def shape(value):
    if isinstance(value, dict):
        members = {key: member for key, member in value.items() if key != WAITING}
        return {re.sub("[0-9a-f]{64}", "HASH", key): shape(member) for key, member in sorted(members.items())}
    if isinstance(value, list):
        return sorted({json.dumps(shape(member)) for member in value})
    return "number" if type(value) in (int, float) else type(value).__name__


def named(value, path):
    key, _, rest = path.partition(".")
    if isinstance(value, list):
        return [named(member, path) for member in value]
    return named(value[key], rest) if rest else rounded(value[key])


def rounded(value):
    """Return the value with numbers of six digits: later ones depend on the processor's vector instructions."""
    return float(f"{value:.6g}") if isinstance(value, float) else value


with open(sys.argv[1]) as file:
    content = json.load(file)
for path in sys.argv[2:]:
    print(path, json.dumps(named(content, path)))
print(json.dumps(shape(content), indent=1))
