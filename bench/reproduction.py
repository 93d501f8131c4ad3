"""The tables of docs/reproduction.md and docs/beyond.md, from the published runs in results/.

python bench/reproduction.py            prints them
python bench/reproduction.py --write    puts them into the pages
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean

from bcl.report.budget import budget
from bcl.report.formatting import NOTHING, count, mean_std, number
from bcl.report.paper import deviation
from bcl.report.read import read_study
from bcl.report.statistics import LEVEL, holm, paired_p
from bcl.report.study import Group, Row

ROOT = Path(__file__).parents[1]
PRECISION = "tf32"  # of the page's runs, where it does not say another
SEEDS = 5  # a row with another number says so
TUNED = "tuned on"  # as many tasks as are learnt: in the label of such a row
PAPER, BEYOND = ROOT / "docs" / "reproduction.md", ROOT / "docs" / "beyond.md"
PAGES = {
    PAPER: ("paper/table1", "paper/table2", "paper/table3", "paper/table4"),
    BEYOND: ("beyond/paper-streams", "beyond/ablation", "beyond/width20", "beyond/protocol", "beyond/authors"),
}
FIGURES = {PAPER: ROOT / "results/paper/figure2", BEYOND: ROOT / "results/beyond/memory"}  # along an axis
EQUAL, OURS = ("beyond/width20", "beyond/protocol"), "bcl-mean"  # who is compared at equal passes
RIVALS = ("finetune", "lwf", "ewc", "icarl", "gem", "kdr", "er", "mer", "ftml")
PARTS = ("no regularization", "no dual memory", "regularization alone (bcl-single)", "none (er)")
CLAIMS = (  # of the paper: a table, who is above, and whom
    ("table1", "bcl-dual", (*RIVALS, "bcl-single")),
    ("table1", "bcl-single", RIVALS),
    ("table2", "bcl-dual + adapt", ("bcl-dual",)),
    ("table2", "ftml + adapt", ("ftml",)),
    ("table2", "bcl-dual", ("ftml + adapt",)),
    ("table3", "all (bcl-dual)", PARTS),
    ("table4", "bcl-dual, reservoir", ("er, reservoir, lr 0.1",)),
    ("table4", "bcl-dual-mir, reservoir", ("er-mir, reservoir, lr 0.1", "bcl-dual, reservoir")),
)


def verdict(ours: float, mean: float, std: float) -> str:
    """As published: within two of the paper's standard deviations, or one point, whichever is wider."""
    gap, near = ours - mean, max(1.0, 2 * std)
    return "as published" if abs(gap) <= near else "above" if gap > 0 else "**below**"


def cell(row: Row, measure: str) -> str:
    theirs, ours = row.published.get(measure), row.measure(measure)
    first = mean_std(ours, len(row.runs)) if ours else "–"
    return f"{first} ({number(theirs[0])})" if theirs else first


def accuracy(row: Row) -> str:
    few = "" if len(row.runs) == SEEDS else f" (of {count(len(row.runs), 'seed')})"
    return mean_std(row.measure("acc"), len(row.runs)) + few


def line(row: Row) -> str:
    theirs = row.published.get("acc")
    published = f"{number(theirs[0])} ± {number(deviation(theirs))}" if theirs else "–"
    if not row.runs:
        return f"| {row.label} | {published} | not run | | | | | |"
    said = verdict(row.mean(), theirs[0], deviation(theirs)) if theirs else "–"
    worst, seconds = min(row.accuracies.values()), row.mean("seconds")
    return (
        f"| {row.label} | {published} | {accuracy(row)} | {said} | {cell(row, 'fm')} "
        f"| {cell(row, 'la')} | {number(worst)} | {seconds:.0f} s |"
    )


def own_line(row: Row, seeds: int) -> str:
    """Where a row has fewer seeds than others, or another precision, it says so."""
    few = f" (of {count(len(row.runs), 'seed')})" if len(row.runs) < seeds else ""
    acc = ", ".join([cell(row, "acc") + few, *precisions(row)])
    measures = " | ".join([acc, *(cell(row, name) for name in ("fm", "la"))])
    passes = budget(row)["passes"]
    spent = number(passes["mean"], 1) if passes else "–"
    return f"| {row.label} | {spent} | {measures} | {number(min(row.accuracies.values()))} |"


def table(group: Group) -> str:
    """Beside the paper's figures, if there are any."""
    if not any(row.published for row in group.rows):
        head = "| method | passes | ACC | FM | LA | worst seed |"
        seeds = max((len(row.runs) for row in group.rows), default=0)
        rows = [own_line(row, seeds) for row in group.rows if row.runs]
        return "\n".join([head, "|---|---:|---|---|---|---:|", *rows]) + "\n"
    shown = [row for row in group.rows if row.runs or row.published]
    head = "| method | published ACC | our ACC | verdict | FM (published) | LA (published) | worst seed | a run |"
    return "\n".join([head, "|---|---|---|---|---|---|---:|---:|", *(line(row) for row in shown)]) + "\n"


def precisions(row: Row) -> list[str]:
    """Those of its runs that are not the page's."""
    return sorted({str(run["config"]["precision"]) for run in row.runs} - {PRECISION})


def point(row: Row) -> str:
    return ", ".join([accuracy(row), *precisions(row)])


def curves(group: Group) -> str:
    """A row per curve, and a column per place on the axis where something was run."""
    cells = {(row.curve, row.at): point(row) for row in group.measured}
    places = sorted({at for _, at in cells})
    head = [f"| method | {' | '.join(map(str, places))} |", "|---" * (1 + len(places)) + "|"]
    names = dict.fromkeys(name for name, _ in cells)
    rows = [f"| {' | '.join([name, *(cells.get((name, at), NOTHING) for at in places)])} |" for name in names]
    return "\n".join([*head, *rows]) + "\n"


def figure(archive: Path) -> dict[str, str]:
    """Its groups with more than a point each; none while it is not run."""
    groups = read_study(archive).groups if archive.is_dir() else ()
    return {
        f"{archive.name} {group.name}": curves(group) for group in groups if len({row.at for row in group.measured}) > 1
    }


def rival(rows: Mapping[str, Row], name: str) -> tuple[str, Row | None]:
    """The row that stands for a method: the one that was tuned on as many tasks as are learnt, where there is one."""
    tuned = [row for label, row in rows.items() if label.startswith(f"{name}, ") and TUNED in label]
    return (f"{name}*", tuned[0]) if tuned else (name, rows.get(name))


def claim(group: Group, above: str, whom: Sequence[str]) -> list[str]:
    """Whom a row leads, whom it may lead or trail by chance, and whom it trails: with the difference, in points."""
    rows = {row.label: row for row in group.rows if row.runs}
    if above not in rows:
        return []
    leader = rows[above].accuracies
    others = [(name, row.accuracies) for name, row in (rival(rows, one) for one in whom) if row is not None]
    pairs = [(name, other) for name, other in others if leader.keys() & other.keys()]
    chances = holm([paired_p(leader, other) for _, other in pairs])
    cells: list[list[str]] = [[], [], []]
    for (name, other), chance in zip(pairs, chances, strict=True):
        gap = mean(leader[seed] - other[seed] for seed in leader.keys() & other.keys())
        place = 1 if chance is None or chance >= LEVEL else 0 if gap > 0 else 2
        cells[place].append(f"{name} ({round(gap, 1) + 0.0:+.1f})")
    return [", ".join(cell) or "–" for cell in cells] if pairs else []


def conclusions() -> str:
    lines = ["| method | where | is above | may be chance | is below |", "|---|---|---|---|---|"]
    for name, above, whom in CLAIMS:
        for group in read_study(ROOT / "results/paper" / name).groups:
            if cells := claim(group, above, whom):
                lines.append(f"| {' | '.join([above, f'{name}, {group.name}', *cells])} |")
    return "\n".join(lines) + "\n"


def at_equal_passes(group: Group) -> str:
    """For every number of passes from which on OURS or a rival has more: the best of both that take no more."""
    spent = {row.label: round(passes["mean"], 1) for row in group.measured if (passes := budget(row)["passes"])}
    sides = [[row for row in group.measured if (row.method == OURS) == ours] for ours in (True, False)]
    lines: list[tuple[float, list[Row]]] = []
    for most in sorted(set(spent.values())):
        able = [[row for row in side if spent.get(row.label, most + 1) <= most] for side in sides]
        best = [max(side, key=lambda row: row.mean()) for side in able if side]
        if len(best) == 2 and (not lines or lines[-1][1] != best):
            lines.append((most, best))
    chances = holm([paired_p(ours.accuracies, other.accuracies) for _, (ours, other) in lines])
    head = f"| passes, at most | `{OURS}` | ACC | the best rival | ACC | p |\n|---:|---|---|---|---|---:|\n"
    return head + "".join(
        f"| {most} | {' | '.join(cell for row in rows for cell in (row.label, point(row)))} "
        f"| {'–' if chance is None else '<0.001' if chance < 0.001 else f'{chance:.3f}'} |\n"
        for (most, rows), chance in zip(lines, chances, strict=True)
    )


def tables(page: Path) -> dict[str, str]:
    """Every group that has runs, by the name of its place in the page."""
    found = figure(FIGURES[page]) | ({"conclusions": conclusions()} if page == PAPER else {})
    for name in PAGES[page]:
        for group in read_study(ROOT / "results" / name).groups:
            if group.measured:
                found[f"{Path(name).name} {group.name}"] = table(group)
            if group.measured and name in EQUAL:
                found[f"equal {Path(name).name} {group.name}"] = at_equal_passes(group)
    return found


def filled(page: Path) -> str:
    """A page with the tables at their places, between two comments each."""
    text = page.read_text(encoding="utf-8")
    for name, part in tables(page).items():
        begin, end = f"<!-- {name} -->\n", "<!-- end -->"
        before, found, rest = text.partition(begin)
        if not found:
            raise SystemExit(f"{page} has no place '{begin.strip()}'")
        text = before + begin + part + rest[rest.index(end) :]
    return text


if __name__ == "__main__":
    for page in PAGES:
        if "--write" in sys.argv:
            page.write_text(filled(page), encoding="utf-8")
        else:
            print("\n".join(f"{name}\n{part}" for name, part in tables(page).items()))
