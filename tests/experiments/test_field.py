"""The experiments on the field's policies: what they are told, and what is read off the numbers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from experiments.field import batches, field, grid, joulani2013, lancewicki2021, vernade2017
from experiments.field.shared import OneOf, apart, quotient
from tests.examples import public

MEANS = (0.2, 0.5, 0.6)


def test_every_public_policy_is_in_the_field():
    policies = grid.policies(grid.told("none", MEANS, 100))
    assert {type(policy).__name__ for policy in policies.values()} == public(jb.Policy)
    assert set(grid.TOLD) | set(grid.SLOW) <= set(policies)


@pytest.mark.parametrize("family", ["fixed 250", "½ lost", "Pareto .8 to .2"])
def test_one_of_several_laws_is_that_law(family):
    law, chosen = grid.delays(3)[family], grid.one_of(3, family)
    assert isinstance(chosen, OneOf)
    for u in jnp.asarray([0.01, 0.3, 0.9]):
        np.testing.assert_array_equal(chosen.isf(u), law.isf(u))
    for x in (0, 1, 40, 250):
        np.testing.assert_array_equal(chosen.survival(x), law.survival(x))
        np.testing.assert_array_equal(chosen.cdf(x), law.cdf(x))
        np.testing.assert_allclose(chosen.log_prob(x), law.log_prob(x), rtol=1e-6)
    np.testing.assert_array_equal(chosen.mean, law.mean)
    runs = [
        jb.simulate(3, jb.Instance(jb.Bernoulli(MEANS), delay), jb.DelayedUCB1(), horizon=300).pulls
        for delay in (law, chosen)
    ]
    np.testing.assert_array_equal(*runs)


def test_what_policies_are_told_is_true():
    fixed, lost = (grid.told(family, MEANS, 1000) for family in ("fixed 250", "½ lost"))
    assert (fixed.window, fixed.expected) == (100, 249.0)  # a tenth of T at most; 250 rounds, but one is no delay
    assert lost.window == 1
    assert lost.tail_index == pytest.approx(np.log(2) / np.log(1000))
    assert lost.expected == pytest.approx(500)
    windows = [grid.told("uniform 1–250", MEANS, 10_000, factor).window for factor in (1.0, 2.0)]
    assert windows[0] == pytest.approx(225, abs=1)
    assert windows[1] == 2 * windows[0]
    assert grid.told("Pareto .8 to .2", MEANS, 1000).tail_index == pytest.approx(0.2, rel=1e-4)


def regrets(linear: set[tuple[str, str]]) -> field.Regrets:
    """5 runs a cell with regrets of 10 and 11, 100 and 200 under uniform play and where they are ``linear``."""
    noise = np.random.default_rng(0).normal(0, 0.01, (5, 1))
    found: field.Regrets = {}
    for family in grid.delays(2):
        for label in grid.policies(grid.told("none", MEANS, 100)):
            bad = label in ("uniform play", "ODAAF") or (family, label) in linear
            for belief in (field.TRUTH, *field.WRONG):
                found[field.WRONG_ARMS, family, label, belief] = np.array([100, 200] if bad else [10, 11]) + noise
    return found


ZEROS = {(f, p) for f in ("Pareto .8 to .2", "lognormal 10 to 1000") for p in ("Thompson", "KL-UCB", "UCB1")}


def test_where_a_policy_fails_is_said():
    assert field.sentence(regrets(set()), "KL-UCB").startswith("within twice the best: everywhere; linear regret: no")
    assert "linear regret: Pareto .8 to .2, lognormal" in field.sentence(regrets(ZEROS), "KL-UCB")
    assert "within twice the best: nowhere; linear regret: everywhere" in field.sentence(regrets(set()), "ODAAF")


def test_the_verdicts_on_the_field_follow_the_numbers():
    zeros = {(f, p) for f, p in ZEROS} | {(f, "Discarding") for f in field.by_arm(regrets(set()))}
    assert field.zeros_fail_by_arm(regrets(zeros)).holds
    assert not field.zeros_fail_by_arm(regrets(zeros | {("none", "UCB1")})).holds
    assert not field.correction_helps_by_arm(regrets(zeros)).holds  # others that see conversions do as well
    assert field.thompson_is_as_good(regrets(zeros)).holds
    assert not field.thompson_is_as_good(regrets({("fixed 250", "Delayed-Thompson")})).holds
    assert field.price_of_a_wrong_value(regrets(zeros)).holds
    assert field.price_of_anonymity(regrets(zeros)).holds


def test_outstanding_feedback_is_counted():
    """Against a count by hand of the pulls of an arm that a round cannot know of."""
    rng = np.random.default_rng(1)
    arms, delays = rng.integers(0, 3, 60), rng.integers(0, 30, 60)
    delays[7] = jb.NEVER
    most = [max(sum(arms[s] == i and s + max(delays[s], 1) > t for s in range(t)) for t in range(60)) for i in range(3)]
    found = joulani2013.most_outstanding(jax.nn.one_hot(arms, 3, dtype=np.int32), np.asarray(delays, np.int32))
    np.testing.assert_array_equal(found, most)


def test_the_verdicts_on_joulani_follow_the_numbers():
    found = joulani2013.Found(np.array([50.0, 52.0, 51.0]), np.array([[10, 10, 10]] * 3))
    base = joulani2013.Found(np.array([49.0, 50.0, 51.0]), np.array([[0, 0, 0]] * 3))
    cells = {(law, mean): found for law in joulani2013.laws() for mean in (100, 1000)}

    def holds(queued: joulani2013.Results, told: joulani2013.Results = cells) -> list[bool]:
        results = {"Delayed-UCB1": told, "Queued(UCB1)": queued}
        results = {label: {joulani2013.UNDELAYED: base} | by_delay for label, by_delay in results.items()}
        return [claim.holds for claim in joulani2013.claims(results, 1000)]

    assert holds(cells) == [True, True, True, True]
    worse = {cell: joulani2013.Found(x.regret + 10_000, x.outstanding + 20_000) for cell, x in cells.items()}
    assert holds(cells, worse) == [True, True, True, False]
    many = {cell: x._replace(regret=x.regret + 10_000) for cell, x in cells.items()}
    assert holds(many) == [True, True, False, True]
    assert holds(many, many) == [False, False, False, True]


def test_the_verdicts_on_batches_follow_the_numbers():
    noise = np.random.default_rng(0).normal(0, 1, 20)
    grows = {("Thompson", p): 100 + noise for p in batches.PERIODS}
    grows |= {("UCB1", p): 200 + p + 2 * noise for p in batches.PERIODS}
    assert [claim.holds for claim in batches.claims(grows)] == [True, True, True]
    turned = {({"Thompson": "UCB1", "UCB1": "Thompson"}[label], p): x for (label, p), x in grows.items()}
    assert [claim.holds for claim in batches.claims(turned)][:2] == [False, False]


def test_the_verdicts_on_elimination_follow_the_numbers():
    noise = np.random.default_rng(0).normal(0, 1, (20, 1))
    elimination, ucb = lancewicki2021.policies()
    found = {(elimination, 0): 300 + noise, (elimination, 250): 310 + noise}
    found |= {(ucb, 0): 100 - noise, (ucb, 250): 200 + noise}
    assert [claim.holds for claim in lancewicki2021.claims(found, 1000)] == [False, True]


def test_the_verdicts_on_low_rates_follow_the_numbers():
    rounds, noise = np.array([500, 1000]), np.random.default_rng(0).normal(0, 0.01, (20, 1))
    ends = {"D-UCB": 60.0, "DKL-UCB": 20.0, "Discarding": 120.0, "CorrectedThompson": 10.0}

    def run(label: str, means: tuple[float, ...]) -> jb.Run:
        blind = 500 * (max(means) - np.mean(means)) * (1 if label == "Discarding" else 0.3)
        return jb.Run(rounds, np.zeros(()), np.array([[blind, ends[label]]]) + noise, {})

    results = {
        name: {label: run(label, means) for label in vernade2017.policies(500)}
        for name, means in vernade2017.INSTANCES.items()
    }
    assert all(claim.holds for claim in vernade2017.claims(results, 500))
    ends = dict.fromkeys(ends, 50.0)
    equal = {
        name: {label: run(label, means) for label in vernade2017.policies(500)}
        for name, means in vernade2017.INSTANCES.items()
    }
    assert [claim.holds for claim in vernade2017.claims(equal, 500)] == [False, False, False, True, False]


def test_a_quotient_of_means_knows_its_error():
    """X = 2 Y + noise with means 20 and 10: the error is that of the noise over 10."""
    rng = np.random.default_rng(0)
    y, noise = rng.normal(10, 1, 10_000), rng.normal(0, 0.5, 10_000)
    found = quotient(2 * y + noise, y)
    assert found.value == pytest.approx(2, abs=5 * found.standard_error)
    assert found.standard_error == pytest.approx(0.5 / 100 / 10, rel=0.05)
    assert apart(y + 1, y)[1] == "+1.0 ± 0.0"
