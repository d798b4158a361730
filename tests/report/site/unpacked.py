"""What a script file of a page hands over, unpacked as `site.js` does."""

import base64
import json
import re
import zlib

GIVEN = re.compile(rb'prism\.give\("[^"]*", \d+, (?:prism\.unpacked\((\d+), "([^"]*)"\)|(.*))\);\n', re.DOTALL)


def given_values(script):
    """Return the values that the script file hands over."""
    found = GIVEN.fullmatch(script)
    assert found, "the script hands something over"
    return json.loads(
        found[3] if found[3] is not None else zlib.decompress(base64.b64decode(found[2]), -zlib.MAX_WBITS)
    )
