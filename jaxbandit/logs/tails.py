"""The tail index of Assumptions 1 and 2, as far as the ages seen support one."""

from typing import NamedTuple

import numpy as np

from jaxbandit.logs.fit import LogFit


class Tail(NamedTuple):
    """``tail_index``, and the rounds that were looked at; NaN where the band allows any."""

    tail_index: float
    first: int
    last: int


def assumption1(fit: LogFit, k: int) -> Tail:
    """The largest α with ``P(D > m) <= m^-α`` that the band allows, for m from 2 to the largest age of arm k.

    ``P(D > m)`` is at least ``1 - high(m) / rate``, with the upper band of the incidence and the fitted rate.
    """
    edges, high, rate = fit.table.edges, fit.curves.high[k], fit.arms[k].best.rate
    with np.errstate(invalid="ignore"):
        least = 1 - high / rate
        some = (edges >= 2) & (least > 0)
    if not some.any():
        return Tail(float("nan"), 2, fit.arms[k].identified_until)
    alphas = -np.log(least[some]) / np.log(edges[some])
    return Tail(float(alphas.min()), 2, int(edges[some][-1]))


def assumption2(fit: LogFit, k: int, tail_index: float) -> float:
    """The largest c with ``P(D > m) >= c m^-tail_index`` that the band allows over the ages seen of arm k."""
    edges, low, rate = fit.table.edges[1:], fit.curves.low[k][1:], fit.arms[k].best.rate
    known = ~np.isnan(low)
    return float(np.min(np.maximum(1 - low[known] / rate, 0) * edges[known] ** tail_index))
