"""The tables of a study: results beside the published figures, time and cost, and every seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from bcl.report import formatting as words
from bcl.report.paper import deviation, difference, is_converted
from bcl.report.provenance import DEFAULTS
from bcl.report.sheet import Cell, Part, Sheet, empty
from bcl.report.statistics import LEVEL
from bcl.report.study import Group, Result, Row, Study
from bcl.report.style import EDGE, colour, packaged

T = TypeVar("T")
ARROWS = {"acc": "ACC ↑", "fm": "FM ↓", "la": "LA ↑", "bwt": "BWT ↑", "fwt": "FWT ↑", "anytime": "anytime ↑"}
OVER_TIME = {"anytime": "anytime ↑", "minimum": "minimum ↑", "bwt": "BWT ↑", "fwt": "FWT ↑"}
PREQUENTIAL = "prequential ↑"  # where it was measured
BOLD = ("acc", "la")  # not FM: who learns little has little to forget
ENOUGH = 5  # seeds: with fewer, a deviation and a test are rough
CONVERTED = "c"  # marks a published standard deviation that was printed as another width


def results_sheet(study: Study) -> Sheet:
    """Ours and, where there are published figures, theirs and the difference."""
    compared = study.has_published
    measures = [m for m in ("acc", "fm", "la") if m == "acc" or _is_known(study, m)]
    tested = any(group.p_values() for group in study.groups)
    several = any(len(row.runs) > 1 for row in study.rows)
    headings = ["method"]
    for measure in measures:
        headings += [ARROWS[measure], *(["paper", "Δ"] if compared else [])]
    headings += [*_prequential(study, PREQUENTIAL), *(["worst"] if several else []), *(["p"] if tested else [])]
    headings += ["seeds", *([] if compared else ["s/run"])]
    parts = []
    for group in study.groups:
        lines: dict[bool, list[list[Cell]]] = {False: [], True: []}
        p_values = group.p_values()
        for row in group.rows:
            cells, p = [_marked_name(row)], p_values.get(row)
            for measure in measures:
                cells.append(_ours(row, measure, group, p if measure == "acc" else None))
                cells += _theirs(measure, row.measure(measure), row.published.get(measure)) if compared else []
            cells += _prequential(study, _ours(row, "prequential", group))
            cells += [*([_worst(row)] if several else []), *([_p(p)] if tested else []), _seeds(row)]
            lines[row.is_upper_bound].append(cells if compared else [*cells, _seconds(row)])
        parts.append(Part(group.name, lines[False], lines[True]))
    return Sheet("results", study.title, headings, parts, _note(study, tested), caution(study.rows))


def _prequential(study: Study, what: T) -> list[T]:
    """A column only where a run has measured it."""
    return [what] if any(row.measure("prequential") for row in study.rows) else []


def _is_known(study: Study, measure: str) -> bool:
    """A published table that reports no LA gets no column for it."""
    rows = [row for row in study.rows if row.published]
    return not rows or any(measure in row.published for row in rows)


def _name(row: Row) -> Cell:
    tint = colour(row) if row.runs else EDGE
    return Cell(row.label, {"benchmark": row.benchmark, "scenario": row.scenario}, tint=tint)


def _marked_name(row: Row) -> Cell:
    """With a word where it was not tuned."""
    cell = _name(row)
    return replace(
        cell, values={**cell.values, "hyper": row.origin}, badge=DEFAULTS if row.origin == DEFAULTS else ""
    )  # fmt: skip


def _ours(row: Row, measure: str, group: Group | None = None, p: float | None = None) -> Cell:
    if not row.runs:
        return Cell(row.state, {"state": row.state}, kind="missing")
    value = row.measure(measure)
    if value is None:
        return empty()
    values = {f"{measure}_mean": value["mean"], f"{measure}_std": value["std"]}
    if measure == "acc":
        values["worst"] = min(row.accuracies.values())
    bold = group is not None and measure in BOLD and group.is_best(row, measure)
    mark = "*" if p is not None and p < LEVEL else ""
    return Cell(words.mean_std(value, len(row.runs)), values, bold, mark)


def _worst(row: Row) -> Cell:
    if not row.runs:
        return empty()
    worst = min(row.accuracies.values())
    return Cell(words.number(worst), {"worst": worst})


def _theirs(measure: str, ours: Mapping[str, float] | None, theirs: list[float] | None) -> list[Cell]:
    if theirs is None:
        return [empty(), empty()]
    mean, std, converted = theirs[0], deviation(theirs), is_converted(theirs)
    values = {f"{measure}_paper_mean": mean, f"{measure}_paper_std": std}
    values |= {f"{measure}_paper_printed_width": theirs[1]} if converted else {}
    text = words.mean_std({"mean": mean, "std": std}, 2)
    paper = Cell(text, values, mark=CONVERTED if converted else "", kind="paper")
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
    there, diverged = len(row.runs), len(row.diverged)
    text = str(there) if there == row.seeds else f"{there} of {row.seeds}"
    text += f"; {diverged} diverged" if diverged else ""
    seeds = " ".join(map(str, row.accuracies))
    values = {"seeds": there, "seeds_planned": row.seeds, "seed_list": seeds, "diverged": diverged}
    return Cell(text, values, kind="" if there == row.seeds else "missing")


def _seconds(row: Row) -> Cell:
    value = row.measure("seconds")
    if value is None:
        return empty()
    return Cell(words.number(value["mean"], 1), {"seconds_mean": value["mean"], "seconds_std": value["std"]})


def _note(study: Study, tested: bool) -> str:
    several = any(len(row.runs) > 1 for row in study.rows)
    text = "Mean ± sample standard deviation over seeds, in percent." if several else "In percent, from a single seed."
    if any(group.is_best(row) for group in study.groups for row in group.rows):
        text += (
            " Bold: the highest ACC and LA of the continual learners on the same terms; not FM, as who learns little"
        )
        text += " has little to forget."
    if any(row.origin == DEFAULTS for row in study.rows):
        text += " Defaults: the hyper-parameters of this method were not tuned here."
    if any(row.is_upper_bound for row in study.rows):
        text += " Below the line: the upper bound, which sees all tasks at once and is measured at its end."
    if several:
        text += " Worst: the lowest ACC of a seed."
    if tested:
        text += f" p: paired t-test over seeds against {_tested_against(study)},"
        text += f" Holm-corrected; * marks p < {LEVEL}."
    if _prequential(study, ""):
        text += " Prequential: the accuracy on every mini-batch before it was learnt."
    if any(row.diverged for row in study.rows):
        text += " Diverged: the weights of a run are not finite; means and tests are without it."
    if study.has_published:
        text += " Δ: ours minus the paper's; ✓ within, ✗ outside two of the paper's standard deviations."
    if any(is_converted(theirs) for row in study.rows for theirs in row.published.values()):
        text += f" {CONVERTED}: ± std, converted, as the source prints 2 std / √n, of n runs."
    return text


def _tested_against(study: Study) -> str:
    same = f" at the same {study.axis}" if study.axis else ""
    if not study.against:
        return f"the highest ACC{same}"
    fields = [rows for group in study.groups for rows in group.fields]
    some_without = not all(any(row.is_reference for row in rows) for rows in fields)
    others = ", or the highest ACC where there is none" if some_without else ""
    return f"{' or '.join(f'“{label}”' for label in study.against)} of the same part{same}{others}"


def caution(rows: Sequence[Row]) -> str:
    """A warning where seeds are few."""
    measured = [row for row in rows if row.runs]
    few = [row for row in measured if len(row.runs) < ENOUGH]
    if not few:
        return ""
    who = "every row" if len(few) == len(measured) else words.some([row.label for row in few])
    return f"Caution: fewer than five seeds ({who}). Deviations and p-values are rough, and a small lead may be luck."


def over_time_sheet(study: Study) -> Sheet:
    """How accuracy went on the way to the end."""
    parts = []
    for group in study.groups:
        rows = [row for row in group.measured if row.has_history and row.tasks > 1]
        parts.append(Part(group.name, [[_marked_name(row), *(_ours(row, name) for name in OVER_TIME)] for row in rows]))
    note = (
        "Anytime: the accuracy on the tasks seen so far, averaged over time. Minimum: the lowest accuracy that each "
        "task fell to once it was learnt, averaged. BWT: what learning later tasks did to earlier ones; FWT: what "
        "earlier tasks did for later ones, before these were learnt."
    )
    headings = ["method", *OVER_TIME.values()]
    return Sheet(
        "over-time", "Anytime and minimum accuracy, transfer", headings, [part for part in parts if part.rows], note
    )


def time_sheet(study: Study) -> Sheet:
    """What each method costs: per run, per step, against plain fine-tuning, and in words."""
    headings = ["method", "time per run", "ms per step", "× finetune", "all runs", "cost of a step"]
    parts = []
    for group in study.groups:
        steps = {row.method: _per_step(row) for row in group.measured}
        parts.append(Part(group.name, [_time(row, steps.get("finetune")) for row in group.measured]))
    note = "Learning and evaluation, without loading data. A step is one mini-batch of the stream."
    return Sheet("time", "Time and cost", headings, [part for part in parts if part.rows], note, words=headings[-1:])


def _time(row: Row, base: float | None) -> list[Cell]:
    seconds, each = row.measure("seconds"), _per_step(row)
    cost = Cell(getattr(packaged(row.method), "cost", "") or words.NOTHING, kind="words")
    if seconds is None or each is None:
        return [_name(row), *(empty() for _ in range(4)), cost]
    total = seconds["mean"] * len(row.runs)
    return [
        _name(row),
        Cell(words.duration(seconds["mean"]), {"seconds_mean": seconds["mean"], "seconds_std": seconds["std"]}),
        Cell(words.number(1000 * each), {"ms_per_step": 1000 * each}),
        Cell(words.number(each / base, 1), {"times_finetune": each / base}) if base else empty(),
        Cell(words.duration(total), {"seconds_total": total}),
        cost,
    ]


def _per_step(row: Row) -> float | None:
    seconds, steps = row.measure("seconds"), row.measure("steps")
    return seconds["mean"] / steps["mean"] if seconds and steps and steps["mean"] else None


def seeds_sheet(study: Study) -> Sheet:
    """Every run that counts, and those that diverged."""
    headings = ["method", "seed", *ARROWS.values(), *_prequential(study, PREQUENTIAL), "steps", "time", "run"]
    names = [*ARROWS, *_prequential(study, "prequential")]
    parts = [
        Part(group.name, [_run(row, run, names) for row in group.rows for run in row.found]) for group in study.groups
    ]
    return Sheet("seeds", "Every seed", headings, [part for part in parts if part.rows])


def _run(row: Row, run: Result, names: Sequence[str]) -> list[Cell]:
    diverged, id = bool(run.get("diverged")), str(run.get("id") or words.NOTHING)
    seed = Cell(f"{run['seed']}{' diverged' if diverged else ''}", {"seed": run["seed"], "diverged": diverged})
    steps, seconds = run.get("steps"), run.get("seconds")
    return [
        _name(row),
        replace(seed, kind="missing" if diverged else ""),
        *(Cell(words.number(run.get(measure)), {measure: run.get(measure)}) for measure in names),
        Cell(str(steps or words.NOTHING), {"steps": steps}),
        Cell(words.duration(seconds), {"seconds": seconds}),
        Cell(id, {"run": id}, kind="run"),
    ]


def sheets(study: Study) -> list[Sheet]:
    return [results_sheet(study), over_time_sheet(study), time_sheet(study), seeds_sheet(study)]
