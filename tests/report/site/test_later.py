"""What a page puts aside: the first rows stay, and all of it can be made again."""

import re

import pytest

from prism_bench.report.site.page import MOST, SHOWN, Later
from tests.report.site.unpacked import given_values


def rows(count, attributes='data-name="numbers"'):
    body = "\n".join(f'<tr><td data-sort="{one}">{one} of them</td></tr>' for one in range(count))
    head = "<thead><tr><th>Number</th></tr></thead>"
    return f"<p>before</p><table {attributes}>{head}\n<tbody>\n{body}\n</tbody>\n</table><p>after</p>"


def kept(later, drawn=None):
    name, script = later.script("kernels/one", drawn)
    assert re.fullmatch(r"data/pages/kernels/one-[0-9a-f]{10}\.js", name)
    return given_values(script)


def test_a_long_table_keeps_its_first_rows_and_says_how_many_there_are():
    later = Later()
    page = later.shortened(rows(MOST + 1) + rows(MOST))
    assert SHOWN + MOST == page.count("<td")
    assert f'data-rest="0" data-total="{MOST + 1}"' in page
    assert page.startswith("<p>before</p>") and page.endswith("</table><p>after</p>")
    (rest,) = kept(later)["contents"]
    assert [str(one) for one in range(SHOWN, MOST + 1)] == re.findall(r'data-sort="(\d+)"', rest)


@pytest.mark.parametrize("table", [rows(MOST), rows(900, 'class="plain"')], ids=["short", "nameless"])
def test_other_tables_stay_as_they_are(table):
    later = Later()
    assert table == later.shortened(table)
    assert later.script("kernels/one", None) is None


def test_a_block_is_made_in_its_place():
    later = Later()
    assert str(later.put(lambda: "<p>folded</p>")).startswith('<template data-later="0"></template>')
    assert str(later.put(lambda: "<p>also</p>")).startswith('<template data-later="1"></template>')
    found = kept(later, {"cases": [float("nan")]})
    assert ["<p>folded</p>", "<p>also</p>"] == found["contents"]
    assert {"cases": [None]} == found["view"]
