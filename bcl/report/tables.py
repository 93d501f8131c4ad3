"""The tables of a suite: results beside the published figures, time and cost, and every seed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bcl.report import formatting as words
from bcl.report.entries import Entry
from bcl.report.paper import difference
from bcl.report.sheet import Cell, Part, Sheet, empty
from bcl.report.significance import LEVEL
from bcl.report.suite_results import Comparison, Group, Row
from bcl.report.summary import mean_and_std, summary_of

ARROWS = {"acc": "ACC ↑", "fm": "FM ↓", "la": "LA ↑", "anytime": "anytime ↑"}
LOWER_IS_BETTER = ("fm",)


def results_sheet(comparison: Comparison) -> Sheet:
    """The paper's tables: ours, theirs, the difference, and whether that is within two standard deviations."""
    measures = [m for m in ("acc", "fm", "la") if m == "acc" or _is_known(comparison, m)]
    compared = comparison.has_published
    headings = ["method"]
    for measure in measures:
        headings += [ARROWS[measure], *(["paper", "Δ"] if compared else [])]
    headings.append(ARROWS["anytime"])
    parts = []
    for group in comparison.groups:
        best, ps = group.best, group.p_values()
        lines = [
            _line(row, group, measures, compared, row is best, p) for row, p in zip(group.rows, ps, strict=True)
        ]  # fmt: skip
        bound = [row.is_upper_bound for row in group.rows]
        parts.append(
            Part(
                group.name,
                [line for line, below in zip(lines, bound, strict=True) if not below],
                [line for line, below in zip(lines, bound, strict=True) if below],
            )
        )
    return Sheet("results", comparison.title, [*headings, "p", "seeds"], parts, _note(comparison))


def _is_known(comparison: Comparison, measure: str) -> bool:
    """A table that reports no LA gets no column for it."""
    rows = [row for group in comparison.groups for row in group.rows if row.published]
    return not rows or any(measure in row.published for row in rows)


def _line(row: Row, group: Group, measures: Sequence[str], compared: bool, best: bool, p: float | None) -> list[Cell]:
    summary = summary_of(row.entry) if row.entry else {}
    cells = [_name(row)]
    for measure in measures:
        ours = _ours(row, summary, measure)
        if measure == "acc":
            significant = p is not None and p < LEVEL
            ours = Cell(ours.text, ours.numbers, bold=best, mark="*" if significant else "", kind=ours.kind)
        elif row.entry and ours.numbers:
            ours = Cell(ours.text, ours.numbers, bold=_is_best(row, group, measure))
        cells.append(ours)
        if compared:
            cells += _theirs(measure, summary.get(measure), row.published.get(measure))
    return [*cells, _ours(row, summary, "anytime"), _p(p), _seeds(row)]


def _name(row: Row) -> Cell:
    from bcl.report.palette import colour

    return Cell(row.label, {"label": row.label}, tint=colour(row.entry) if row.entry else "#d0d5dd")


def _ours(row: Row, summary: Mapping[str, Any], measure: str) -> Cell:
    if row.entry is None:
        return Cell(row.state, kind="missing")
    value = summary[measure]
    if value is None:
        return empty()
    numbers = {f"{measure}_mean": value["mean"], f"{measure}_std": value["std"]}
    return Cell(words.mean_std(value, len(row.entry.runs)), numbers)


def _is_best(row: Row, group: Group, measure: str) -> bool:
    rivals = [other for other in group.rows if other.entry and not other.is_upper_bound]
    if len(rivals) < 2 or row.is_upper_bound:
        return False
    means = {id(other): (summary_of(other.entry)[measure] or {}).get("mean") for other in rivals if other.entry}
    known = [value for value in means.values() if value is not None]
    target = min(known) if measure in LOWER_IS_BETTER else max(known)
    return bool(means[id(row)] == target)


def _theirs(measure: str, ours: Mapping[str, float] | None, theirs: list[float] | None) -> list[Cell]:
    if theirs is None:
        return [empty(), empty()]
    numbers = {f"{measure}_paper_mean": theirs[0], f"{measure}_paper_std": theirs[1]}
    paper = Cell(words.mean_std({"mean": theirs[0], "std": theirs[1]}, 2), numbers, kind="paper")
    gap = difference(ours, theirs)
    if gap is None:
        return [paper, empty()]
    sign = "+" if gap["difference"] >= 0 else ""
    text = f"{sign}{words.number(gap['difference'])} {'✓' if gap['within'] else '✗'}"
    names = {f"{measure}_difference": gap["difference"], f"{measure}_within_2_std": gap["within"]}
    return [paper, Cell(text, names, kind="within" if gap["within"] else "outside")]


def _p(p: float | None) -> Cell:
    if p is None:
        return empty()
    return Cell("<0.001" if p < 0.001 else f"{p:.3f}", {"p": p})


def _seeds(row: Row) -> Cell:
    there = len(row.entry.runs) if row.entry else 0
    text = str(there) if there == row.seeds else f"{there} of {row.seeds}"
    return Cell(text, {"seeds": there, "seeds_planned": row.seeds}, kind="" if there == row.seeds else "missing")


def _note(comparison: Comparison) -> str:
    text = "Mean ± sample standard deviation over seeds, in percent. Bold: the best of the continual learners. "
    text += f"p: paired t-test over seeds against the highest ACC, Holm-corrected; * marks p < {LEVEL}."
    text += " Anytime: the accuracy on the tasks seen so far, averaged over time."
    if comparison.has_published:
        text += " Δ: ours minus the paper's; ✓ within, ✗ outside two of the paper's standard deviations."
    return text


def time_sheet(comparison: Comparison) -> Sheet:
    """What each method costs: per run, per step, against plain fine-tuning, and in words."""
    headings = ["method", "time per run", "ms per step", "× finetune", "all runs", "cost of a step"]
    parts = []
    for group in comparison.groups:
        steps = {row.method: _per_step(row.entry) for row in group.rows if row.entry}
        lines = [_time(row, steps.get("finetune")) for row in group.rows if row.entry]
        if lines:
            parts.append(Part(group.name, lines))
    note = "Learning and evaluation, without loading data. A step is one mini-batch of the stream."
    return Sheet("time", "Time and cost", headings, parts, note, words=headings[-1:])


def _time(row: Row, base: float | None) -> list[Cell]:
    assert row.entry is not None
    seconds = mean_and_std([run.get("seconds") for run in row.entry.runs])
    each = _per_step(row.entry)
    if seconds is None or each is None:
        return [_name(row), *(empty() for _ in range(4)), Cell(_cost(row.method), kind="words")]
    total = seconds["mean"] * len(row.entry.runs)
    return [
        _name(row),
        Cell(words.duration(seconds["mean"]), {"seconds_mean": seconds["mean"], "seconds_std": seconds["std"]}),
        Cell(words.number(1000 * each), {"ms_per_step": 1000 * each}),
        Cell(words.number(each / base, 1), {"times_finetune": each / base}) if base else empty(),
        Cell(words.duration(total), {"seconds_total": total}),
        Cell(_cost(row.method), kind="words"),
    ]


def _per_step(entry: Entry) -> float | None:
    if any(run.get("seconds") is None or not run.get("steps") for run in entry.runs):
        return None
    return float(sum(run["seconds"] for run in entry.runs) / sum(run["steps"] for run in entry.runs))


def _cost(method: str) -> str:
    from bcl.learners import METHODS
    from bcl.learners import method as learner

    return learner(method).cost or words.NOTHING if method in METHODS else words.NOTHING


def seeds_sheet(comparison: Comparison) -> Sheet:
    measures = ("acc", "fm", "la", "bwt", "fwt", "anytime")
    headings = ["method", "seed", *(m.upper() if m != "anytime" else m for m in measures), "steps", "seconds"]
    parts = [Part(group.name, list(_runs(group, measures))) for group in comparison.groups if group.entries]
    return Sheet("seeds", "Every seed", headings, parts)


def _runs(group: Group, measures: Sequence[str]) -> Iterator[list[Cell]]:
    for row in group.rows:
        for run in row.entry.runs if row.entry else ():
            figures = [Cell(words.number(run.get(m)), {m: run.get(m)}) for m in measures]
            plain = [Cell(str(run.get(name, words.NOTHING)), {name: run.get(name)}) for name in ("steps", "seconds")]
            yield [_name(row), Cell(str(run["seed"]), {"seed": run["seed"]}), *figures, *plain]
