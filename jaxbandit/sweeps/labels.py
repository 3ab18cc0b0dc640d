"""From the blocks of a sweep to labelled arrays."""

import inspect
import platform
from collections.abc import Callable
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jaxtyping import Float, Float64

from jaxbandit.sweeps.exact import diagnostic_mean, standard_error
from jaxbandit.sweeps.store import Plan

if TYPE_CHECKING:
    import xarray

PACKAGES = ("jaxbandit", "jax", "jaxlib", "numpy")
REWARD = "reward"


def assembled(spec: Any, group: Any, plan: Plan, q: np.ndarray, *, with_curves: bool) -> dict[str, np.ndarray]:
    """The variables of the dataset, with one leading axis of cells, in the order of the grid.

    The blocks of a row of cells are read at a time.
    """
    rows = [_row(spec, group, plan, i, q, with_curves) for i in range(plan.shape[0])]
    index = {tuple(cell): at for at, cell in enumerate(plan.values)}
    order = [index[tuple(cell.values())] for cell in spec.cells.values]
    variables = {name: np.concatenate([row.pop(name) for row in rows])[order] for name in list(rows[0])}
    gaps = np.asarray(jax.vmap(lambda instance: instance.gaps)(spec.cells.instances), np.float64)
    return variables | {"regret_mean": np.einsum("cprk,ck->cpr", variables["pulls_mean"], gaps)}


def _row(spec: Any, group: Any, plan: Plan, i: int, q: np.ndarray, with_curves: bool) -> dict[str, np.ndarray]:
    cells = plan.cell_edges[i + 1] - plan.cell_edges[i]
    blocks = [(j, *plan.seed_edges[j : j + 2]) for j in range(plan.shape[1])]

    def total(name: str) -> np.ndarray:
        return np.sum([group[name][i, j][:cells] for j, _, _ in blocks], axis=0)

    def runs(name: str, kept: int) -> Float[np.ndarray, "cells policies *shape kept"]:
        parts = [group[name][i, j][:cells, ..., : min(b, kept) - a] for j, a, b in blocks if a < kept]
        return np.concatenate(parts, axis=-1)

    final = runs("final_regret", spec.seeds)
    row = {
        "final_regret": final,
        "regret_standard_error": standard_error(total("regret"), spec.rounds, spec.seeds),
        "regret_quantile": np.full((*final.shape[:2], len(spec.rounds), len(q)), np.nan),
        "pulls_mean": total("pulls") / spec.seeds,
    }
    if spec.kept:
        curves = runs("curve", min(spec.kept, spec.seeds))
        if with_curves:
            row["regret_curve"] = np.moveaxis(curves.copy(), -1, -2)
        curves.sort(axis=-1)
        row["regret_quantile"] = quantiles(curves, q)
    row["regret_quantile"][:, :, -1] = quantiles(np.sort(final, axis=-1), q)
    if spec.diagnostics:
        means = diagnostic_mean(total("diagnostics"), spec.seeds)
        means = np.where(np.array(spec.reported)[:, :, None], means, np.nan)
        row |= {f"{name}_mean": means[:, :, d] for d, name in enumerate(spec.diagnostics)}
    return row


def quantiles(in_order: Float[np.ndarray, "*shape n"], q: Float[np.ndarray, " Q"]) -> Float64[np.ndarray, "*shape Q"]:
    """Linear between order statistics: what ``np.quantile`` gives, which selects more slowly than NumPy sorts."""
    place = q * (in_order.shape[-1] - 1)
    below, above = (in_order[..., side(place).astype(int)].astype(np.float64) for side in (np.floor, np.ceil))
    return below + (above - below) * (place % 1)


def labelled(spec: Any, variables: dict[str, np.ndarray], q: np.ndarray, build: Callable[..., Any]) -> "xarray.Dataset":
    """The dataset: dimensions of the grid for the axis of cells, and a long name and unit for everything."""
    import xarray

    beyond = {
        "regret_mean": (("round",), "mean regret", REWARD),
        "regret_standard_error": (("round",), "standard error of the mean regret", REWARD),
        "regret_quantile": (("round", "quantile"), "quantile of the regret", REWARD),
        "pulls_mean": (("round", "arm"), "mean number of pulls", "pulls"),
        "final_regret": (("seed",), f"regret at T = {spec.horizon}", REWARD),
        "regret_curve": (("curve", "round"), "regret", REWARD),
    }
    beyond |= {f"{name}_mean": (("round",), f"mean of {name}", "") for name in spec.diagnostics}
    grid = tuple(axis.dimension for axis in spec.axes)
    lengths = tuple(len(axis) for axis in spec.axes)
    data = {
        name: (
            (*grid, "policy", *beyond[name][0]),
            values.reshape(*lengths, *values.shape[1:]),
            _named(*beyond[name][1:]),
        )
        for name, values in variables.items()
    }
    coordinates: dict[str, Any] = {
        name: (axis.dimension, values, _named(name)) for axis in spec.axes for name, values in axis.values.items()
    }
    coordinates |= {
        "policy": ("policy", np.array(spec.cells.names, object), _named("policy")),
        "round": ("round", spec.rounds, _named("round t")),
        "arm": ("arm", np.arange(spec.num_arms), _named("arm")),
        "seed": ("seed", np.arange(spec.seeds), _named("seed: the key is fold_in(key, seed)")),
        "quantile": ("quantile", q, _named("quantile")),
    }
    if "regret_curve" in data:
        coordinates["curve"] = ("curve", np.arange(min(spec.kept, spec.seeds)), _named("seed"))
    return xarray.Dataset(data, coordinates, _attributes(spec, build))


def _named(name: str, units: str = "") -> dict[str, str]:
    return {"long_name": name} | ({"units": units} if units else {})


def _attributes(spec: Any, build: Callable[..., Any]) -> dict[str, Any]:
    """What it takes to run the sweep again, in types that NetCDF knows."""
    try:
        source = inspect.getsource(build)
    except (OSError, TypeError):
        source = "not available"
    return {
        "title": "sweep of stochastic bandits with delayed rewards",
        "build": source,
        "horizon": spec.horizon,
        "seeds": spec.seeds,
        "key": spec.words.tolist(),
        "curves": spec.kept,
        "x64": int(spec.x64),
        "device": f"{spec.platform}: {jax.local_devices(backend=spec.platform)[0].device_kind}",
        "python": platform.python_version(),
    } | {package: version(package) for package in PACKAGES}
