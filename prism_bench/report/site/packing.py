"""Script files that hand values to a page: `prism.give(name, first, values);`, packed where the values are long.

Rows of a table and points of a picture repeat themselves: packed, they take a fourth to a tenth. A page from disk may
fetch nothing, so that no server packs it. `site.js` unpacks them.
"""

import base64
import zlib

from prism_bench.report.site.page import plain

LEAST = 8_000  # bytes: what is shorter stays readable
_RAW = -15  # DEFLATE without a header, with its largest window


def giving(name: str, first: int, values: object) -> bytes:
    """Return the content of the script file that hands over these values."""
    text = plain(values).strip()
    if len(text) >= LEAST:
        packer = zlib.compressobj(9, zlib.DEFLATED, _RAW)
        packed = base64.b64encode(packer.compress(text) + packer.flush())
        text = b'prism.unpacked(%d, "%s")' % (len(text), packed)
    return b"prism.give(%s, %d, %s);\n" % (plain(name).strip(), first, text)
