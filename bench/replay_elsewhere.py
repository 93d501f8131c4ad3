"""Experience replay as other libraries do it, for `bench/observe_overhead.py`: what is installed is measured.

Every function gives steps by name, or says why it gives none. Each library keeps its own memory, if it has one.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

Step = Callable[[Tensor, Tensor], object]
NAMES = [f"pixel{i}" for i in range(784)]


def usual(net: nn.Module, slots: int, replay: int, lr: float) -> dict[str, Step]:
    """No library: the bare loop with `backward` and torch's optimiser, and one mean over all samples."""
    optimizer, seen = torch.optim.SGD(net.parameters(), lr=lr), 0
    memory_x, memory_y = torch.zeros(slots, 784), torch.zeros(slots, dtype=torch.long)

    def step(x: Tensor, y: Tensor) -> None:
        nonlocal seen
        drawn = torch.randperm(min(seen, slots))[:replay]
        optimizer.zero_grad()
        cross_entropy(net(torch.cat([x, memory_x[drawn]])), torch.cat([y, memory_y[drawn]])).backward()
        optimizer.step()
        for i in range(len(y)):
            slot = seen if seen < slots else int(torch.randint(seen + 1, ()))
            if slot < slots:
                memory_x[slot], memory_y[slot] = x[i], y[i]
            seen += 1

    return {"bare loop with torch.optim.SGD": step}


def capymoa(net: nn.Module, slots: int, replay: int, lr: float) -> dict[str, Step]:
    """Its strategy replays as many as arrive; here its buffer gives more of them to the same learner."""
    try:
        from capymoa.classifier import Finetune
        from capymoa.ocl.strategy import ExperienceReplay
        from capymoa.stream import Schema
    except ImportError as error:
        print(f"CapyMOA is not measured: {error}")
        return {}
    kinds = {"kind": [str(c) for c in range(10)]}
    schema = Schema.from_custom(features=[*NAMES, "kind"], target="kind", categories=kinds)
    learner = Finetune(schema, net, optimizer=torch.optim.SGD(net.parameters(), lr=lr))
    strategy = ExperienceReplay(learner, buffer_size=slots)

    def step(x: Tensor, y: Tensor) -> None:
        strategy._buffer.update(x, y)
        again_x, again_y = strategy._buffer.sample(replay)
        learner.batch_train(torch.cat((x, again_x)), torch.cat((y, again_y)))

    return {"CapyMOA, its ER with a larger draw": step}


def deep_river(net: nn.Module, slots: int, replay: int, lr: float) -> dict[str, Step]:
    """Its classifier learns a data frame in one step; it has no memory: a draw of ours is joined to the frame."""
    try:
        import pandas
        from deep_river.classification import Classifier
    except ImportError as error:
        print(f"deep-river is not measured: {error}")
        return {}
    model = Classifier(net, loss_fn="cross_entropy", optimizer_fn="sgd", lr=lr, is_feature_incremental=False)
    kept = torch.rand(slots, 784), torch.randint(0, 10, (slots,))

    def step(x: Tensor, y: Tensor) -> None:
        drawn = torch.randperm(slots)[:replay]
        frame = pandas.DataFrame(torch.cat([x, kept[0][drawn]]).numpy(), columns=NAMES)
        model.learn_many(frame, pandas.Series(torch.cat([y, kept[1][drawn]]).numpy()))

    return {"deep-river learn_many, batch and draw": step}


def avalanche(net: nn.Module, slots: int, replay: int, lr: float, batches: int) -> dict[str, Step]:
    """Its Replay strategy, which learns whole experiences: a step is the training on one of so many mini-batches. It
    replays earlier ones."""
    try:
        from avalanche.benchmarks import tensors_benchmark
        from avalanche.training.plugins import EvaluationPlugin
        from avalanche.training.supervised import Replay
    except (ImportError, RuntimeError) as error:  # the second: torchvision's, where it does not fit torch
        print(f"Avalanche is not measured: {error}")
        return {}
    warnings.filterwarnings("ignore", module="avalanche")
    optimizer = torch.optim.SGD(net.parameters(), lr=lr)
    how = {"mem_size": slots, "train_mb_size": 10, "evaluator": EvaluationPlugin()}
    strategy = Replay(net, optimizer, nn.CrossEntropyLoss(), **how)
    for plugin in strategy.plugins:
        if hasattr(plugin, "batch_size_mem"):
            plugin.batch_size_mem = replay

    def step(x: Tensor, y: Tensor) -> None:
        given = (x.repeat(batches, 1), y.repeat(batches))
        tensors = {"train_tensors": [given], "test_tensors": [given], "task_labels": [0]}
        strategy.train(tensors_benchmark(**tensors, complete_test_set_only=True).train_stream[0])

    for _ in range(3):  # until there is something to replay
        step(torch.rand(10, 784), torch.randint(0, 10, (10,)))
    return {"Avalanche, its Replay strategy": step}
