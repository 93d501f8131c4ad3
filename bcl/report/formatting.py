"""Figures as words, the same in the terminal, in Markdown and on the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

NOTHING = "–"


def mean_std(measure: Mapping[str, float] | None, seeds: int, digits: int = 2) -> str:
    """With one seed there is no spread to speak of, and none is shown.

    >>> mean_std({"mean": 88.824, "std": 0.4}, 3)
    '88.82 ± 0.40'
    """
    if measure is None:
        return NOTHING
    mean = number(measure["mean"], digits)
    return f"{mean} ± {measure['std']:.{digits}f}" if seeds > 1 else mean


def number(value: float | None, digits: int = 2) -> str:
    if value is None:
        return NOTHING
    return f"{round(value, digits) + 0.0:.{digits}f}".replace("-", "−")  # + 0.0: no negative zero


def duration(seconds: float | None) -> str:
    """
    >>> duration(4.26), duration(75), duration(7260)
    ('4.3 s', '1 min 15 s', '2 h 01 min')
    """
    if seconds is None:
        return NOTHING
    if seconds < 59.95:
        return f"{seconds:.2f} s" if seconds < 0.995 else f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def size(amount: float) -> str:
    """
    >>> size(106), size(8120), size(4_436_000)
    ('106 B', '7.9 KiB', '4.23 MiB')
    """
    if amount < 1000:
        return f"{amount:.0f} B"
    kibibytes = amount / 1024
    return f"{kibibytes:.1f} KiB" if kibibytes < 1000 else f"{kibibytes / 1024:.2f} MiB"


def listing(words: Sequence[str]) -> str:
    """
    >>> listing(["a", "b", "c"])
    'a, b and c'
    """
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]])) if words else ""


def with_brackets(name: str, *words: str) -> str:
    """A name, and behind it what tells it from others; empty words are left out.

    >>> with_brackets("mine", ""), with_brackets("mine", "er", "memory=10")
    ('mine', 'mine (er, memory=10)')
    """
    inside = ", ".join(filter(None, words))
    return f"{name} ({inside})" if inside else name


def some(words: Sequence[str], limit: int = 4) -> str:
    """The first few.

    >>> some(["a", "b", "c", "d", "e", "f"])
    'a, b, c, d and 2 more'
    """
    return listing([*words[:limit], *([f"{len(words) - limit} more"] if len(words) > limit else [])])


def count(number: int, noun: str) -> str:
    """
    >>> count(1, "seed"), count(3, "seed")
    ('1 seed', '3 seeds')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def shortened(text: str, longest: int) -> str:
    """Without its middle, if it is long: labels of a method's variants differ at the end.

    >>> shortened("bcl-dual-mir", 12), shortened("bcl-dual-mir", 8)
    ('bcl-dual-mir', 'bcl…-mir')
    """
    head, tail = (longest - 1) // 2, longest // 2
    return text if len(text) <= longest else f"{text[:head]}…{text[-tail:]}"
