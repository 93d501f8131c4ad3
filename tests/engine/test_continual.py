"""Evaluation within tasks: every few mini-batches, on the tasks seen so far, and nothing else changes."""

import json

import pytest
import torch
from tiny import same_state, state

import bcl
from bcl.cli import main
from bcl.engine import Interrupted, Loop, Member, Position, TestSets, continual, evaluate
from bcl.errors import DamagedFileError, InputError
from bcl.runs.result import read_result, sealed

CPU = torch.device("cpu")


def make(name, scenario="class", benchmark="split-digits", samples=75):
    stream = bcl.benchmark(benchmark).stream(seed=1, scenario=scenario, tasks=3, samples=samples)
    return bcl.method(name)(bcl.build("mlp", stream.setting), stream.setting), stream


@pytest.mark.parametrize("name", ["er", "icarl", "bcl-mean"])
def test_tasks_seen_so_far_are_evaluated_every_few_batches_and_at_the_end(name):
    learner, stream = make(name)
    result = bcl.run(learner, stream, evaluate_every=3)
    by_hand, stream = make(name)
    wanted, tests, steps = [], TestSets(stream, CPU), 0
    for t in range(3):
        batches = list(stream.batches(t))
        for number, (x, y, _) in enumerate(batches, 1):
            by_hand.observe(x, y, t)
            steps += 1
            if number in (3, 6):  # of eight
                wanted.append({"steps": steps, "accuracy": evaluate(by_hand, tests)[: t + 1]})
        by_hand.end_task(t)
        wanted.append({"steps": steps, "accuracy": evaluate(by_hand, tests)[: t + 1]})
    assert result.evaluations == wanted
    assert [row[: t + 1] for t, row in enumerate(result.accuracy_matrix)] == [one["accuracy"] for one in wanted[2::3]]
    assert same_state(state(learner), state(by_hand))


@pytest.mark.parametrize(
    ("name", "scenario"),
    [("er", "domain"), ("gdumb", "class"), ("scr", "task"), ("mose", "class"), ("bcl-dual", "task"), ("kdr", "class")],
)
def test_what_is_learnt_is_the_same_as_without(name, scenario):
    benchmark = "permuted-digits" if scenario == "domain" else "split-digits"
    (with_, stream), (without, _) = (make(name, scenario, benchmark, 30) for _ in range(2))
    one, other = bcl.run(with_, stream, evaluate_every=1), bcl.run(without, stream)
    assert one.accuracy_matrix == other.accuracy_matrix
    assert same_state(state(with_), state(without))
    assert len(one.evaluations) == 9
    assert (other.evaluations, other.continual) == ([], {})


def test_large_test_sets_are_measured_on_some_samples(monkeypatch):
    monkeypatch.setattr(continual, "MOST", 10)
    learner, stream = make("er")
    result = bcl.run(learner, stream, evaluate_every=4)
    few = stream.with_tests(10)
    assert [len(few.test(t)[1]) for t in range(3)] == [10, 10, 10]
    assert result.evaluations[-1]["accuracy"] == evaluate(learner, TestSets(few, CPU))
    assert result.accuracy_matrix[-1] == evaluate(learner, TestSets(stream, CPU)) != result.evaluations[-1]["accuracy"]


def test_some_samples_lie_at_even_distances():
    stream = bcl.benchmark("split-digits?drift=90").stream(seed=0, tasks=2)
    size = len(stream.plans[0].test)
    few = stream.with_tests(size // 3)
    assert few.plans[0].test.tolist() == stream.plans[0].test[: size // 3 * 3 : 3].tolist()
    assert len(few.plans[0].test_turn) == size // 3
    assert (few.test(0)[0] == stream.test(0)[0][: size // 3 * 3 : 3]).all()
    assert stream.with_tests(size) is stream


def test_a_run_that_was_stopped_in_a_task_measures_on():
    _, stream = make("er")

    def member(position=None, save=lambda _: None):
        learner = bcl.ER(bcl.build("mlp", stream.setting), stream.setting)
        return Member(learner, stream, position or Position(), save, evaluate_every=3)

    whole = member()
    Loop([whole], CPU).run()
    for stop in (3, 12, 16):  # before the fourth batch, in the second task, and where it has just ended
        kept, calls = [], iter(range(1000))
        first = member(save=lambda at, kept=kept: kept.append(json.dumps(at.to_json())))
        with pytest.raises(Interrupted):
            Loop([first], CPU, stop=lambda calls=calls, stop=stop: next(calls) == stop).run()
        second = member(Position.from_json(json.loads(kept[-1])))
        second.learner.load_state_dict(first.learner.state_dict())
        Loop([second], CPU).run()
        assert second.position.evaluations == whole.position.evaluations


def test_learners_side_by_side_are_measured_each_when_it_asks():
    _, stream = make("finetune", samples=40)

    def member(every):
        return Member(bcl.Finetune(bcl.build("mlp", stream.setting), stream.setting), stream, evaluate_every=every)

    members = [member(every) for every in (1, 0, 3)]
    Loop(members, CPU).run()
    alone = member(3)
    Loop([alone], CPU).run()
    assert [len(m.position.evaluations) for m in members] == [12, 0, 6]
    assert members[2].position.evaluations == alone.position.evaluations


@pytest.mark.parametrize("every", [-1, 2.5, True, "3"])
def test_what_is_no_number_of_batches_is_refused(every):
    with pytest.raises(InputError, match="evaluate_every"):
        bcl.run(*make("er"), evaluate_every=every)


# ---- runs, tables and the page -------------------------------------------------------------------------------------

WORDS = ["--tasks", "3", "--samples", "40", "--device", "cpu", "--workers", "1", "--set", "lr=0.1"]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    where = tmp_path_factory.mktemp("runs")
    words = ["--seeds", "2", *WORDS, "--out", str(where), "--evaluate-every", "2"]
    assert main(["run", "split-digits", "finetune", "er", "offline", *words]) == 0
    return where


def test_runs_tables_and_page_show_it(store, capsys):
    assert main(["run", "split-digits", "finetune", "er", "--seeds", "2", *WORDS, "--out", str(store),
                 "--evaluate-every", "2"]) == 0  # fmt: skip
    assert "WC-ACC" in capsys.readouterr().out
    assert main(["report", str(store), "-o", str(store / "page.html"), "--tables", str(store / "tables")]) == 0
    page = (store / "page.html").read_text()
    assert "Accuracy within tasks</b>" in page
    assert "min-ACC ↑" in page
    lines = (store / "tables" / "within-tasks.csv").read_text().splitlines()
    assert {"aaa_mean", "min_acc_mean", "wc_acc_mean", "stability_gap_mean"} <= {*lines[0].split(",")}
    assert len(lines) == 3  # the bound has none
    capsys.readouterr()
    assert main(["report", str(store), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    summary = {line["method"]: line for line in found["summary"]}
    assert 0 < summary["er"]["wc_acc"]["mean"] < 100
    assert "wc_acc" not in summary["offline"]
    run = next(run for run in found["runs"] if run["method"] == "er")
    assert [one["steps"] for one in run["evaluations"]] == [2, 4, 6, 8, 10, 12]
    table = (store / run["id"] / "evaluations.csv").read_text().splitlines()
    assert table[0] == "steps,task_1,task_2,task_3"
    assert table[2] == f"4,{run['evaluations'][1]['accuracy'][0]},,"


def test_it_is_part_of_a_runs_name_and_of_its_command(store, tmp_path):
    results = [read_result(path) for path in store.glob("*/result.json")]
    er = next(result for result in results if result["method"] == "er" and result["seed"] == 0)
    assert " --evaluate-every 2 " in er["command"]
    assert main(["run", "split-digits", "er", "offline", "--seed", "0", *WORDS, "--out", str(tmp_path)]) == 0
    plain = {r["method"]: r for r in (read_result(path) for path in tmp_path.glob("*/result.json"))}
    assert plain["er"]["id"] != er["id"]
    assert plain["er"]["weights_sha256"] == er["weights_sha256"]
    assert plain["offline"]["id"] in {result["id"] for result in results}  # nothing differs
    assert "evaluations" not in plain["er"]


def _without_the_first(evaluations):
    return [{**evaluations[0], "accuracy": [1.0, 2.0]}, *evaluations[1:]]


@pytest.mark.parametrize(
    "change",
    [
        lambda e: {"wc_acc": 99.0},
        lambda e: {"evaluations": []},
        lambda e: {"evaluations": _without_the_first(e)},
        lambda e: {"evaluations": e[::-1]},
        lambda e: {"evaluations": [{**one, "accuracy": [101.0] * len(one["accuracy"])} for one in e]},
    ],
)
def test_a_result_whose_evaluations_do_not_fit_is_refused(store, tmp_path, change):
    path = next(path for path in store.glob("er-*/result.json"))
    content = json.loads(path.read_text())
    content |= change(content["evaluations"])
    where = tmp_path / path.parent.name
    where.mkdir()
    (where / "result.json").write_text(json.dumps(sealed({k: v for k, v in content.items() if k != "checksum"})))
    with pytest.raises(DamagedFileError, match=r"damaged \([^)]*evaluation"):
        read_result(where / "result.json")


@pytest.mark.parametrize("given", ["0", "-3", "many"])
def test_a_mistake_on_the_command_line_is_one_line(given, tmp_path, capsys):
    assert main(["run", "split-digits", "er", "--evaluate-every", given, "--out", str(tmp_path)]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert "evaluate" in line
