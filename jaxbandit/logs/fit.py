"""What a log tells about rates and delays, arm by arm, and what it cannot tell."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from jaxbandit.instance import Instance
from jaxbandit.laws import Bernoulli, DelayLaw, Empirical, PerArm
from jaxbandit.logs import families
from jaxbandit.logs.families import FAMILIES, LIMIT, Family, Problem
from jaxbandit.logs.lifetable import Incidence, LifeTable, grid, identified_until, life_table, product_limit
from jaxbandit.logs.newton import Maximum, maximise, padded
from jaxbandit.logs.profile import profile_intervals
from jaxbandit.logs.read import Log

CLOSE = 2.0
"""Families whose AIC is within this of the least fit equally well."""
MISFIT = 0.01
"""Below this p value a family does not describe the delays."""
STARTS = ((1.1, 1.0), (3.0, 5.0))
"""Rate over the share that was seen to convert, and scale over the median delay that was seen."""


class FamilyFit(NamedTuple):
    """One family's maximum likelihood for one arm; standard errors are NaN where the maximum is at a border."""

    family: Family
    theta: Float[np.ndarray, " P"]
    log_likelihood: float
    aic: float
    rate: float
    rate_error: float
    low: float
    high: float
    """Of the 95 % profile-likelihood interval of the rate; 1 where the profile never falls by 1.92."""
    converged: bool
    weight: float = 0.0
    """``exp(-AIC/2)`` among the families that fit equally well, which have AIC within 2 of the least; else 0."""

    @property
    def parameters(self) -> dict[str, float]:
        return families.parameters(self.family, self.theta)

    @property
    def law(self) -> DelayLaw:
        return families.law(self.family, self.theta)

    @property
    def tail_index(self) -> float:
        """Of Assumption 1; infinite where the tail is lighter than any power."""
        return self.parameters.get("tail_index", np.inf)


class ArmFit(NamedTuple):
    """What is known of one arm. ``fits`` are sorted by AIC, and empty without conversions."""

    name: str
    pulls: int
    conversions: int
    identified_until: int
    """The largest age with rows at risk, in rounds."""
    incidence: tuple[float, float, float]
    """At that age: the product limit and its 95 % band. A lower bound of the rate that needs no law."""
    fits: tuple[FamilyFit, ...]
    lower: float
    upper: float
    """All that is said of the rate: the intervals of all families that fit equally well; up to 1, from the band of the
    incidence, where the log is too short or no family fits."""
    misfit: float
    """p value of a χ² test of the best family; 1 without conversions."""

    @property
    def law_free(self) -> bool:
        """Whether no family describes the delays, so that the product limit stands for them."""
        return self.misfit < MISFIT

    @property
    def best(self) -> FamilyFit:
        return self.fits[0]

    @property
    def equally_good(self) -> tuple[FamilyFit, ...]:
        return tuple(fit for fit in self.fits if fit.weight > 0)


class LogFit(NamedTuple):
    """What ``fit_log`` found; ``print`` it, ``plot`` it, or make instances of it."""

    arms: tuple[ArmFit, ...]
    table: LifeTable
    curves: Incidence
    rounds_per_unit: float
    unit: str

    @property
    def num_arms(self) -> int:
        return len(self.arms)

    def instance(self) -> Instance:
        """The instance with the best law of each arm.

        Where the log is too short to tell a rate this is one of many that fit as well: see ``bootstrap``.

        Raises:
            ValueError: no arm has a conversion.
        """
        from jaxbandit.logs.bootstrap import silent_rate

        law = self.delay_law()
        rates = [
            (arm.incidence[0] if arm.law_free else arm.best.rate) if arm.fits else silent_rate(self, k)
            for k, arm in enumerate(self.arms)
        ]
        return Instance(Bernoulli(np.minimum(rates, 1)), law)

    def delay_law(self) -> PerArm:
        """The best law of each arm; an arm without conversions has that of the arm with most of them.

        Where no family describes the delays of an arm it is the product limit, a table up to the largest age.

        Raises:
            ValueError: no arm has a conversion.
        """
        most = max(self.arms, key=lambda arm: arm.conversions)
        if not most.fits:
            raise ValueError("delay_law: no arm of the log has a conversion, so that nothing is known of the delays")
        last = self.arms.index(most)
        return PerArm([self._law(k if arm.fits else last) for k, arm in enumerate(self.arms)])

    def _law(self, k: int) -> DelayLaw:
        if not self.arms[k].law_free:
            return self.arms[k].best.law
        rate, chances = table_law(self.curves.at[k])
        return Empirical(self.table.edges[1:], chances / rate)

    def bootstrap(self, n: int, key: Any) -> list[Instance]:
        """See ``jaxbandit.logs.bootstrap.bootstrap``."""
        from jaxbandit.logs.bootstrap import bootstrap

        return bootstrap(self, n, key)

    def plot(self) -> Any:
        """Incidence with bands and fitted curves, survival on log-log axes; the two axes."""
        from jaxbandit.logs.plot import draw

        return draw(self)

    def __repr__(self) -> str:
        from jaxbandit.logs.report import text

        return text(self)


def fit_log(log: Log, *, dense: bool = False) -> LogFit:
    """Fits, for each arm, the product limit and a mixture cure model for each family of delays.

    ``P(C = 1) = rate`` and ``D | C = 1`` follows a law: exponential, Weibull, LogNormal, Lomax or Burr (Boag, 1949;
    Farewell, 1982), by maximum likelihood over a life table in whole rounds.

    Args:
        log: what ``read_log`` gives.
        dense: whether the life table has every round; by default its steps are 1 % beyond 128 rounds where the log is
            longer than 1024, which changes parameters by less than 1 %.

    Raises:
        TypeError: something that is not a log.
    """
    if not isinstance(log, Log):
        raise TypeError(f"fit_log: log must be what read_log gives, got {type(log).__name__}; call read_log first")
    table = life_table(log.arm, log.age, log.delay, grid(int(log.age.max()), dense=dense))
    curves = product_limit(table)
    until = identified_until(table, curves)
    fits = fit_families(table)
    arms = []
    for k, name in enumerate(log.arms):
        last = int(np.searchsorted(table.edges, until[k]))
        at, low, high = (float(x[k, last]) for x in (curves.at, curves.low, curves.high))
        good = [fit for fit in fits[k] if fit.weight > 0]
        p = misfit(table, curves, k, fits[k][0]) if good else 1.0
        lower, upper = min([fit.low for fit in good], default=0.0), max([fit.high for fit in good], default=1.0)
        if upper >= 1 or p < MISFIT:
            lower, upper = min(lower, low), 1.0
        arms.append(
            ArmFit(
                name=name,
                pulls=int(table.waiting[k].sum() + table.conversions[k].sum()),
                conversions=int(table.conversions[k].sum()),
                identified_until=int(until[k]),
                incidence=(at, low, high),
                fits=fits[k],
                lower=lower,
                upper=upper,
                misfit=p,
            )
        )
    return LogFit(tuple(arms), table, curves, log.rounds_per_unit, log.unit)


def starts(family: Family, conversions: Int[np.ndarray, " G"], pulls: int, edges: np.ndarray) -> list[list[float]]:
    """Where to begin: the delays that were seen are too short, and too few."""
    total = int(conversions.sum())
    median = float(edges[1 + np.searchsorted(np.cumsum(conversions), total / 2)])
    found = []
    for more, longer in STARTS:
        chance = min(more * total / pulls, 0.95)
        found.append([np.log(chance / (1 - chance)), np.log(median * longer), 0.0, 0.0 if family.free[2] else LIMIT])
    return found


def fit_families(table: LifeTable) -> list[tuple[FamilyFit, ...]]:
    """Every family for every arm with conversions, side by side, sorted by AIC."""
    edges, conversions, waiting = padded(table.edges, table.conversions, table.waiting)
    arms = [k for k in range(len(conversions)) if conversions[k].sum() > 0]
    fits: list[tuple[FamilyFit, ...]] = [() for _ in conversions]
    if not arms:
        return fits
    jobs = [(k, family) for k in arms for family in FAMILIES]
    pulls = conversions.sum(axis=1) + waiting.sum(axis=1)
    begin = [starts(family, table.conversions[k], int(pulls[k]), table.edges) for k, family in jobs]
    rows, many = np.repeat(np.arange(len(jobs)), len(STARTS)), len(STARTS)
    problems = stacked([(conversions[k], waiting[k], family) for k, family in jobs])
    tried = maximise(np.concatenate(begin), Problem(*(x[rows] for x in problems)), edges)
    top = np.argmax(np.where(np.isnan(tried.value), -np.inf, tried.value).reshape(-1, many), axis=1)
    best = Maximum(*(x[np.arange(len(jobs)) * many + top] for x in tried))
    low, high, best = profile_intervals(best, problems, edges)
    for k in arms:
        found = [_family_fit(jobs[i][1], best, i, low[i], high[i]) for i in range(len(jobs)) if jobs[i][0] == k]
        found.sort(key=lambda fit: fit.aic)
        close = np.array([np.exp(-(fit.aic - found[0].aic) / 2) for fit in found])
        close = np.where([fit.aic - found[0].aic <= CLOSE for fit in found], close, 0)
        fits[k] = tuple(
            fit._replace(weight=float(weight)) for fit, weight in zip(found, close / close.sum(), strict=True)
        )
    return fits


def table_law(incidence: Float[np.ndarray, " G1"]) -> tuple[float, Float[np.ndarray, " G"]]:
    """The incidence at the largest age with rows at risk, and how it came about, interval by interval."""
    at = np.fmax.accumulate(incidence)
    return float(at[-1]), np.diff(at)


def expected_conversions(table: LifeTable, curves: Incidence, k: int, fit: FamilyFit) -> Float[np.ndarray, " G"]:
    """In each interval of the life table, given how many rows were still at risk."""
    left = 1 - fit.rate + fit.rate * np.append(1.0, families.tail(fit.theta, fit.family.normal, table.edges[1:]))
    return curves.at_risk[k] * (1 - left[1:] / left[:-1])


def misfit(table: LifeTable, curves: Incidence, k: int, fit: FamilyFit) -> float:
    """p value of Pearson's χ² for the conversions, in up to 20 bins of about equal numbers."""
    from scipy.special import chdtrc

    expected, counts = expected_conversions(table, curves, k, fit), table.conversions[k]
    bins = int(np.clip(counts.sum() // 10, 1, 20))
    if expected.sum() <= 0:
        return 1.0
    of = np.minimum((np.cumsum(expected) / expected.sum() * bins).astype(int), bins - 1)
    seen, mean = np.bincount(of, counts, bins), np.bincount(of, expected, bins)
    kept = mean > 0
    degrees = int(kept.sum()) - 1 - fit.family.num_parameters
    return float(chdtrc(degrees, ((seen - mean)[kept] ** 2 / mean[kept]).sum())) if degrees > 0 else 1.0


def stacked(jobs: Sequence[tuple[np.ndarray, np.ndarray, Family]]) -> Problem:
    conversions, waiting, kinds = zip(*jobs, strict=True)
    return Problem(
        np.stack(conversions),  # type: ignore[arg-type]
        np.stack(waiting),  # type: ignore[arg-type]
        np.array([family.normal for family in kinds]),  # type: ignore[arg-type]
        np.array([family.mask for family in kinds]),  # type: ignore[arg-type]
    )


def _family_fit(family: Family, best: Maximum, i: int, low: float, high: float) -> FamilyFit:
    theta, value = best.theta[i], float(best.value[i])
    rate = float(families.rate(theta))
    values = np.linalg.eigvalsh(best.hessian[i])
    inside = bool(best.converged[i]) and values[0] > 1e-6 and rate < 1 - 1e-6
    error = rate * (1 - rate) * np.sqrt(np.linalg.inv(best.hessian[i])[0, 0]) if inside else np.nan
    return FamilyFit(
        family=family,
        theta=theta,
        log_likelihood=value,
        aic=2 * family.num_parameters - 2 * value,
        rate=rate,
        rate_error=float(error),
        low=float(low),
        high=float(high),
        converged=bool(best.converged[i]),
    )
