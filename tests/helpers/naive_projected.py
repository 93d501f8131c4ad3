"""GEM and A-GEM, transcribed slowly: gradients as vectors, the quadratic program by trying every set of bounds."""

import itertools

import torch
from naive import NaiveER, NaiveFinetune


class NaiveGEM(NaiveER):
    def begin(self, t):
        super().begin(t)
        self.begun.remove(t)
        self.begun.append(t)

    def step(self, batch, t):
        past = [self.vector(self.memory_loss(s)) for s in self.begun if s != t]
        g = self.vector(self.cross_entropy(batch, self.logits(batch)))
        if any(g @ g_k < 0 for g_k in past):
            v = self.solve(torch.stack(past, dim=1), g)
            g = sum((v_k * g_k for v_k, g_k in zip(v, past, strict=True)), g)
        self.descend(g)
        self.rings[t].add(batch)

    def memory_loss(self, s):
        """The mean loss over a task's memory; a batch has as many samples as the ring has slots."""
        items, size = self.rings[s].items, self.rings[s].size
        return self.cross_entropy(items, self.logits([items[i % len(items)] for i in range(size)])[: len(items)])

    def solve(self, g_past, g):
        """argmin ½ v'(G'G + ε)v + (G'g)'v over v >= γ: hold some v_k at γ, solve for the rest; the best of all ways."""
        t = g_past.shape[1]
        a, b = g_past.T @ g_past + self.h["ridge"] * torch.eye(t, dtype=g.dtype), g_past.T @ g
        best, lowest = None, torch.inf
        for held in itertools.product([False, True], repeat=t):
            v, free = torch.full_like(b, self.h["margin"]), [k for k in range(t) if not held[k]]
            if free:
                rest = b[free] + sum(a[free, k] * v[k] for k in range(t) if held[k])
                v[free] = torch.linalg.solve(a[free][:, free], -rest)
            value = v @ a @ v / 2 + b @ v
            if (v >= self.h["margin"]).all() and value < lowest:
                best, lowest = v, value
        return best

    def vector(self, loss):
        gradient = self.net.gradient(loss)
        return torch.cat([gradient[name].flatten() for name in self.net.parameters])

    def descend(self, vector):
        parts, start = {}, 0
        for name in self.net.parameters:
            value = self.net.value[name]
            parts[name] = vector[start : start + value.numel()].view(value.shape)
            start += value.numel()
        self.net.descend(parts, self.h["lr"])


class NaiveAGEM(NaiveGEM):
    begin = NaiveFinetune.begin

    def step(self, batch, t):
        others = [s for s in self.begun if s != t]
        if others:
            replay = self.draw(t, min(self.h["replay_batch"], len(others) * self.rings[t].size))
            reference = self.vector(self.cross_entropy(replay, self.logits(replay)))
        g = self.vector(self.cross_entropy(batch, self.logits(batch)))
        if others and g @ reference < 0:
            g = g - (g @ reference) / (reference @ reference) * reference
        self.descend(g)
        self.rings[t].add(batch)

    def draw(self, t, k):
        size = self.rings[0].size
        eligible = [s != t and place < len(ring.items) for s, ring in enumerate(self.rings) for place in range(size)]
        chosen = self.random.choose(torch.tensor(eligible), k).tolist()
        return [self.rings[slot // size].items[slot % size] for slot in chosen]
