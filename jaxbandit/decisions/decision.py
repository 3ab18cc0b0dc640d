"""The outcome of a comparison: in numbers, in sentences, as a table."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Float64

if TYPE_CHECKING:
    import pandas


class Difference(NamedTuple):
    """Conversions that a candidate loses against another: the mean, and an interval for the truth's."""

    mean: float
    low: float
    high: float


class Decision(NamedTuple):
    """What ``compare`` found; ``print`` it, ``plot`` it, or take its ``table``.

    With ``d[i, s]`` the difference of the regret of two candidates in run s on instance i, of n instances and S runs:
    each instance may be the truth, and the difference there is the mean of ``d[i]``. Its interval is

    ``mean(d) ± t sqrt(V_instances (1 + 1/n) + V_runs / S)``,

    with ``V_instances`` the variance over i of the means of ``d[i]``, which is what the log leaves open, ``V_runs`` the
    variance over s of the means of ``d[:, s]``, as the luck of run s is the same on all instances, and t Student's
    quantile with n - 1 degrees of freedom: a prediction of the difference on one more instance, the truth (Geisser,
    1993, Section 2.2, for one source of variance). It does not shrink to a point with more instances, and is somewhat
    too wide where runs are few, as their luck is in ``V_instances`` too. A single instance is taken for the truth: then
    the first term is absent, and t has S - 1 degrees of freedom.

    - ``regret`` [candidates, instances, seeds]: at the horizon, of the rounds to come.
    - ``seen``: the rewards seen in these rounds, those of earlier pulls too.
    - ``most`` [instances]: what the best arm would bring in these rounds, in the mean and however late.
    - ``past``: rounds of the history.
    - ``constants``: of tuned candidates, the value chosen and those there were to choose from.
    """

    names: tuple[str, ...]
    regret: Float64[np.ndarray, "candidates instances seeds"]
    seen: Float64[np.ndarray, "candidates instances seeds"]
    most: Float64[np.ndarray, " instances"]
    horizon: int
    past: int
    constants: dict[str, tuple[Any, tuple[Any, ...]]]
    level: float

    @property
    def order(self) -> list[int]:
        """Candidates by mean regret, the best first."""
        return np.argsort(self.regret.mean(axis=(1, 2)), kind="stable").tolist()

    @property
    def best(self) -> str:
        """The candidate with the least mean regret."""
        return self.names[self.order[0]]

    def probability_best(self) -> dict[str, float]:
        """Share of the instances on which a candidate has the least mean regret; of several, each has its part.

        Where runs are few, the luck of these decides too, which takes the shares towards each other.
        """
        means = self.regret.mean(axis=2)
        least = means == means.min(axis=0)
        return dict(zip(self.names, (least / least.sum(axis=0)).mean(axis=1).tolist(), strict=True))

    def difference(self, name: str, to: str | None = None) -> Difference:
        """How many conversions ``name`` loses against another candidate, by default the best; see ``Decision``.

        They are the mean rewards of the arms pulled, whenever they come: the regret of one minus that of the other.

        Raises:
            ValueError: a name that is no candidate.
        """
        first, second = (self.regret[self._index(each)] for each in (name, self.best if to is None else to))
        mean, half = interval(first - second, self.level)
        return Difference(mean, mean - half, mean + half)

    def _index(self, name: str) -> int:
        if name not in self.names:
            raise ValueError(f"Decision: no candidate {name!r}; there are {list(self.names)}")
        return self.names.index(name)

    def table(self) -> "pandas.DataFrame":
        """A row for every candidate, the best first.

        ``regret``, ``conversions`` (what its pulls bring in the mean, however late), ``seen`` (rewards seen in these
        rounds), ``probability_best``, ``lost``, ``low``, ``high`` (see ``difference``), and the ``constant`` that was
        chosen, if any was.

        Raises:
            ImportError: pandas is not installed.
        """
        try:
            import pandas
        except ImportError:
            raise ImportError("Decision.table needs pandas: pip install 'jaxbandit[logs]'") from None
        rows = [row._asdict() for row in self.rows()]
        table = pandas.DataFrame(rows).set_index("candidate")
        return table if self.constants else table.drop(columns="constant")

    def rows(self) -> "list[Row]":
        """What ``table`` shows."""
        best = self.probability_best()
        regrets, seen = self.regret.mean(axis=(1, 2)), self.seen.mean(axis=(1, 2))
        names = [self.names[i] for i in self.order]
        return [
            Row(
                candidate=name,
                regret=float(regrets[i]),
                conversions=float(self.most.mean() - regrets[i]),
                seen=float(seen[i]),
                probability_best=best[name],
                lost=(lost := self.difference(name)).mean,
                low=lost.low,
                high=lost.high,
                constant=self.constants[name][0] if name in self.constants else None,
            )
            for name, i in zip(names, self.order, strict=True)
        ]

    def sentences(self) -> list[str]:
        """The outcome in words, the most important first."""
        best, *others = self.rows()
        candidates, instances, _ = self.regret.shape
        first = f"{best.candidate} brings most"
        if candidates > 1 and instances > 1:
            first += f": it is the best of {candidates} candidates with probability {best.probability_best:.2f}"
        found = [first + "."]
        for row in others:
            lost, low, high, of = map(_grouped, (row.lost, row.low, row.high, best.conversions))
            sure = "" if row.low > 0 else "; it may as well be better"
            what = "conversion" if lost == "1" else "conversions"
            found.append(f"{row.candidate} loses {lost} {what} [{low}, {high}] of {of} against {best.candidate}{sure}.")
        if instances == 1:
            found.append("A single instance is taken for the truth: how sure that is, is not in the intervals.")
        for name, (value, values) in self.constants.items():
            edge = len(values) > 2 and value in (values[0], values[-1])
            found.append(
                f"{name} has the constant {value}, chosen on other instances"
                + ("; it is at the edge of its range, so try wider ones." if edge else ".")
            )
        return found

    def __repr__(self) -> str:
        _, instances, seeds = self.regret.shape
        head = f"{_grouped(self.horizon)} rounds"
        if self.past:
            head += f" after the {_grouped(self.past)} of the history"
        head += f", {instances} instances with {seeds} runs each"
        wide = max(len("candidate"), *map(len, self.names))
        percent = f"{100 * self.level:g} %"
        lines = [f"{'candidate':{wide}}  {'regret':>9}  {'conversions':>11}  {'seen':>9}  P(best)  lost [{percent}]"]
        for row in self.rows():
            lost = "" if row.candidate == self.best else f"{row.lost:.1f} [{row.low:.1f}, {row.high:.1f}]"
            lines.append(
                f"{row.candidate:{wide}}  {row.regret:9.1f}  {row.conversions:11.1f}  {row.seen:9.1f}  "
                f"{row.probability_best:7.2f}  {lost}".rstrip()
            )
        notes = "Conversions are those that the pulls bring, however late; seen are those that came in these rounds."
        return "\n".join([head, "", *lines, "", *self.sentences(), notes])

    def plot(self) -> np.ndarray:
        """Conversions lost against the best, with intervals, and the probability of being the best; the two axes.

        Raises:
            ImportError: the extra ``plot`` is not installed.
        """
        from jaxbandit.decisions.plot import draw

        return draw(self)


def _grouped(x: float | int) -> str:
    """As a whole number, its digits in groups."""
    return f"{round(x):,}".replace(",", " ")


class Row(NamedTuple):
    """One candidate; see ``Decision.table``."""

    candidate: str
    regret: float
    conversions: float
    seen: float
    probability_best: float
    lost: float
    low: float
    high: float
    constant: Any


def interval(d: Float64[np.ndarray, "instances seeds"], level: float) -> tuple[float, float]:
    """Mean and half width of the interval of ``Decision``."""
    from scipy.special import stdtrit  # SciPy comes with JAX; imported here to keep ``import jaxbandit`` light

    instances, seeds = d.shape
    variance = d.mean(axis=0).var(ddof=1) / seeds
    if instances > 1:
        variance += d.mean(axis=1).var(ddof=1) * (1 + 1 / instances)
    freedom = (instances if instances > 1 else seeds) - 1
    return float(d.mean()), float(stdtrit(freedom, (1 + level) / 2) * np.sqrt(variance))
