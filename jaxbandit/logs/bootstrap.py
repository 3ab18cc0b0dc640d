"""The uncertainty of a log as instances: refitted to resampled rows, by other laws where these fit as well."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from jaxbandit import _checks
from jaxbandit._checks import NEVER
from jaxbandit.instance import Instance
from jaxbandit.laws import Bernoulli, Empirical
from jaxbandit.logs import families
from jaxbandit.logs.fit import LogFit, stacked
from jaxbandit.logs.lifetable import DENSE, GROWTH, LifeTable, product_limit
from jaxbandit.logs.newton import maximise, padded


def bootstrap(fit: LogFit, n: int, key: Any) -> list[Instance]:
    """``n`` instances of one structure, so that they can be stacked and mapped over.

    For each instance and arm a law is drawn among those that fit equally well, by ``exp(-AIC/2)``, and refitted to
    resampled rows (multinomial over the life table); where none describes the delays, it is their product limit. The
    delays are given as an ``Empirical`` table on a grid of every round up to 128 and steps of 1 % beyond, whatever the
    law. An arm without conversions has the delays of the arm with most of them, and a rate drawn from its posterior
    law under a uniform prior.

    Args:
        fit: what ``fit_log`` gives.
        n: how many.
        key: a whole number or a JAX key.

    Raises:
        TypeError: an n that is not a whole number.
        ValueError: an n below 1, or no arm with a conversion.
    """
    n = _checks.whole_number("bootstrap: n", n, 1, 10**6, "give the number of instances")
    random = np.random.default_rng(_words(key))
    most = int(np.argmax([arm.conversions for arm in fit.arms]))
    if not fit.arms[most].fits:
        raise ValueError("bootstrap: no arm of the log has a conversion, so that nothing is known of the delays")
    ages = _ages()
    rates, tails = np.empty((n, fit.num_arms)), np.empty((n, fit.num_arms, len(ages)))
    for k in sorted(range(fit.num_arms), key=lambda k: not fit.arms[k].fits):
        if fit.arms[k].fits:
            rates[:, k], tails[:, k] = _refitted(fit, k, n, random, ages)
        else:
            tails[:, k] = tails[:, most]
            rates[:, k] = random.beta(1, 1 + seen_pulls(fit, k), size=n)
    at_least = np.concatenate([np.ones((*tails.shape[:2], 1)), tails], axis=2)
    chances = at_least - np.concatenate([tails, np.zeros((*tails.shape[:2], 1))], axis=2)
    values = np.append(ages, NEVER)
    return [Instance(Bernoulli(rate), Empirical(values, chance)) for rate, chance in zip(rates, chances, strict=True)]


def seen_pulls(fit: LogFit, k: int) -> float:
    """How many pulls of arm k are as good as old enough, by the delays of the arm with most conversions."""
    best = max(fit.arms, key=lambda arm: arm.conversions).best
    chance = 1 - families.tail(best.theta, best.family.normal, np.maximum(fit.table.edges, 1))
    return float(fit.table.waiting[k, 1:] @ chance[1:])


def silent_rate(fit: LogFit, k: int) -> float:
    """The mean rate of an arm without conversions, under a uniform prior."""
    return 1 / (2 + seen_pulls(fit, k))


def _refitted(
    fit: LogFit, k: int, n: int, random: np.random.Generator, ages: np.ndarray
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, "n ages"]]:
    arm, table = fit.arms[k], fit.table
    cells = np.concatenate([table.conversions[k], table.waiting[k]])
    rows = random.multinomial(cells.sum(), cells / cells.sum(), size=n)
    drawn = random.choice(len(arm.fits), size=n, p=[each.weight for each in arm.fits])
    split = table.conversions.shape[1]
    if arm.law_free:
        return _law_free(table.edges, rows[:, :split], rows[:, split:], ages)
    edges, conversions, waiting = padded(table.edges, rows[:, :split], rows[:, split:])
    chosen = [arm.fits[i] for i in drawn]
    problems = stacked([(*counts, each.family) for *counts, each in zip(conversions, waiting, chosen, strict=True)])
    theta = maximise(np.stack([each.theta for each in chosen]), problems, edges).theta
    tails = np.stack([families.tail(x, each.family.normal, ages) for x, each in zip(theta, chosen, strict=True)])
    return families.rate(theta), tails


def _law_free(
    edges: np.ndarray, conversions: np.ndarray, waiting: np.ndarray, ages: np.ndarray
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, "n ages"]]:
    """The product limit of every sample, in place of a law."""
    at = np.fmax.accumulate(product_limit(LifeTable(edges, conversions, waiting)).at, axis=1)
    rate = np.maximum(at[:, -1:], 1e-12)
    place = np.minimum(np.searchsorted(edges, ages, side="right") - 1, len(edges) - 1)
    return at[:, -1], 1 - at[:, place] / rate


def _ages() -> np.ndarray:
    ages = list(range(1, DENSE + 1))
    while ages[-1] * GROWTH < NEVER:
        ages.append(int(np.ceil(ages[-1] * GROWTH)))
    return np.asarray(ages)


def _words(key: Any) -> list[int]:
    if isinstance(key, int | np.integer):
        return [_checks.whole_number("bootstrap: key", key, 0, 2**32 - 1, "give a seed")]
    data = jax.random.key_data(key) if jnp.issubdtype(key.dtype, jax.dtypes.prng_key) else key
    return np.asarray(data).astype(int).ravel().tolist()
