"""Test-then-train: every mini-batch is answered before it is learnt, and nothing else changes."""

import json

import pytest
import torch
from tiny import same_state, state

import bcl
from bcl.cli import main
from bcl.engine import Interrupted, Loop, Member, Position
from bcl.errors import DamagedFileError
from bcl.runs.result import read_result, sealed

METHODS = ("er", "icarl", "bcl-mean")


def make(name, samples=75):
    stream = bcl.benchmark("split-digits").stream(seed=1, scenario="class", tasks=3, samples=samples)
    return bcl.method(name)(bcl.build("mlp", stream.setting), stream.setting), stream


@pytest.mark.parametrize("name", METHODS)
def test_every_batch_is_answered_before_it_is_learnt(name):
    learner, stream = make(name)
    result = bcl.run(learner, stream, prequential=True)
    by_hand, stream = make(name)
    wanted = []
    for t in range(3):
        for x, y, _ in stream.batches(t):
            by_hand.enter(t)
            right = (by_hand.predict(x, t).argmax(1) == torch.as_tensor(y)).sum()
            wanted.append([len(y), int(right)])
            by_hand.observe(x, y, t)
        by_hand.end_task(t)
    assert result.windows == wanted  # so short a stream has a window for every step
    assert result.prequential == pytest.approx(100 * sum(r for _, r in wanted) / 225)
    assert same_state(state(learner), state(by_hand))


@pytest.mark.parametrize("name", METHODS)
def test_what_is_learnt_is_the_same_as_without(name):
    (with_, stream), (without, _) = make(name), make(name)
    one, other = bcl.run(with_, stream, prequential=True), bcl.run(without, stream)
    assert one.accuracy_matrix == other.accuracy_matrix
    assert same_state(state(with_), state(without))
    assert (other.prequential, other.windows) == (None, [])


def test_long_streams_have_a_hundred_windows_and_lose_no_sample():
    stream = bcl.benchmark("permuted-digits").stream(seed=0, tasks=2, samples=1003)
    result = bcl.run(bcl.Finetune(bcl.build("mlp", stream.setting), stream.setting), stream, prequential=True)
    samples = [window[0] for window in result.windows]
    assert sum(samples) == 2006
    assert len(samples) == 68  # 202 steps, three to a window
    assert set(samples[:-2]) <= {30, 23}


def test_a_run_that_was_stopped_in_a_window_counts_on():
    stream = bcl.benchmark("permuted-digits").stream(seed=0, tasks=2, samples=1003)

    def member(position=None, save=lambda _: None):
        learner = bcl.Finetune(bcl.build("mlp", stream.setting), stream.setting)
        return Member(learner, stream, position or Position(), save, prequential=True)

    whole = member()
    Loop([whole], torch.device("cpu")).run()
    kept, calls = [], iter(range(1000))
    first = member(save=lambda at: kept.append(json.dumps(at.to_json())))
    with pytest.raises(Interrupted):
        Loop([first], torch.device("cpu"), stop=lambda: next(calls) == 50).run()
    second = member(Position.from_json(json.loads(kept[-1])))
    assert second.position.prequential[-1][0] == 20  # two steps of a window of three
    second.learner.load_state_dict(first.learner.state_dict())
    Loop([second], torch.device("cpu")).run()
    assert second.position.prequential == whole.position.prequential


def test_learners_side_by_side_are_counted_each_by_itself():
    stream = bcl.benchmark("split-digits").stream(seed=1, scenario="class", tasks=2, samples=40)
    members = [
        Member(bcl.Finetune(bcl.build("mlp", stream.setting), stream.setting, lr=lr), stream, prequential=asked)
        for lr, asked in ((0.1, True), (0.2, False), (0.01, True))
    ]
    Loop(members, torch.device("cpu")).run()
    alone = Member(bcl.Finetune(bcl.build("mlp", stream.setting), stream.setting, lr=0.01), stream, prequential=True)
    Loop([alone], torch.device("cpu")).run()
    assert members[1].position.prequential == []
    assert members[2].position.prequential == alone.position.prequential != members[0].position.prequential


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    where = tmp_path_factory.mktemp("runs")
    words = [
        "--seeds",
        "2",
        "--tasks",
        "2",
        "--samples",
        "60",
        "--out",
        str(where),
        "--device",
        "cpu",
        "--workers",
        "1",
    ]
    assert main(["run", "split-digits", "finetune", "er", "offline", *words, "--prequential", "--set", "lr=0.1"]) == 0
    return where


def test_runs_tables_and_page_show_it(store, capsys):
    assert main(["report", str(store), "-o", str(store / "page.html"), "--tables", str(store / "tables")]) == 0
    page = (store / "page.html").read_text()
    assert "Prequential accuracy</b>" in page
    assert "prequential ↑" in page
    for name in ("results", "seeds"):
        assert "prequential" in (store / "tables" / f"{name}.csv").read_text().splitlines()[0]
    capsys.readouterr()
    assert main(["report", str(store), "--json"]) == 0
    lines = {line["method"]: line for line in json.loads(capsys.readouterr().out)["summary"]}
    assert 0 < lines["er"]["prequential"]["mean"] < 100
    assert "prequential" not in lines["offline"]  # it sees its samples again and again


def test_it_is_part_of_a_runs_name_and_of_its_command(store, tmp_path, capsys):
    results = [read_result(path) for path in store.glob("*/result.json")]
    er = next(result for result in results if result["method"] == "er" and result["seed"] == 0)
    assert er["command"].endswith("--set share_rate=0.1")
    assert " --prequential " in er["command"]
    assert sum(samples for samples, _ in er["prequential_windows"]) == 120
    words = [
        "--seed",
        "0",
        "--tasks",
        "2",
        "--samples",
        "60",
        "--out",
        str(tmp_path),
        "--device",
        "cpu",
        "--set",
        "lr=0.1",
    ]
    assert main(["run", "split-digits", "er", "offline", *words, "--workers", "1"]) == 0
    printed = capsys.readouterr().out
    assert "prequential" not in printed
    plain = {r["method"]: r for r in (read_result(path) for path in tmp_path.glob("*/result.json"))}
    assert plain["er"]["id"] != er["id"]
    assert plain["er"]["weights_sha256"] == er["weights_sha256"]
    assert plain["offline"]["id"] in {result["id"] for result in results}  # nothing differs
    assert "prequential" not in plain["er"]


@pytest.mark.parametrize(
    "change", [{"prequential": 99.0}, {"prequential_windows": [[10, 11]]}, {"prequential_windows": []}]
)
def test_a_result_whose_windows_do_not_fit_is_refused(store, tmp_path, change):
    path = next(path for path in store.glob("er-*/result.json"))
    content = {**json.loads(path.read_text()), **change}
    where = tmp_path / path.parent.name
    where.mkdir()
    (where / "result.json").write_text(json.dumps(sealed({k: v for k, v in content.items() if k != "checksum"})))
    with pytest.raises(DamagedFileError, match="prequential"):
        read_result(where / "result.json")
