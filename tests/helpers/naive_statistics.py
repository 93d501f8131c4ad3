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

    def scores(self, x, visible):
        """Of one sample: a score for every visible class that has come."""
        z, come = self.phi(x), {c for _, c in self.samples}
        self.prepare()
        return {c: self.score(z, c) for c in visible if c in come}

    def prepare(self):
        """Whatever all scores need."""

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
        gap = z - self.mean.get(c, z)
        delta = torch.tensor(
            [[self.t / (self.t + 1) * a * b for a in gap.tolist()] for b in gap.tolist()], dtype=torch.float64
        )
        self.covariance = (self.t * self.covariance + delta) / (self.t + 1)
        n = self.count.get(c, 0)
        self.mean[c] = (n * self.mean.get(c, 0 * z) + z) / (n + 1)
        self.count[c], self.t = n + 1, self.t + 1

    def prepare(self):
        share, size = self.h["shrinkage"], len(self.covariance)
        self.precision = torch.linalg.inv((1 - share) * self.covariance + share * torch.eye(size, dtype=torch.float64))

    def score(self, z, c):
        mean = self.mean[c]
        return float(mean @ self.precision @ z - mean @ self.precision @ mean / 2)


class NaiveRanPAC(Naive):
    def __init__(self, net, setting, projection, **h):
        super().__init__(net, setting, **h)
        self.projection = projection

    def hidden(self, z):
        sums = [sum(a * b for a, b in zip(z.tolist(), column, strict=True)) for column in self.projection.T.tolist()]
        return torch.tensor([max(0.0, total) for total in sums], dtype=torch.float64)

    def prepare(self):
        self.rows = torch.stack([self.hidden(f) for f, _ in self.samples])
        gram = self.rows.T @ self.rows
        ridge = self.h["ridge"] * gram.diagonal().mean() * torch.eye(len(gram), dtype=torch.float64)
        self.inverse = torch.linalg.inv(gram + ridge)

    def score(self, z, c):
        wanted = torch.tensor([1.0 if y == c else 0.0 for _, y in self.samples], dtype=torch.float64)
        return float(self.hidden(z) @ self.inverse @ (self.rows.T @ wanted))
