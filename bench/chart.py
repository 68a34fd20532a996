"""Bar charts as SVG, by hand: no plotting library is worth its weight for this."""

from __future__ import annotations

from html import escape
from typing import NamedTuple

_WIDTH = 760
_LABELS = 210  # of the width, left of the bars
_VALUES = 90  # right of the longest bar
_BAR = 18
_GAP = 8
_TITLE = 40
_OURS, _OTHERS, _INK = "#1b7f5c", "#9aa5b1", "#1f2933"


class Bar(NamedTuple):
    label: str
    value: float
    ours: bool


class Chart(NamedTuple):
    title: str
    bars: list[Bar]


def svg(charts: list[Chart]) -> str:
    """The charts, one below the other."""
    parts: list[str] = []
    top = 0
    for chart in charts:
        parts.append(_text(0, top + _TITLE - 16, chart.title, weight="bold"))
        top += _TITLE
        longest = max((bar.value for bar in chart.bars), default=0.0) or 1.0
        for bar in chart.bars:
            parts += _bar(bar, top, bar.value / longest)
            top += _BAR + _GAP
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {top + _GAP}" width="{_WIDTH}" '
        f'font-family="system-ui, sans-serif" font-size="13">\n'
        f'<rect width="100%" height="100%" fill="white"/>\n{"".join(parts)}</svg>\n'
    )


def _bar(bar: Bar, top: int, share: float) -> list[str]:
    length = max(1.0, share * (_WIDTH - _LABELS - _VALUES))
    color = _OURS if bar.ours else _OTHERS
    middle = top + _BAR - 5
    return [
        _text(_LABELS - 8, middle, bar.label, anchor="end"),
        f'<rect x="{_LABELS}" y="{top}" width="{length:.1f}" height="{_BAR}" fill="{color}"/>\n',
        _text(_LABELS + length + 6, middle, f"{bar.value:,.1f}" if bar.value < 1000 else f"{bar.value:,.0f}"),
    ]


def _text(x: float, y: float, words: str, *, anchor: str = "start", weight: str = "normal") -> str:
    place = f'x="{x:.1f}" y="{y}" text-anchor="{anchor}" font-weight="{weight}"'
    return f'<text {place} fill="{_INK}">{escape(words)}</text>\n'
