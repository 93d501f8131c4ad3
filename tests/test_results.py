"""What the repository publishes: the pages say what the files say, and every line of the files is sound."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path
from statistics import mean

import pytest

from bcl.cli import main
from bcl.errors import InputError
from bcl.learners import method
from bcl.report.budget import compute
from bcl.report.grouping import from_results
from bcl.report.read import read_study
from bcl.report.statistics import paired_p
from bcl.runs.presets import preset
from bcl.runs.result import find_results
from bcl.streams import benchmark
from bcl.studies.plan import read_record

ROOT = Path(__file__).parents[1]
PAPER = ROOT / "results" / "paper"
REPRODUCTION = runpy.run_path(str(ROOT / "bench" / "reproduction.py"))


@pytest.mark.parametrize(("part", "least"), [("paper", 150), ("beyond", 60)])
def test_every_published_run_is_sound(part: str, least: int) -> None:
    results, problems = find_results(ROOT / "results" / part)
    assert problems == []
    assert len(results) >= least


@pytest.mark.parametrize("page", REPRODUCTION["PAGES"], ids=lambda page: page.stem)
def test_a_page_says_what_the_files_say(page: Path) -> None:
    assert REPRODUCTION["filled"](page) == page.read_text(encoding="utf-8"), "python bench/reproduction.py --write"


@pytest.mark.parametrize("name", REPRODUCTION["EQUAL"])
def test_at_equal_passes_the_best_of_both_sides_stand_beside_each_other(name: str) -> None:
    for group in read_study(ROOT / "results" / name).groups:
        told = [line.split(" | ") for line in REPRODUCTION["at_equal_passes"](group).splitlines()[2:]]
        rows = {row.label: row for row in group.measured if all("passes" in run for run in row.runs)}
        spent = {label: round(mean((r["passes"]["forward"] + 2 * r["passes"]["backward"]) / 3 for r in row.runs), 1)
                 for label, row in rows.items()}  # fmt: skip
        assert len(told) > 2
        for most in spent.values():
            best = [
                max(
                    (row.mean(), label)
                    for label, row in rows.items()
                    if (row.method == "bcl-mean") == ours and spent[label] <= most
                )[1]
                for ours in (True, False)
                if any((row.method == "bcl-mean") == ours and spent[label] <= most for label, row in rows.items())
            ]
            said = [line for line in told if float(line[0].strip("| ")) <= most]
            assert best == [said[-1][1], said[-1][3]] if len(best) == 2 else not said
        for line in told:
            p = paired_p(rows[line[1]].accuracies, rows[line[3]].accuracies)
            corrected = float(line[5].strip(" |<"))
            assert min(p, 1) - 0.0005 <= corrected <= min(len(told) * p, 1) + 0.001


def test_the_readme_says_what_the_files_say() -> None:
    rows = re.findall(
        r"^\| `([\w-]+)` \| ([\d.]+ ± [\d.]+) \| ([\d.]+ ± [\d.]+) \|$",
        (ROOT / "README.md").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    (group,) = (group for group in read_study(PAPER / "table1").groups if group.name == "split-cifar100")
    found = {row.label: row for row in group.rows}
    assert len(rows) >= 8
    for label, ours, published in rows:
        row = found[label]
        assert ours == REPRODUCTION["mean_std"](row.measure("acc"), len(row.runs))
        assert published == "{:.2f} ± {:.2f}".format(*row.published["acc"])


def test_texts_say_what_the_files_say() -> None:
    results, _ = find_results(PAPER / "old-network-by-its-statistics")
    (group,) = from_results(results).groups
    said = {row.label: REPRODUCTION["mean_std"](row.measure("acc"), len(row.runs)) for row in group.rows}
    assert said == {"lwf": "47.00 ± 3.82", "kdr": "53.02 ± 4.07"}
    found = {
        (group.name, row.label): REPRODUCTION["mean_std"](row.measure("acc"), len(row.runs))
        for group in read_study(ROOT / "results/beyond/paper-streams").groups
        for row in group.rows
        if row.runs
    }
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    one, four = (found["split-cifar100", label] for label in ("bcl-mean", "bcl-mean, 4 repeats"))
    assert f"gives {one} here, four give {four}." in readme
    names = ("bcl-mean", "offline", "bcl-mean, 4 repeats")
    one, offline, four = (found["split-miniimagenet", label] for label in names)
    assert f"one gives {one}, as much as three epochs offline ({offline}, published 71.15); four give {four}." in readme
    (width,) = read_study(ROOT / "results/beyond/width20").groups
    said = {row.label: REPRODUCTION["mean_std"](row.measure("acc"), len(row.runs)) for row in width.rows if row.runs}
    four, mkd, mose, rar = (said[label] for label in ("bcl-mean, 4 steps", "mkd (repeats=2)", "mose, tuned", "rar"))
    assert f"four give {four}; MKD (2024) at two steps has {mkd}, MOSE (2024) {mose} and RAR (2022) {rar}," in readme
    rows = {row.label: row for row in width.rows if row.runs}
    ours, passes = rows["bcl-mean, 4 steps"], {label: compute(row.runs[0]) or 0 for label, row in rows.items()}
    times = [f"{passes[label] / passes[ours.label]:.1f}" for label in ("mkd (repeats=2)", "mose, tuned")]
    assert f"the first two for {times[0]} and {times[1]} times the passes" in readme
    assert f"one seed: {said['ccl-dc']}, where `bcl-mean` has {ours.accuracies[0]:.2f}." in readme
    rivals = [row for row in rows.values() if row.method != "bcl-mean"]
    assert {row.label: len(row.runs) for row in rivals if len(row.runs) < 5} == {"mose": 1, "ccl-dc": 1}
    for rival in (row for row in rivals if len(row.runs) == 5):
        assert rival.mean() < ours.mean()
        assert (paired_p(ours.accuracies, rival.accuracies) or 1) < 0.01, rival.label
    full = {row.label: row for row in read_study(ROOT / "results/beyond/protocol").groups[0].rows if row.runs}
    assert max(full.values(), key=lambda row: row.mean()).label == "bcl-mean, 2 steps"
    labels = ("bcl-mean, 2 steps", "mose", "mkd")
    two, mose, mkd = (REPRODUCTION["mean_std"](full[label].measure("acc"), 5) for label in labels)
    passes = {label: compute(full[label].runs[0]) or 0 for label in labels}
    times = [f"{passes[label] / passes[labels[0]]:.1f}" for label in labels[1:]]
    assert f"two give {two}; MOSE and MKD have {mose} and {mkd}, for {times[0]} and {times[1]} times" in readme
    for rival in ("mkd", "mose"):
        ours, theirs = (full[label].accuracies for label in ("bcl-mean, 2 steps", rival))
        assert (paired_p(ours, theirs) or 0) > 0.05, "not proved, says the README"
    groups = [*read_study(PAPER / "table1").groups, *read_study(PAPER / "table4").groups]
    labels = ("bcl-dual", "bcl-dual, reservoir")
    rows = {group.name: row for group in groups for row in group.rows if row.label in labels}
    for name in ("permuted-mnist", "split-miniimagenet", "50 images per class"):
        assert f"({rows[name].mean():.2f}, published {rows[name].published['acc'][0]:.2f})" in readme


def test_the_readme_says_over_whom_the_lead_holds() -> None:
    rivals = REPRODUCTION["RIVALS"]
    above = [
        {name.partition(" ")[0].strip("*") for name in cells[0].split(", ")}
        for group in read_study(PAPER / "table1").groups
        if (cells := REPRODUCTION["claim"](group, "bcl-dual", rivals))
    ]
    often = {name: sum(name in found for found in above) for name in rivals}
    assert often == dict.fromkeys(rivals, 4) | {"icarl": 2, "mer": 1}
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    said = "holds on all four benchmarks of the paper's Table 1 over fine-tuning, EWC, LwF, GEM, FTML, KDR and ER; "
    assert f"{said}over iCaRL on two of three, over MER on one of four." in readme


@pytest.mark.parametrize("trials", sorted((ROOT / "results").glob("*/tuning/*.jsonl")), ids=str)
def test_every_trial_of_the_tuning_has_all_its_seeds(trials: Path) -> None:
    for line in trials.read_text(encoding="utf-8").splitlines():
        trial = json.loads(line)
        assert len(trial["accs"]) == trial["seeds"] in (1, 2, 3, 10)
        assert trial["acc"] == pytest.approx(sum(trial["accs"]) / len(trial["accs"]), abs=0.02)


def test_table_1_is_asked_for_with_the_values_that_it_was_made_with() -> None:
    """A row without values of its own has those of suites/hyper.yaml: what is lost or changed there shows here."""
    made = {run["id"]: run["config"] for run in find_results(PAPER / "table1")[0]}
    record = read_record(PAPER / "table1")
    assert record is not None
    for line in (line for line in record["lines"] if line["runs"] and not line["set"]):
        config = made[line["runs"][0]]
        place = config["benchmark"], config["scenario"], benchmark(config["benchmark"]).scenario, config["method"]
        asked = method(config["method"]).Hyper.of(preset(*place))
        assert {name: getattr(asked, name) for name in config["hyper"]} == config["hyper"], (
            line["group"],
            line["label"],
        )


def test_runs_are_put_into_an_archive(tmp_path: Path) -> None:
    publish = runpy.run_path(str(ROOT / "bench" / "publish.py"))["publish"]
    archive, second, third = (tmp_path / name for name in ("archive", "second", "third"))
    suite, small = tmp_path / "small.yaml", ["--tasks", "2", "--samples", "20", "--device", "cpu"]
    suite.write_text("runs: [{benchmark: split-digits, methods: [finetune, er], tasks: 2, samples: 20, seeds: 1}]")
    main(["suite", "run", str(suite), "--device", "cpu", "--out", str(tmp_path / "first")])
    main(["report", str(tmp_path / "first"), "--archive", str(archive)])
    main(["run", "split-digits", "er", "agem", *small, "--seeds", "2", "--out", str(second)])
    assert publish(archive, second) == 4
    found = {row.label: len(row.runs) for row in read_study(archive).groups[0].rows}
    assert found == {"finetune": 1, "er": 2, "agem": 2}
    assert len((archive / "runs.jsonl").read_text(encoding="utf-8").splitlines()) == 5
    main(["run", "split-digits", "er", *small, "--seed", "0", "--set", "lr=0.2", "--out", str(third)])
    assert publish(archive, third, "er, quicker") == 1
    rows = read_study(archive).groups[0].rows
    assert [(row.label, len(row.runs)) for row in rows] == [*found.items(), ("er, quicker", 1)]
    fourth, fifth = tmp_path / "fourth", tmp_path / "fifth"
    main(["run", "split-digits", "er", *small, "--seed", "2", "--out", str(fourth)])
    publish(archive, fourth)
    assert [sorted(row.accuracies) for row in read_study(archive).groups[0].rows if row.label == "er"] == [[0, 1, 2]]
    main(["run", "split-digits", "er", *small, "--seed", "3", "--set", "lr=0.2", "--out", str(fifth)])
    publish(archive, fifth)
    seeds = {row.label: sorted(row.accuracies) for row in read_study(archive).groups[0].rows}
    assert seeds["er"] == [0, 1, 2], "its runs have another rate"
    assert seeds["er, quicker"] == [0, 3], "a line's own name does not matter: its runs differ in the seed alone"
    main(["run", "split-digits", "er", *small, "--seed", "3", "--set", "lr=0.3", "--out", str(tmp_path / "sixth")])
    publish(archive, tmp_path / "sixth")
    assert [sorted(row.accuracies) for row in read_study(archive).groups[0].rows if row.label == "er"] == [[3]]
    with pytest.raises(InputError, match="is not the archive of a suite"):
        publish(second, third)
    with pytest.raises(InputError, match="has 2 lines; --label names the line"):
        publish(archive, second, "both")


def test_a_run_does_not_become_a_line_of_another_configuration(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Another scenario is another line; other samples, or two rates at once, are of none."""
    publish = runpy.run_path(str(ROOT / "bench" / "publish.py"))["main"]
    (tmp_path / "both.yaml").write_text("""
seeds: 1
runs:
  - {benchmark: split-digits, method: er, tasks: 2, samples: 20}
  - {benchmark: split-digits, group: 'no task given', scenario: class, method: er, tasks: 2, samples: 20}
""")
    words, small = ["--suite", str(tmp_path / "both.yaml")], ["--tasks", "2", "--device", "cpu", "--seed", "0"]
    stores = {name: str(tmp_path / name) for name in ("class", "more", "rates", "archive")}
    run = ["run", "split-digits", "er", *small, "--out"]
    main([*run, stores["class"], "--samples", "20", "--scenario", "class"])
    assert publish([stores["archive"], *words, stores["class"]]) == 0
    assert [len(line["runs"]) for line in read_record(Path(stores["archive"]))["lines"]] == [0, 1]
    main([*run, stores["more"], "--samples", "30"])
    for rate in ("0.1", "0.2"):
        main([*run, stores["rates"], "--samples", "20", "--set", f"lr={rate}"])
    before = (tmp_path / "archive" / "suite.yaml").read_bytes()
    for store, said in (
        ("more", "is not of the archive's line split-digits, er: they differ in samples (30; there 20)"),
        (
            "rates",
            "they differ in hyper-parameters, of which the store has several; publish it by itself, with --label NAME",
        ),
    ):
        capsys.readouterr()
        assert publish([stores["archive"], stores[store]]) == 2
        assert said in capsys.readouterr().err
        assert (tmp_path / "archive" / "suite.yaml").read_bytes() == before
    for wrong in (tmp_path, tmp_path / "both.yaml", tmp_path / "archive" / "runs.jsonl"):
        assert publish([str(tmp_path / "trials.jsonl"), str(wrong)]) == 2
        assert f"{wrong} is not a file of what `bcl tune --json` prints" in capsys.readouterr().err


def test_a_run_becomes_the_line_of_its_values_where_several_have_its_name(tmp_path: Path) -> None:
    publish = runpy.run_path(str(ROOT / "bench" / "publish.py"))
    archive, store = tmp_path / "archive", tmp_path / "store"
    (tmp_path / "steps.yaml").write_text(
        f"axis: repeats\nruns: [{{{DIGITS}, method: er}}, {{{DIGITS}, method: er, set: {{repeats: 2}}}}]"
    )
    publish["begin"](archive, str(tmp_path / "steps.yaml"))
    words = ["run", "split-digits", "er", "--tasks", "2", "--samples", "20", "--device", "cpu", "--seed", "0"]
    main([*words, "--set", "repeats=2", "--out", str(store)])
    assert publish["publish"](archive, store) == 1
    assert [(line["set"], len(line["runs"])) for line in read_record(archive)["lines"]] == [
        ({}, 0),
        ({"repeats": 2}, 1),
    ]


def test_a_run_that_knows_no_younger_hyper_parameter_had_its_default() -> None:
    alike = runpy.run_path(str(ROOT / "bench" / "publish.py"))["_alike"]
    older, plain, adjusted = (
        {"method": "er", "config": {"seed": seed, "net": "mlp", "hyper": {"lr": 0.1} | more}}
        for seed, more in enumerate(({}, {"logit_adjustment": 0.0}, {"logit_adjustment": 1.0}))
    )
    assert alike(older, plain)
    assert not alike(older, adjusted)
    assert not alike({**older, "config": {**older["config"], "net": "linear"}}, plain)


DIGITS = "benchmark: split-digits, tasks: 2, samples: 20"


def digits_store(place: Path, *blocks: str, axis: str = "memory", only: str = "") -> Path:
    """A store of a suite whose runs have one seed, where a block does not say so; the suite is the file PLACE.yaml."""
    runs = "".join(f"  - {{{DIGITS}, {block}}}\n" for block in blocks)
    place.with_suffix(".yaml").write_text(f"axis: '{axis}'\nseeds: 1\nruns:\n{runs}")
    words = ["suite", "run", str(place.with_suffix(".yaml")), "--device", "cpu", "--out", str(place)]
    assert main([*words, "--methods", only] if only else words) == 0
    return place


def points(archive: Path) -> dict[tuple[str, int], list[tuple[int, int]]]:
    """Of every line its label and memory: the seed and the memory of its runs."""
    return {
        (row.label.partition(" (")[0], row.at): [(run["seed"], run["config"]["memory"]) for run in row.runs]
        for row in read_study(archive).rows
    }


def test_an_archive_is_put_together_along_an_axis(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    publish = runpy.run_path(str(ROOT / "bench" / "publish.py"))["main"]
    archive, table, steps = tmp_path / "archive", tmp_path / "table", "method: bcl-single, set: {inner_steps: 2}"
    few = digits_store(tmp_path / "few", "memory: 2, method: er", f"memory: 2, {steps}")
    rest = digits_store(tmp_path / "rest", f"memory: 4, {steps}")
    blocks = ", ".join(f"{{{DIGITS}, memory: [2, 4], {block}}}" for block in ("method: er", steps))
    (tmp_path / "figure.yaml").write_text(f"axis: memory\nruns: [{blocks}]")
    made = digits_store(tmp_path / "made", "memory: 4, methods: [finetune, er, bcl-single]", axis="")
    main(["report", str(made), "--archive", str(table)])
    capsys.readouterr()
    assert publish([str(archive), "--suite", str(tmp_path / "figure.yaml"), str(few)]) == 0
    assert points(archive) == {
        ("er", 2): [(0, 2)],
        ("er", 4): [],
        ("bcl-single", 2): [(0, 2)],
        ("bcl-single", 4): [],
    }
    assert publish([str(archive), "--known", str(table)]) == 0  # neither finetune nor bcl-single with one step
    assert publish([str(archive), "--suite", str(tmp_path / "figure.yaml"), str(rest)]) == 0
    assert capsys.readouterr().out == f"{few}: 2 runs\n{table}: 1 runs\n{rest}: 1 runs\n"
    assert points(archive) == {
        ("er", 2): [(0, 2)],
        ("er", 4): [(0, 4)],
        ("bcl-single", 2): [(0, 2)],
        ("bcl-single", 4): [(0, 4)],
    }
    results, problems = find_results(archive)
    assert problems == []
    assert {run["config"]["hyper"]["inner_steps"] for run in results if run["method"] == "bcl-single"} == {2}
    assert [line["seeds"] for line in read_record(archive)["lines"]] == [5] * 4


def test_lines_of_a_suite_are_told_apart_by_their_settings(tmp_path: Path) -> None:
    publish = runpy.run_path(str(ROOT / "bench" / "publish.py"))["publish"]
    small, large = (digits_store(tmp_path / f"m{size}", f"memory: {size}, method: er") for size in (2, 4))
    archive = tmp_path / "archive"
    main(["report", str(small), "--archive", str(archive)])
    assert publish(archive, large) == 1
    assert points(archive) == {("er", 2): [(0, 2)], ("er", 4): [(0, 4)]}
    quick = digits_store(tmp_path / "quick", "memory: 4, method: er, set: {lr: 0.2}")
    assert publish(archive, quick) == 1  # two have its name: what is set tells it from both
    assert len(read_record(archive)["lines"]) == 3


def test_lines_of_a_store_that_differ_in_what_is_set_do_not_replace_each_other(tmp_path: Path) -> None:
    publish = runpy.run_path(str(ROOT / "bench" / "publish.py"))["publish"]
    archive, slow = tmp_path / "archive", "memory: 2, method: er, set: {lr: 0.05}"
    main(["report", str(digits_store(tmp_path / "one", slow)), "--archive", str(archive)])
    both = digits_store(tmp_path / "both", "memory: 2, method: er, set: {lr: 0.2}", f"{slow}, seeds: 2")
    assert publish(archive, both) == 3
    lines = read_record(archive)["lines"]
    assert [(line["set"], len(line["runs"])) for line in lines] == [({"lr": 0.05}, 2), ({"lr": 0.2}, 1)]


def test_what_an_archive_knows_has_the_same_values_set(tmp_path: Path) -> None:
    script = runpy.run_path(str(ROOT / "bench" / "publish.py"))
    archive, store = tmp_path / "archive", digits_store(tmp_path / "store", "memory: 2, method: er, set: {lr: 0.2}")
    (tmp_path / "plain.yaml").write_text(f"axis: memory\nruns: [{{{DIGITS}, memory: 2, method: er}}]")
    script["begin"](archive, str(tmp_path / "plain.yaml"))
    assert script["publish"](archive, store, known=True) == 0
    assert [path.name for path in archive.iterdir()] == ["suite.yaml"]  # an empty archive could not be read
    assert script["publish"](archive, store) == 1  # the line that is alone with its name has other values now
    assert points(archive) == {("er", 2): [(0, 2)]}
    assert [line["set"] for line in read_record(archive)["lines"]] == [{"lr": 0.2}]


def test_runs_that_are_not_there_leave_the_record(tmp_path: Path) -> None:
    publish = runpy.run_path(str(ROOT / "bench" / "publish.py"))["publish"]
    store = digits_store(tmp_path / "store", "memory: 2, methods: [er, finetune]", only="er")
    other = digits_store(tmp_path / "other", "memory: 4, method: er")
    archive = tmp_path / "archive"
    main(["report", str(store), "--archive", str(archive)])
    assert publish(archive, other) == 1
    assert [len(line["runs"]) for line in read_record(archive)["lines"]] == [1, 0, 1]


def test_a_mistake_in_publishing_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    publish = runpy.run_path(str(ROOT / "bench" / "publish.py"))["main"]
    archive, nothing = str(tmp_path / "archive"), str(tmp_path / "nothing")
    first, second = tmp_path / "first.yaml", tmp_path / "second.yaml"
    for file in (first, second):
        file.write_text(f"runs: [{{{DIGITS}, method: er}}]")
    for words, said in (
        ([archive, nothing], "it is not the archive of a suite; --suite NAME begins one"),
        ([archive, "--suite", "paper/figure3", nothing], "unknown suite 'paper/figure3'; did you mean paper/figure2"),
        ([archive, "--suite", str(first), nothing], "nothing is not a directory"),
        ([archive, "--suite", str(second), nothing], "archive is the archive of first, not of second"),
    ):
        assert publish(words) == 2
        error = capsys.readouterr().err
        assert said in error
        assert error.count("\n") == 1


def test_a_figure_is_a_table_of_methods_and_memories(tmp_path: Path) -> None:
    figure = REPRODUCTION["figure"]
    assert figure(tmp_path / "figure2") == {}  # not run yet
    blocks = ["memory: 4, method: er, seeds: 5", "memory: 2, method: er, seeds: 2", "memory: 4, method: gem"]
    store = digits_store(
        tmp_path / "figure2", *blocks, "memory: 8, method: mer", "memory: 2, method: mer", only="er,gem"
    )
    rows = {
        (row.method, row.at): REPRODUCTION["mean_std"](row.measure("acc"), len(row.runs))
        for row in read_study(store).rows
    }
    assert figure(store) == {
        "figure2 split-digits": "| method | 2 | 4 |\n|---|---|---|\n"
        f"| er | {rows['er', 2]} (of 2 seeds), fp32 | {rows['er', 4]}, fp32 |\n"
        f"| gem | – | {rows['gem', 4]} (of 1 seed), fp32 |\n"
    }
    assert " ± " in rows["er", 4]
    assert figure(digits_store(tmp_path / "point", "memory: 2, method: er")) == {}  # a point is no curve


def test_who_was_tuned_on_all_tasks_stands_for_a_method() -> None:
    rival = REPRODUCTION["rival"]
    rows = {"er": 1, "er, rate 0.03": 2, "er, tuned on seventeen tasks": 3, "mer, tuned": 4, "mer": 5}
    assert rival(rows, "er") == ("er*", 3)
    assert rival(rows, "mer") == ("mer", 5)
    assert rival(rows, "kdr") == ("kdr", None)


def test_trials_are_put_into_what_is_published(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    publish = runpy.run_path(str(ROOT / "bench" / "publish.py"))["publish_trials"]
    (tmp_path / "grid.yaml").write_text("lr: [0.1, 0.2]")
    words = ["tune", "permuted-digits", "er", "--grid", str(tmp_path / "grid.yaml"), "--trials", "2", "--seeds", "1"]
    words += ["--tasks", "2", "--device", "cpu", "--out", str(tmp_path), "--save", str(tmp_path / "h.yaml"), "--json"]
    main(words)
    (tmp_path / "search.json").write_text(capsys.readouterr().out)
    archive = tmp_path / "trials.jsonl"
    archive.write_text('{"method": "finetune"}\n')
    for _ in range(2):  # what is there already stays one line
        assert publish(archive, tmp_path / "search.json") == 2
    first, *others = map(json.loads, archive.read_text(encoding="utf-8").splitlines())
    assert first == {"method": "finetune"}
    assert sorted(trial["values"]["lr"] for trial in others) == [0.1, 0.2]
    assert all(trial["tasks"] == 2 and trial["seeds"] == 1 and trial["accs"] == [trial["acc"]] for trial in others)
