"""Many machines, as many raylets on this one: a node that dies in the middle changes no digit."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest

from bcl.runs.config import RunConfig
from bcl.runs.options import RunOptions
from bcl.runs.store import RunStore
from bcl.schedule import local

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'bcl[ray]'")

SAME = ("acc", "fm", "la", "accuracy_matrix", "before", "steps", "weights_sha256")


def plan() -> list[RunConfig]:
    """Two runs of some seconds, so that a node can die in the middle of one, and some shorter ones."""
    longer = [RunConfig.resolve("permuted-digits", "bcl-dual", seed, tasks=4) for seed in (0, 1)]
    return longer + [RunConfig.resolve("split-digits", m, 0, samples=60) for m in ("finetune", "er", "bcl-dual")]


def journal(root: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (root / "journal.jsonl").read_text().splitlines()]


def node_of(pid: int) -> int:
    """The raylet that started a worker."""
    stat = Path(f"/proc/{pid}/stat").read_text()
    return int(stat.rsplit(")", 1)[1].split()[1])


def test_a_node_that_dies_in_the_middle_changes_no_digit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    from ray.cluster_utils import Cluster

    from bcl.schedule import ray_cluster as ray_engine

    if not Path("/proc/self/stat").exists():
        pytest.skip("needs /proc to tell which node a worker belongs to")
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("RAY_worker_niceness", "0")  # beside other tests, a yielding worker would take minutes
    configs, store = plan(), RunStore(tmp_path / "ray")
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    try:
        second = cluster.add_node(num_cpus=1)
        raylet = second.all_processes["raylet"][0].process.pid
        struck: list[str] = []
        over = threading.Event()

        def strike() -> None:
            """Kill the second node as soon as a run on it has a checkpoint."""
            while not over.wait(0.05):
                if not (store.root / "journal.jsonl").exists():
                    continue
                for line in journal(store.root):
                    run = store.root / str(line["run"])
                    if not (run / "checkpoint.safetensors").exists() or (run / "result.json").exists():
                        continue
                    if os.path.exists(f"/proc/{line['pid']}") and node_of(int(str(line["pid"]))) == raylet:
                        cluster.remove_node(second, allow_graceful=False)
                        struck.append(run.name)
                        return

        thread = threading.Thread(target=strike, daemon=True)
        thread.start()
        results = ray_engine.run_all(configs, store, RunOptions(resume=True, save_every=0.1), address=cluster.address)
        over.set()
        thread.join()
        assert struck, "no run was under way on the second node"
    finally:
        ray.shutdown()
        cluster.shutdown()
    expected = local.run_all(configs, RunStore(tmp_path / "local"), workers=1)
    assert [r["id"] for r in results] == [config.id for config in configs]
    for got, wanted in zip(results, expected, strict=True):
        assert {key: got[key] for key in SAME} == {key: wanted[key] for key in SAME}
    events = [(str(line["run"]), line["event"]) for line in journal(store.root)]
    assert (struck[0], "resumed") in events, "it went on from its checkpoint"
    for config in configs:
        assert events.count((config.id, "finished")) == 1
        assert (store.directory(config) / "result.json").exists()
        assert not (store.directory(config) / "lock").exists()
    assert not list(store.root.glob(".shared-*"))


class Silent:
    """In the place of the actor that hears of progress."""

    def __init__(self) -> None:
        self.heard: list[tuple[int, int, int]] = []
        self.put = self

    def remote(self, *news: int) -> None:
        self.heard.append(news)  # type: ignore[arg-type]


def test_what_a_run_repeats_is_told_from_afar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from bcl.schedule import ray_cluster, ray_task

    monkeypatch.setattr(ray_task, "EVERY", 0.0)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "token").touch()  # the store is here, and not where another run of this may have left its result
    config, board = RunConfig.resolve("split-digits", "gdumb", 0, tasks=2, samples=20), Silent()
    ray_task.work(ray_task.Job(str(tmp_path), "token", str(tmp_path), {}, RunOptions()), [(7, config)], board)
    told = [news for news in board.heard if len(news) == 4]
    assert [news[:3] for news in told[:1]] == [(7, 2, 4)]
    there = ray_cluster.Board()
    there.put(*told[0])
    assert there.take() == {7: told[0][1:]}


def test_a_node_that_does_not_see_the_store_sends_its_results_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bcl.schedule import ray_task

    monkeypatch.setattr(ray_task.tempfile, "gettempdir", lambda: str(tmp_path / "node"))
    config = RunConfig.resolve("split-digits", "er", 0, samples=40)
    job = ray_task.Job(
        str(tmp_path / "nowhere"), ".shared-x", str(tmp_path), {"BCL_TEST": "1"}, RunOptions(resume=True)
    )
    monkeypatch.setenv("BCL_TEST", "0")
    monkeypatch.chdir(tmp_path)
    board = Silent()
    ((index, kind, (result, files)),) = ray_task.work(job, [(7, config)], board)
    assert (index, kind) == (7, "done")
    assert not (tmp_path / "nowhere").exists()
    assert board.heard[0][0] == 7
    here = RunStore(tmp_path / "here")
    here.prepare()
    here.adopt(config, {**files, "../evil": b"x"})
    assert here.result(config) == result
    assert sorted(path.name for path in here.directory(config).iterdir()) == sorted(files)
    assert not (tmp_path / "evil").exists()
