"""Python text in lines of at most 120 characters, laid out as the house's formatter lays it out."""

from collections.abc import Iterator

WIDTH = 120
OPENING, CLOSING = "([{", ")]}"


def laid_out(text: str) -> str:
    """The text with every line that is too long broken at its last bracket, as often as it takes."""
    return "\n".join(_laid_out(line) for line in text.split("\n"))


def _laid_out(line):
    if len(line) <= WIDTH:
        return line
    begin, end = _last_group(line)
    indent = line[: len(line) - len(line.lstrip())]
    if end <= begin + 1:
        return _at_operators(line, indent)
    inner, before, after = line[begin + 1 : end].rstrip(","), line[: begin + 1], line[end:]
    whole = f"{indent}    {inner}"
    if len(whole) <= WIDTH and _comma_free(line, begin, end):
        return f"{before}\n{whole}\n{indent}{after}"
    parts = (_laid_out(f"{indent}    {part},") for part in _parts(inner))
    return "\n".join([before, *parts, f"{indent}{after}"])


def _at_operators(line, indent):
    """A call without arguments of what stands in brackets: a line for every term of that."""
    begin, end = _last_group(line[: line.rindex("(")])
    if end <= begin + 1:
        return line
    lines = "".join(f"\n{indent}    {term}" for term in terms(line[begin + 1 : end]))
    return f"{line[: begin + 1]}{lines}\n{indent}{line[end:]}"


def terms(text: str) -> Iterator[str]:
    """The text cut before each + and - that stands in no bracket."""
    depth, begin = 0, 0
    for at, sign in _outside_strings(text):
        depth += (sign in OPENING) - (sign in CLOSING)
        if depth == 0 and text[at : at + 3] in (" + ", " - "):
            yield text[begin:at]
            begin = at + 1
    yield text[begin:]


def _comma_free(line, begin, end):
    """Whether the formatter leaves the group on one line: it is a call's, or no tuple, and has no comma at its end."""
    is_call = line[begin - 1 : begin].isidentifier() or len(_parts(line[begin + 1 : end])) == 1
    return line[end - 1] != "," and line[begin] == "(" and is_call


def _last_group(line):
    """Where the last bracket that stands in no other opens and closes."""
    begin, end, depth = 0, 0, 0
    for at, sign in _outside_strings(line):
        if sign in OPENING:
            begin, depth = (at if depth == 0 else begin), depth + 1
        elif sign in CLOSING:
            depth -= 1
            end = at if depth == 0 else end
    return begin, end


def _outside_strings(text):
    quoted = False
    for at, sign in enumerate(text):
        quoted ^= sign == '"'
        if not quoted:
            yield at, sign


def _parts(text):
    """The text cut at the commas that stand in no bracket, no string and not among a lambda's names."""
    parts, depth, begin, naming = [], 0, 0, False
    for at, sign in _outside_strings(text):
        depth += (sign in OPENING) - (sign in CLOSING)
        naming = naming or text.startswith("lambda", at)
        naming = naming and sign != ":"
        if sign == "," and depth == 0 and not naming:
            parts.append(text[begin:at].strip())
            begin = at + 1
    return [*parts, text[begin:].strip()]
