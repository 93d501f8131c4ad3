"""The rivals' equations, transcribed slowly. See naive.py."""

import copy

import torch
from naive import NaiveER, NaiveFinetune, Sample


class NaiveReservoir:
    """A uniform sample of the stream, sample by sample (Vitter's algorithm R)."""

    def __init__(self, size, random):
        self.size, self.random, self.items, self.seen = size, random, [], 0

    def add(self, samples):
        for sample, number in zip(samples, self.random.integers(len(samples)).tolist(), strict=True):
            if self.seen < self.size:
                self.items.append(sample)
            elif number % (self.seen + 1) < self.size:
                self.items[number % (self.seen + 1)] = sample
            self.seen += 1

    def draw(self, k):
        eligible = torch.tensor([i < len(self.items) for i in range(self.size)])
        chosen = self.random.choose(eligible, min(k, self.size)).tolist()
        return [self.items[i] for i in chosen] if self.items else []


def repeated(batch, k):
    """The current batch as a draw of k: what batch norm sees while nothing is stored."""
    return [batch[i % len(batch)] for i in range(k)]


class NaiveERACE(NaiveER):
    def step(self, batch, t):
        if not set(self.begun) - {t}:
            loss = self.cross_entropy(batch, self.logits(batch))
        else:
            replay = self.draw_replay(t)
            seen, logits = self.classes(t), self.forward(batch, replay)
            loss = 0.0
            for sample, z in zip(batch, logits[: len(batch)], strict=True):
                current = self.setting.classes[t] if self.h["current_classes"] == "task" else [s.y for s in batch]
                allowed = [c for c in seen if c in current]
                loss = loss + (torch.log(sum(torch.exp(z[c]) for c in allowed)) - z[sample.y]) / len(batch)
            loss = loss + self.cross_entropy(replay, logits[len(batch) :])
        self.net.descend(self.net.gradient(loss), self.h["lr"])
        self.rings[t].add(batch)

    def forward(self, batch, replay):
        if self.h["joint_forward"]:
            return self.logits(batch + replay)
        return self.logits(batch) + self.logits(replay)

    def draw_replay(self, t):
        if not self.h["replay_current"]:
            return super().draw_replay(t)
        size = self.rings[0].size
        eligible = [place < len(ring.items) for ring in self.rings for place in range(size)]
        chosen = self.random.choose(torch.tensor(eligible), min(self.h["replay_batch"], size)).tolist()
        return [self.rings[slot // size].items[slot % size] for slot in chosen]


class NaiveDER(NaiveFinetune):
    def __init__(self, net, setting, **h):
        super().__init__(net, setting, **h)
        self.memory = NaiveReservoir(setting.memory * setting.tasks, self.random)

    def step(self, batch, t):
        h, k = self.h, min(self.h["replay_batch"], self.memory.size)
        dark, labelled = self.memory.draw(k), self.memory.draw(k)
        answers = self.logits(batch)
        loss = self.cross_entropy(batch, answers)
        now = self.logits(dark or repeated(batch, k))
        again = self.logits(labelled or repeated(batch, k))
        if dark:
            distance = 0.0
            for sample, z in zip(dark, now, strict=True):
                classes = self.classes(sample.t)
                distance = distance + sum((z[c] - sample.logits[c]) ** 2 for c in classes) / len(classes)
            loss = loss + h["logit_weight"] * distance / len(dark)
            loss = loss + h["label_weight"] * self.cross_entropy(labelled, again)
        self.net.descend(self.net.gradient(loss), h["lr"])
        for sample, z in zip(batch, answers, strict=True):
            sample.logits = z.detach()
        self.memory.add(batch)


class Reptile:
    """Move part of the way: weights and batch-norm statistics."""

    def remember(self):
        return {name: v.detach().clone() for name, v in self.net.value.items()}

    def interpolate(self, slow, rate):
        for name, value in slow.items():
            if name != "bn.num_batches_tracked":
                moved = value + rate * (self.net.value[name].detach() - value)
                self.net.value[name] = moved.requires_grad_(name in self.net.parameters)

    def sgd(self, samples, rate):
        self.net.descend(self.net.gradient(self.cross_entropy(samples, self.logits(samples))), rate)


class NaiveMER(Reptile, NaiveFinetune):
    def __init__(self, net, setting, **h):
        super().__init__(net, setting, **h)
        self.memory = NaiveReservoir(setting.memory * setting.tasks, self.random)

    def step(self, batch, t):
        h, k = self.h, min(self.h["replay_batch"], self.memory.size)
        first = self.remember()
        for _ in range(h["batches"]):
            slow = self.remember()
            self.sgd(batch, h["lr"])
            for _ in range(h["replays"]):
                replay = self.memory.draw(k)
                if replay:
                    self.sgd(replay, h["lr"])
                else:
                    self.logits(repeated(batch, k))
            self.interpolate(slow, h["within_lr"])
        self.interpolate(first, h["across_lr"])
        self.memory.add(batch)


class NaiveFTML(Reptile, NaiveER):
    def step(self, batch, t):
        h = self.h
        self.rings[t].add(batch)
        slow = self.remember()
        for _ in range(h["inner_steps"]):
            self.sgd(batch, h["inner_lr"])
        self.interpolate(slow, h["outer_lr"])
        for _ in range(h["meta_steps"]):
            slow = self.remember()
            j = int(self.random.choose(torch.tensor([bool(ring.items) for ring in self.rings]), 1))
            for _ in range(h["inner_steps"]):
                self.sgd(self.draw_task(j), h["inner_lr"])
            self.interpolate(slow, h["outer_lr"])

    def draw_task(self, j):
        size = self.rings[0].size
        eligible = [s == j and place < len(ring.items) for s, ring in enumerate(self.rings) for place in range(size)]
        chosen = self.random.choose(torch.tensor(eligible), min(self.h["replay_batch"], size)).tolist()
        return [self.rings[j].items[slot % size] for slot in chosen]


class NaiveKDR(NaiveER):
    def begin(self, t):
        for s in self.begun:
            items = self.rings[s].items
            for sample, z in zip(items, self.past_answers(self.net, items), strict=True):
                sample.target = {c: p.detach() for c, p in self.softened(z, self.classes(s)).items()}
        super().begin(t)
        self.old = self.net.copy()
        self.expert = copy.copy(self.net)
        self.expert.value = {
            name: v.detach().clone().requires_grad_(name in self.net.parameters) for name, v in self.net.value.items()
        }

    def past_answers(self, net, samples):
        """By a copy: what batch norm sees leaves no trace."""
        return net.copy().forward(self.inputs(samples), training=self.h["old_mode"] == "train")

    def softened(self, z, classes):
        whole = sum(torch.exp(z[c] / self.h["temperature"]) for c in classes)
        return {c: torch.exp(z[c] / self.h["temperature"]) / whole for c in classes}

    def step(self, batch, t):
        if set(self.begun) - {t}:
            replay = self.draw_replay(t)
            taught = self.teach(batch, t)
            logits = (
                self.logits(batch + replay) if self.h["joint_forward"] else self.logits(batch) + self.logits(replay)
            )
            current, replayed = logits[: len(batch)], logits[len(batch) :]
            loss = self.divergence(taught, batch, current)
            loss = loss + self.h["distill_weight"] * self.divergence([s.target for s in replay], replay, replayed)
            if self.h["keep_on_new"]:
                past = self.past_answers(self.old, batch)
                for head in self.old_heads(t):
                    for z_old, z in zip(past, current, strict=True):
                        kept = self.distance(self.softened(z_old, head), self.softened(z, head)) / len(batch)
                        loss = loss + self.h["distill_weight"] * self.h["temperature"] ** 2 * kept
            if self.h["replay_labels"]:
                loss = loss + self.cross_entropy(replay, replayed)
        else:
            loss = self.cross_entropy(batch, self.logits(batch))
        self.net.descend(self.net.gradient(loss), self.h["lr"])
        self.rings[t].add([Sample(s.x, s.y, t) for s in batch])

    def teach(self, batch, t):
        main, self.net = self.net, self.expert
        rate = self.h["lr"] if self.h["expert_lr"] == 0 else self.h["expert_lr"]
        for _ in range(self.h["expert_steps"]):
            self.net.descend(self.net.gradient(self.cross_entropy(batch, self.logits(batch))), rate)
        answers = [self.softened(z.detach(), self.classes(t)) for z in self.logits(batch)]
        self.net = main
        return answers

    def old_heads(self, t):
        earlier = [s for s in self.begun if s != t]
        if self.setting.scenario == "task":
            return [list(self.setting.classes[s]) for s in earlier]
        return [[c for c in range(self.setting.n_classes) if any(c in self.setting.classes[s] for s in earlier)]]

    def distance(self, target, now):
        return sum(p * (torch.log(p) - torch.log(now[c])) for c, p in target.items())

    def divergence(self, targets, samples, logits):
        total = 0.0
        for target, sample, z in zip(targets, samples, logits, strict=True):
            total = total + self.distance(target, self.softened(z, self.classes(sample.t)))
        return self.h["temperature"] ** 2 * total / len(samples)


class Interfered:
    """Maximally interfered retrieval in the place of a uniform draw."""

    def draw_interfered(self, batch, t, rate):
        k, state = min(self.h["replay_batch"], self.most()), self.net.value
        count = self.h["candidates"] if self.h["candidates"] > self.h["replay_batch"] else k
        pool, stored = self.choose(t, count)
        ahead = copied(state)
        self.net.value = copied(state)
        direction = self.net.gradient(self.cross_entropy(batch, self.logits(batch)))
        for name in self.net.parameters:
            ahead[name] = ahead[name] - rate * direction[name]
        after = self.losses_of(pool, ahead)
        self.net.value = state
        before = self.losses_of(pool, state if self.h["track_candidates"] else copied(state))
        ranked = sorted(range(len(pool)), key=lambda i: (i >= stored, before[i] - after[i] if i < stored else i))
        return [pool[i] for i in sorted(ranked[:k])]

    def losses_of(self, samples, state):
        mine, self.net.value = self.net.value, state
        logits = self.logits(samples)
        losses = [float(self.cross_entropy([s], [z.detach()])) for s, z in zip(samples, logits, strict=True)]
        self.net.value = mine
        return losses


def copied(state):
    return {name: v.detach().clone().requires_grad_(v.requires_grad) for name, v in state.items()}


class NaiveERMIR(Interfered, NaiveER):
    def step(self, batch, t):
        self.batch = batch
        super().step(batch, t)

    def draw_replay(self, t):
        return self.draw_interfered(self.batch, t, self.h["lr"])
