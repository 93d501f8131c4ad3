"""LwF and EWC, transcribed slowly from their papers: a loss per old head, a penalty per old task."""

import torch
from naive import NaiveFinetune, NaiveRing


class NaiveLwF(NaiveFinetune):
    def begin(self, t):
        if self.task is not None:
            self.old = self.net.copy()
        super().begin(t)

    def step(self, batch, t):
        logits = self.logits(batch)
        loss = self.cross_entropy(batch, logits)
        if set(self.begun) - {t}:
            kept = self.old.copy()  # batch norm of the copy's copy may count, that of the copy may not
            past = kept.forward(self.inputs(batch), training=self.h["old_mode"] == "train")
            for head in self.heads(t):
                total = sum(self.distance(z_old, z, head) for z_old, z in zip(past, logits, strict=True))
                loss = loss + self.h["distill_weight"] * total / len(batch)
        self.net.descend(self.net.gradient(loss), self.h["lr"])

    def heads(self, t):
        earlier = [list(self.setting.classes[s]) for s in self.begun if s != t]
        if self.setting.scenario == "task":
            return earlier
        return [sorted({c for head in earlier for c in head})]

    def distance(self, z_old, z, head):
        """Eq. 2 and 3: -Σ y' log ŷ', with y' = y^(1/T) / Σ y^(1/T) of the probabilities y of a head."""
        y_old, y = ({c: torch.exp(v[c]) / sum(torch.exp(v[j]) for j in head) for c in head} for v in (z_old, z))
        power = 1 / self.h["temperature"]
        y_old, y = ({c: p**power / sum(q**power for q in v.values()) for c, p in v.items()} for v in (y_old, y))
        return -sum(y_old[c] * torch.log(y[c]) for c in head)


class NaiveEWC(NaiveFinetune):
    def __init__(self, net, setting, **h):
        super().__init__(net, setting, **h)
        self.recent, self.penalties = NaiveRing(setting.memory, "wrap"), []

    def begin(self, t):
        if self.task is not None:
            weights = {name: self.net.value[name].detach().clone() for name in self.net.parameters}
            self.penalties.append((self.fisher(self.task), weights))
            self.recent = NaiveRing(self.setting.memory, "wrap")
        super().begin(t)

    def fisher(self, t):
        """The mean over samples of the squared gradient of each sample's log-likelihood."""
        total = dict.fromkeys(self.net.parameters, 0.0)
        for sample in self.recent.items:
            with torch.no_grad():
                (z,) = self.logits([sample], training=False)
                whole = sum(torch.exp(z[c]) for c in self.classes(t))
                p = {c: torch.exp(z[c]) / whole for c in self.classes(t)}
            for c, probability in p.items() if self.h["fisher"] == "model" else [(sample.y, 1.0)]:
                (z,) = self.logits([sample], training=False)
                likelihood = z[c] - torch.log(sum(torch.exp(z[j]) for j in self.classes(t)))
                for name, g in self.net.gradient(likelihood).items():
                    total[name] = total[name] + probability * g**2
        return {name: value / len(self.recent.items) for name, value in total.items()}

    def step(self, batch, t):
        h, net = self.h, self.net
        loss = self.cross_entropy(batch, self.logits(batch))
        if h["penalty_step"] == "explicit":  # Eq. 3, one term for each task that has ended
            for fisher, weights in self.penalties:
                for name in net.parameters:
                    loss = loss + h["penalty"] / 2 * (fisher[name] * (net.value[name] - weights[name]) ** 2).sum()
        net.descend(net.gradient(loss), h["lr"])
        if h["penalty_step"] == "implicit":
            for name in net.parameters:  # where the gradient of the penalties and of |θ - θ'|² / 2α is zero
                right, left = net.value[name].detach() / h["lr"], 1 / h["lr"]
                for fisher, weights in self.penalties:
                    right, left = (
                        right + h["penalty"] * fisher[name] * weights[name],
                        left + h["penalty"] * fisher[name],
                    )
                net.value[name] = (right / left).requires_grad_()
        self.recent.add(batch)
