"""Experience replay and BCL whose episodic memory is one reservoir over the stream, transcribed slowly."""

import torch
from naive import NaiveER
from naive_bcl import NaiveBCL
from naive_rivals import Interfered, NaiveERMIR, NaiveReservoir


class FromReservoir:
    """In place of a ring per task: one reservoir with all their slots. Earlier tasks alone are replayed."""

    def __init__(self, net, setting, **h):
        super().__init__(net, setting, **h)
        self.memory = NaiveReservoir(self.rings[0].size * len(self.rings), self.random)
        self.rings = []

    def keep(self, batch, t):
        self.memory.add(batch)

    def most(self):
        return self.memory.size

    def choose(self, t, k):
        """Where no other task has a sample left, all that is stored can be drawn."""
        items = self.memory.items
        others = [s.t != t for s in items]
        eligible = others if any(others) else [True for _ in items]
        empty = [False] * (self.memory.size - len(items))
        chosen = self.random.choose(torch.tensor(eligible + empty), k).tolist()
        return [items[slot] for slot in chosen], sum(others)


class ReservoirER(FromReservoir, NaiveER):
    pass


class ReservoirERMIR(FromReservoir, NaiveERMIR):
    pass


class ReservoirBCL(FromReservoir, NaiveBCL):
    def samples_of(self, s):
        return [sample for sample in self.memory.items if sample.t == s]

    def store_targets(self, s):
        if self.samples_of(s):
            super().store_targets(s)
        self.has_targets.add(s)


class ReservoirBCLMIR(Interfered, ReservoirBCL):
    def loss(self, batch, replay):
        return super().loss(batch, self.draw_interfered(batch, self.task, self.h["inner_lr"]) if replay else [])

    def draw_replay(self, t):
        return ["to be retrieved"]  # `loss` does, where the batch and the fast weights are known
