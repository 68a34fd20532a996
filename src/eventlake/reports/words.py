"""Words for people."""


def count(number: int, thing: str) -> str:
    """A number of things.

    >>> count(1, "raw file"), count(1200, "raw file"), count(0, "query")
    ('1 raw file', '1,200 raw files', '0 queries')
    """
    return either(number, thing, f"{thing[:-1]}ies" if thing.endswith("ry") else f"{thing}s")


def either(number: int, one: str, many: str) -> str:
    """A number with what is said of it.

    >>> either(1, "line is blank", "lines are blank"), either(2, "line is blank", "lines are blank")
    ('1 line is blank', '2 lines are blank')
    """
    return f"{number:,} {one if number == 1 else many}"
