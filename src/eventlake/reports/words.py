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


def size(number: int) -> str:
    """A number of bytes.

    >>> size(0), size(999), size(1_500), size(123_456_789), size(10**15)
    ('0 B', '999 B', '1.5 KB', '123 MB', '1000.0 TB')
    """
    amount = float(number)
    for unit in ("B", "KB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" or amount >= 100 else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} TB"
