"""The protocol: every task once, in small batches, and after every task the accuracy on all of them."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field

import torch

from bcl.engine.accuracies import Accuracies
from bcl.engine.capture import WARM_UP, Capture, NotCapturable
from bcl.engine.evaluate import TestSets
from bcl.engine.feed import Feed
from bcl.engine.position import Interrupted, Position
from bcl.errors import InputError, first_line
from bcl.learners.base import Learner
from bcl.nets import compile_ahead, couples_samples
from bcl.streams import Stream

AFTER_A_TASK = 5.0  # seconds since the last checkpoint that make another one worth while


@dataclass
class Member:
    """A learner, its stream, and where it stands in it. `save` keeps both."""

    learner: Learner
    stream: Stream
    position: Position = field(default_factory=Position)
    save: Callable[[Position], None] = lambda _: None

    @property
    def lengths(self) -> list[int]:
        """How many samples are learnt in one go: those of every task; jointly, all of them in all epochs."""
        lengths = [self.stream.train_size(t) for t in range(len(self.stream))]
        return [sum(lengths) * int(self.learner.hyper.epochs)] if self.learner.joint else lengths

    @property
    def total_steps(self) -> int:
        return sum(-(-n // self.stream.setting.batch_size) for n in self.lengths)


def check_last_batch(member: Member) -> None:
    """Refuse, before anything is learnt, what would fail at the end of a task: some networks (with a batch norm over
    nothing but the samples) cannot learn from a single one."""
    net, setting = member.learner.net, member.stream.setting
    alone = next((n for n in member.lengths if n % setting.batch_size == 1), None)
    if alone is None or not couples_samples(net):
        return
    weight = next(net.parameters())
    try:
        with torch.no_grad():
            deepcopy(net).train()(torch.zeros(1, *setting.shape, device=weight.device, dtype=weight.dtype))
    except ValueError as error:
        remedy = "choose other --samples" if member.learner.joint else f"leave it out: --samples {alone - 1}"
        raise InputError(
            f"{type(net).__name__} cannot learn from one sample alone ({first_line(error)}), which {alone} samples in "
            f"mini-batches of {setting.batch_size} end with; {remedy}"
        ) from error
    except Exception:  # it cannot be copied, or not be asked like this: the run will show what it can do
        return


class Loop:
    """Takes learners through their streams side by side, from where they stand to the end.

    On a GPU the steps of all members are captured as one graph, and so are their evaluations; elsewhere there is
    usually one member, and it runs eagerly. Members must stand at the same place of streams with the same number of
    tasks; those that share a stream share its data.

    save_every: seconds between checkpoints; after a task AFTER_A_TASK are enough.
    report:     called with (member, steps done, steps in all) a few times per second.
    stop:       asked before every step; when it answers True all are saved and Interrupted is raised.
    captured:   whether steps and evaluations are captured; by default, on a GPU.

    >>> import bcl
    >>> stream = bcl.benchmark("split-digits").stream(seed=0, tasks=2, samples=50)
    >>> member = Member(bcl.ER(bcl.build("mlp", stream.setting), stream.setting), stream)
    >>> Loop([member], torch.device("cpu")).run()
    >>> member.position.steps, [len(row) for row in member.position.matrix]
    (10, [2, 2])
    """

    def __init__(
        self,
        members: Sequence[Member],
        device: torch.device,
        *,
        save_every: float = 60.0,
        report: Callable[[int, int, int], None] = lambda *_: None,
        stop: Callable[[], bool] = lambda: False,
        captured: bool | None = None,
    ):
        places = {(len(m.stream), m.learner.joint, m.position.task, m.position.batch) for m in members}
        if len(places) != 1:
            raise InputError("learners run side by side from the same place of streams of the same length alone")
        self.members, self.device = list(members), device
        self.save_every, self.report, self.stop = save_every, report, stop
        self.captured = device.type == "cuda" if captured is None else captured
        if self.captured:
            torch.backends.cudnn.benchmark = True  # shapes are few and fixed: the quickest convolution is worth finding
        for member in members:
            check_last_batch(member)
        self.totals = [member.total_steps for member in members]
        streams = {id(m.stream): m.stream for m in members}
        tests = {key: TestSets(stream, device) for key, stream in streams.items()}
        its_tests = [tests[id(m.stream)] for m in members]
        self.accuracies = Accuracies([m.learner for m in members], its_tests, self.captured)

    def run(self) -> None:
        self._since = self._saved = self._reported = time.monotonic()
        for m in self.members:
            compile_ahead(m.learner.net, m.stream.setting.shape)
        if not all(m.position.before for m in self.members):
            for m, row in zip(self.members, self.accuracies(), strict=True):
                m.position.before = m.position.before or row
        first = self.members[0]
        if first.learner.joint:
            if not first.position.matrix:
                self._joint()
        else:
            for t in range(first.position.task, len(first.stream)):
                self._task(t)
        for i, total in enumerate(self.totals):
            self.report(i, total, total)

    def _task(self, t: int) -> None:
        kept: dict[int, Feed] = {}
        feeds = []
        for m in self.members:
            if id(m.stream) not in kept:
                x, y = m.learner.check(*m.stream.train(t), t)
                kept[id(m.stream)] = Feed(x, y, t, m.stream.setting.batch_size)
            shared = kept[id(m.stream)]
            feeds.append(Feed(shared.x, shared.y, t, shared.batch_size))
            m.learner.enter(t)
        self._steps(feeds)
        for m in self.members:
            m.learner.end_task(t)
        self._measure(t + 1)

    def _joint(self) -> None:
        """The offline bound: mixed batches of all tasks, several epochs, measured once at the end."""
        feeds = []
        for m in self.members:
            parts = m.stream.joint(m.learner.hyper.epochs)
            x, y, tasks, order = (torch.from_numpy(part).to(self.device) for part in parts)
            feeds.append(Feed(x, y, tasks, m.stream.setting.batch_size, order))
            m.learner.begin_joint()
        self._steps(feeds)
        self._measure(len(self.members[0].stream))

    def _steps(self, feeds: list[Feed]) -> None:
        try:
            self._learn(feeds)
        except ValueError as error:  # torch's, of a batch norm over nothing but the samples
            if "more than 1 value per channel" not in str(error):
                raise
            raise InputError(
                f"the network cannot learn from one sample alone ({first_line(error)}), and one is replayed: "
                "use a larger --memory or replay_batch, or a network without such a batch norm"
            ) from error

    def _learn(self, feeds: list[Feed]) -> None:
        start = self.members[0].position.batch
        capture: Capture | None = None
        full = min(feed.full_batches for feed in feeds)
        for batch in range(start, max(feed.batches for feed in feeds)):
            self._tick(batch)
            if self.captured and capture is None and start + WARM_UP <= batch < full - 1:
                capture = self._capture(feeds, batch)
            if capture is not None and batch < full:
                capture.replay()
            else:
                for m, feed in zip(self.members, feeds, strict=True):
                    if batch < feed.batches:
                        m.learner.step(*feed.batch(batch))
            for m, feed in zip(self.members, feeds, strict=True):
                m.position.steps += batch < feed.batches

    def _capture(self, feeds: list[Feed], batch: int) -> Capture | None:
        for feed in feeds:
            feed.seek(batch)
        try:
            return Capture([m.learner for m in self.members], feeds)
        except (NotCapturable, torch.cuda.OutOfMemoryError) as reason:
            if len(self.members) > 1 and isinstance(reason, torch.cuda.OutOfMemoryError):
                raise  # fewer members may fit
            self.captured = False
            logging.getLogger("bcl").warning(f"steps are not captured, and slower, because of {first_line(reason)}")
            return None

    def _measure(self, next_task: int) -> None:
        rows = self.accuracies()
        self._clock()
        for m, row in zip(self.members, rows, strict=True):
            at = m.position
            at.matrix.append(row)
            at.task, at.batch = next_task, 0
            entry = {"after_task": next_task, "steps": at.steps, "seconds": round(at.seconds, 3), "accuracy": row}
            at.log.append(entry)
        self._save_if(min(self.save_every, AFTER_A_TASK))

    def _tick(self, batch: int) -> None:
        """Between two steps: save, report, or stop."""
        for m in self.members:
            m.position.batch = batch
        stopping = self.stop()
        self._save_if(0.0 if stopping else self.save_every)
        if stopping:
            raise Interrupted
        now = time.monotonic()
        if now - self._reported >= 0.2:
            for i, m in enumerate(self.members):
                self.report(i, m.position.steps, self.totals[i])
            self._reported = now

    def _save_if(self, seconds: float) -> None:
        """Save all members if the last time was so many seconds ago."""
        now = time.monotonic()
        if now - self._saved >= seconds:
            self._clock()
            for m in self.members:
                m.save(m.position)
            self._saved = now

    def _clock(self) -> None:
        """Add the time since the last look at the clock: each member bears its share."""
        now = time.monotonic()
        for m in self.members:
            m.position.seconds += (now - self._since) / len(self.members)
        self._since = now
