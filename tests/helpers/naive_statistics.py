"""Nearest class mean, streaming LDA and RanPAC, transcribed slowly: one sample at a time, lists and loops."""

import torch


class Naive:
    def __init__(self, net, setting, **h):
        self.net, self.setting, self.h = net.eval(), setting, h
        self.samples = []  # (feature, class): all that has come

    def phi(self, x):
        with torch.no_grad():
            return self.net.features(x[None])[0].double()

    def observe(self, x, y, t):
        for one, c in zip(x, y.tolist(), strict=True):
            self.take(self.phi(one), c)

    def best(self, x, visible):
        """The answer to one sample: the visible class with the highest score; those without samples have none."""
        scores = {c: self.score(self.phi(x), c) for c in visible if any(y == c for _, y in self.samples)}
        return max(scores, key=scores.get) if scores else None

    def take(self, z, c):
        self.samples.append((z, c))


class NaiveNCM(Naive):
    def score(self, z, c):
        members = [self.unit(f) for f, y in self.samples if y == c]
        return -float(
            sum((a - b) ** 2 for a, b in zip(self.unit(z), self.unit(sum(members) / len(members)), strict=True))
        )

    def unit(self, z):
        return z / z.norm() if self.h["unit_length"] else z


class NaiveSLDA(Naive):
    def __init__(self, net, setting, **h):
        super().__init__(net, setting, **h)
        self.t, self.mean, self.count, self.covariance = 0, {}, {}, 0.0

    def take(self, z, c):
        super().take(z, c)
        delta = torch.zeros(len(z), len(z), dtype=torch.float64)
        if c in self.mean:
            for i in range(len(z)):
                for j in range(len(z)):
                    delta[i, j] = self.t / (self.t + 1) * (z[i] - self.mean[c][i]) * (z[j] - self.mean[c][j])
        self.covariance = (self.t * self.covariance + delta) / (self.t + 1)
        n = self.count.get(c, 0)
        self.mean[c] = (n * self.mean.get(c, 0 * z) + z) / (n + 1)
        self.count[c], self.t = n + 1, self.t + 1

    def score(self, z, c):
        share, mean = self.h["shrinkage"], self.mean[c]
        precision = torch.linalg.inv((1 - share) * self.covariance + share * torch.eye(len(z), dtype=torch.float64))
        return float(mean @ precision @ z - mean @ precision @ mean / 2)


class NaiveRanPAC(Naive):
    def __init__(self, net, setting, projection, **h):
        super().__init__(net, setting, **h)
        self.projection = projection

    def hidden(self, z):
        return torch.stack(
            [max(0.0, sum(z * column)) * torch.ones((), dtype=torch.float64) for column in self.projection.T]
        )

    def score(self, z, c):
        rows = torch.stack([self.hidden(f) for f, _ in self.samples])
        wanted = torch.tensor([1.0 if y == c else 0.0 for _, y in self.samples], dtype=torch.float64)
        gram = rows.T @ rows
        ridge = self.h["ridge"] * gram.diagonal().mean() * torch.eye(len(gram), dtype=torch.float64)
        return float(self.hidden(z) @ torch.linalg.inv(gram + ridge) @ (rows.T @ wanted))
