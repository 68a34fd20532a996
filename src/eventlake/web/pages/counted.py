"""Where each number of a funnel leads: to the list of what it counts."""

from urllib.parse import urlencode

from eventlake.web.pages.render import date_of


def links(day: int, *, source: str = "", lake: str = "") -> dict[str, str]:
    """Of a day, in all sources or in one, in all lakes or in one."""
    connection = f"{source}/{lake}" if lake else source

    def to(page: str, **given: str) -> str:
        return f"{page}?{urlencode({name: value for name, value in given.items() if value})}"

    def runs(having: str) -> str:
        return to("/runs", connection=connection, day=date_of(day), having=having)

    def quality(view: str) -> str:
        return to("/quality", view=view, source=source, lake=lake, day=date_of(day))

    of_source = f"/sources/{source}" if source else "/sources"
    return {
        "received": of_source,
        "refused": to("/quality", view="refused", source=source),
        "accepted": of_source,
        "lines": runs("lines"),
        "suppressed": runs("suppressed"),
        "blocked": quality("blocked"),
        "duplicates": runs("duplicates"),
        "quarantined": quality("quarantine"),
        "loaded": runs("loaded") if lake else to("/health", source=source, day=date_of(day)),
        "rescued": quality("rescued"),
    }
