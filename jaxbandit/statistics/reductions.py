"""Reductions over seeds: the leading axis of what ``simulate_batch`` gives, or the ``seed`` of what ``sweep`` gives."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Real

from jaxbandit import _checks
from jaxbandit._show import show


class MeanCI(NamedTuple):
    """A mean over seeds with its standard error and a confidence interval: labelled arrays if the values were."""

    mean: Any
    low: Any
    high: Any
    standard_error: Any

    def __repr__(self) -> str:
        return show(self)


@runtime_checkable
class Labelled(Protocol):
    """An ``xarray.DataArray``, as in the dataset of a sweep, over ``seed`` (or ``curve``) and others."""

    @property
    def dims(self) -> tuple[Any, ...]: ...

    def to_numpy(self) -> np.ndarray: ...


Values = Real[Array | np.ndarray, "seeds *rest"] | Labelled


def _values(name: str, values: Any, least: int) -> tuple[Float[Array, "seeds *rest"], Callable[[Array], Any]]:
    """The values, seeds first, and what gives a reduction of them the labels that are left."""
    if isinstance(values, tuple):
        raise TypeError(f"{name}: values must be an array, got a {type(values).__name__}; pass its .regret")
    labels: Callable[[Array], Any] = lambda x: x  # noqa: E731
    if isinstance(values, Labelled):
        seeds = [axis for axis, dimension in enumerate(values.dims) if dimension in ("seed", "curve")]
        if not seeds:
            raise ValueError(f"{name}: values need a dimension seed, got {values.dims}; such as data.final_regret")
        labels = partial(_labelled, values, values.dims[seeds[0]])
        values = np.moveaxis(values.to_numpy(), seeds[0], 0)
    values = jnp.asarray(values)
    if values.ndim == 0 or values.shape[0] < least:
        raise ValueError(
            f"{name}: values need at least {least} seed(s) along their first axis, got shape {values.shape}; "
            "pass an array of simulate_batch, such as runs.regret"
        )
    return values if jnp.issubdtype(values.dtype, jnp.floating) else values.astype(float), labels


def _labelled(values: Any, dimension: Any, reduced: Array) -> Any:
    """``reduced`` with the labels of ``values`` but for those of ``dimension``."""
    rest = values.isel({dimension: 0}, drop=True)
    return rest.copy(data=np.asarray(reduced))


def open_interval(name: str, x: float) -> None:
    if not 0 < x < 1:
        raise ValueError(f"{name}: level must lie between 0 and 1, got {x}; 0.95 is usual")


def mean_ci(values: Values, *, level: float = 0.95) -> MeanCI:
    """Mean over seeds with Student's confidence interval, ``mean ± t s / sqrt(n)``.

    ``s`` is the standard deviation with n - 1, ``t`` the quantile of Student's law with n - 1 degrees of freedom.

    Args:
        values: one entry a seed along the first axis, such as ``runs.regret``, or a labelled array with a dimension
            ``seed``, such as ``data.final_regret`` of a sweep, which gives labelled arrays over its other dimensions.
        level: probability that the interval covers the expectation.

    Raises:
        ValueError: fewer than two seeds, or a level outside (0, 1).
    """
    from scipy.special import stdtrit  # SciPy comes with JAX; imported here to keep ``import jaxbandit`` light

    values, labels = _values("mean_ci", values, 2)
    open_interval("mean_ci", level)
    seeds = values.shape[0]
    mean = jnp.mean(values, axis=0)
    standard_error = jnp.std(values, axis=0, ddof=1) / np.sqrt(seeds).item()
    half = standard_error * float(stdtrit(seeds - 1, (1 + level) / 2))
    return MeanCI(*map(labels, (mean, mean - half, mean + half, standard_error)))


def quantiles(values: Values, q: Any) -> Any:
    """Quantiles over seeds, linear between order statistics: row j is the ``q[j]``-quantile.

    Of a labelled array, a labelled array with a dimension ``quantile`` in front.

    Raises:
        ValueError: no seeds, or a q outside [0, 1].
    """
    found, labels = _values("quantiles", values, 1)
    q = jnp.atleast_1d(_checks.floats("quantiles: q", q, "in [0, 1]", "0.5 is the median"))
    rows = jnp.quantile(found, q, axis=0)
    if not isinstance(values, Labelled):
        return rows
    import xarray

    return xarray.concat(
        [labels(row) for row in rows], xarray.DataArray(np.asarray(q), dims="quantile", name="quantile")
    )


def paired_difference(
    first: Values,
    second: Values,
    *,
    level: float = 0.95,
) -> MeanCI:
    """``mean_ci(first - second)``, for two batches with the same key, or two selections of a sweep.

    Run i of both has the same luck (the n-th pull of an arm gives the same reward after the same delay), so that the
    difference varies much less than either batch.

    Raises:
        ValueError: batches of different shapes, or as for ``mean_ci``.
    """
    (x, labels), (y, _) = _values("paired_difference", first, 2), _values("paired_difference", second, 2)
    if x.shape != y.shape:
        raise ValueError(
            f"paired_difference: both batches need the same shape, got {x.shape} and {y.shape}; "
            "run both with the same key, seeds and checkpoints"
        )
    return MeanCI(*map(labels, mean_ci(x - y, level=level)))
