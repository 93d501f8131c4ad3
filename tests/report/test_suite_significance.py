"""The paired test against another implementation of it, and Holm's correction by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import ttest_rel

from bcl.report.statistics import holm, paired_p


@pytest.mark.parametrize("seeds", [2, 3, 5, 15])
def test_the_paired_test(seeds: int) -> None:
    random = np.random.default_rng(seeds)
    first, second = random.normal(70, 2, seeds), random.normal(71, 2, seeds)
    found = paired_p(dict(enumerate(first)), dict(enumerate(second)))
    assert found == pytest.approx(ttest_rel(first, second).pvalue)


def test_only_shared_seeds_are_paired() -> None:
    first, second = {0: 1.0, 1: 2.0, 2: 4.0, 7: 90.0}, {2: 5.0, 1: 4.0, 0: 2.0, 8: 1.0}
    assert paired_p(first, second) == pytest.approx(ttest_rel([1.0, 2.0, 4.0], [2.0, 4.0, 5.0]).pvalue)
    assert paired_p({0: 1.0}, {0: 2.0}) is None
    assert paired_p({0: 1.0, 1: 2.0}, {2: 1.0, 3: 2.0}) is None


def test_differences_without_spread() -> None:
    assert paired_p({0: 1.0, 1: 2.0}, {0: 1.0, 1: 2.0}) == 1.0
    assert paired_p({0: 1.0, 1: 2.0}, {0: 3.0, 1: 4.0}) == 0.0


def test_holm() -> None:
    assert holm([0.01, 0.04, None, 0.03]) == pytest.approx([0.03, 0.06, None, 0.06])
    assert holm([0.6, 0.7]) == [1.0, 1.0]
    assert holm([]) == []
