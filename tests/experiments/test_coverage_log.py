"""Logs whose truth is known: how often it lies within what a fit says."""

from typing import Any

import jax
import pytest

from experiments.logs import coverage_log as module


def found(**changed: Any) -> module.Found:
    plain = module.Found("Lomax", 20, (0.9, 1.1), (0.9, 1.1), (0.9, 1.1), True, False, False)
    return plain._replace(**changed)


def test_the_verdicts_follow_the_numbers():
    """Of 20 long logs and as many short ones, all that is said of one misses; of short ones the best families do."""
    logs = (
        [found(right=(1.05, 1.1), said=(1.05, 1.1), best=(1.05, 1.1))]
        + [found()] * 19
        + [found(length=2, best=(0.5, 0.9))] * 20
    )
    logs[-1] = logs[-1]._replace(incidence=False)
    assert [claim.holds for claim in module.claims(logs)] == [True, True, True, True]
    worse = [x._replace(said=(1.2, 1.4), right=(1.2, 1.4), incidence=False) for x in logs]
    assert [claim.holds for claim in module.claims(worse)] == [False, False, False, False]
    assert "in 100.0 % [91.2, 100.0] without a sentence that warns" in module.claims(worse)[1].measured


def test_a_share_has_its_exact_interval():
    some = module.Share(3, 10)
    assert (round(some.low, 4), round(some.high, 4)) == (0.0667, 0.6525)
    assert (module.Share(0, 5).low, module.Share(5, 5).high) == (0, 1)


@pytest.mark.slow
def test_intervals_of_rates_have_the_truth_as_often_as_they_say():
    """648 logs of three families, of 2 to 100 medians."""
    cells = [(truth, length) for length in module.LENGTHS for truth in module.truths()]
    keys = jax.random.split(jax.random.key(0), len(cells))
    logs = [
        x
        for (truth, length), key in zip(cells, keys, strict=True)
        for x in module.found_in(truth, length, module.PULLS, module.SEEDS, key)
    ]
    for claim in module.claims(logs):
        assert claim.holds, str(claim)
