"""Print the keys of a JSON file and the types of their values: what does not depend on the machine."""

import json
import sys


def shape(value):
    if isinstance(value, dict):
        return {key: shape(one) for key, one in sorted(value.items())}
    if isinstance(value, list):
        return sorted({json.dumps(shape(one)) for one in value})
    return type(value).__name__


print(json.dumps(shape(json.load(open(sys.argv[1]))), indent=1))
