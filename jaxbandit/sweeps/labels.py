"""From the blocks of a sweep, finished or not, to labelled arrays."""

import inspect
import platform
from collections.abc import Callable
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float, Float64

from jaxbandit.sweeps import grid
from jaxbandit.sweeps.exact import diagnostic_mean, standard_error
from jaxbandit.sweeps.grid import Axis
from jaxbandit.sweeps.store import Store

if TYPE_CHECKING:
    import xarray

PACKAGES = ("jaxbandit", "jax", "jaxlib", "numpy")
REWARD = "reward"
ARM_GAP = "arm_gap"


class Request(NamedTuple):
    """What a call asked for, as far as its result shows it; ``curves`` as it was given."""

    axes: tuple[Axis, ...]
    policies: list[str]
    seeds: int
    curves: int | None
    quantiles: np.ndarray
    horizon: int
    rounds: np.ndarray
    dtype: np.dtype
    attributes: dict[str, Any]
    rewards: bool = False

    def to_json(self) -> dict[str, Any]:
        axes = [
            {
                "dimension": axis.dimension,
                "values": {name: values.tolist() for name, values in axis.values.items()},
                "types": {name: values.dtype.name for name, values in axis.values.items()},
            }
            for axis in self.axes
        ]
        lists = {"quantiles": self.quantiles.tolist(), "rounds": self.rounds.tolist()}
        return self._asdict() | lists | {"axes": axes, "dtype": self.dtype.name}

    @classmethod
    def from_json(cls, stored: Any) -> "Request":
        request = cls(**stored)
        axes = tuple(
            Axis(axis["dimension"], {n: np.array(v, axis["types"][n]) for n, v in axis["values"].items()})
            for axis in stored["axes"]
        )
        return request._replace(
            axes=axes,
            quantiles=np.array(request.quantiles, np.float64),
            rounds=np.array(request.rounds, np.int32),
            dtype=np.dtype(request.dtype),
        )


def dataset(store: Store) -> "xarray.Dataset":
    """What the last call on a store asked for, NaN where it is not there yet."""
    request = Request.from_json(store.request)
    kept = store.plan.kept if request.curves is None else min(request.curves, store.plan.kept)
    variables, done = assembled(store, request, min(kept, request.seeds))
    return labelled(store, request, variables, {"curves": kept, "done": done})


def _variables(store: Store, request: Request) -> dict[str, tuple[tuple[str, ...], str, str]]:
    """Dimensions after the grid's and the policy's, long name and unit."""
    diagnostics = sorted({name for policy in request.policies for name in store.plan.policies[policy].diagnostics})
    found = {
        "regret_standard_error": (("round",), "standard error of the mean regret", REWARD),
        "regret_quantile": (("round", "quantile"), "quantile of the regret", REWARD),
        "pulls_mean": (("round", "arm"), "mean number of pulls", "pulls"),
        "final_regret": (("seed",), f"regret at T = {request.horizon}", REWARD),
        "regret_curve": (("curve", "round"), "regret", REWARD),
    }
    if request.curves is None:
        del found["regret_curve"]
    if request.rewards:
        found["final_rewards"] = (("seed",), f"rewards seen by T = {request.horizon}", REWARD)
    for name in diagnostics:
        earned = name in grid.EARNED
        of = name.replace("_", " ") if earned else f"of {name}"
        found[f"{name}_mean"] = (("round",), f"mean {of}", REWARD if earned else "")
    return found


PER_RUN = ("final_regret", "final_rewards", "regret_curve")
"""In the precision of a run, and shown as soon as they are there; statistics wait for all runs of a cell."""


def assembled(store: Store, request: Request, kept: int) -> tuple[dict[str, np.ndarray], float]:
    """The variables of the dataset, with one leading axis of cells, in the order of the grid, and the share done.

    The blocks of a row of cells are read at a time.
    """
    plan = store.plan
    values = [list(cell.values()) for cell in grid.values_of(request.axes)]
    places, columns = plan.places(values), plan.columns(request.seeds)
    sizes = {"round": len(request.rounds), "arm": store.gaps.shape[1], "seed": request.seeds, "curve": kept}
    sizes["quantile"] = len(request.quantiles)
    variables = {
        name: np.full(
            (len(values), len(request.policies), *(sizes[dimension] for dimension in dimensions)),
            np.nan,
            request.dtype if name in PER_RUN else np.float64,
        )
        for name, (dimensions, _, _) in _variables(store, request).items()
    }
    share = 0.0
    for p, policy in enumerate(request.policies):
        done = store.done(policy)
        for i in plan.rows(places):
            first, last, _, _ = plan.extent(i, 0)
            here = np.flatnonzero((places >= first) & (places < last))
            ready = [j for j in columns if done[i, j]]
            share += len(here) * sum(plan.extent(i, j)[3] - plan.extent(i, j)[2] for j in ready)
            for name, of_row in _row(store, policy, i, places[here] - first, columns, ready, request, kept).items():
                variables[name][here, p] = of_row
    mean = np.einsum("cprk,ck->cpr", variables["pulls_mean"], store.gaps[places])
    return {"regret_mean": mean} | variables, share / (len(values) * len(request.policies) * request.seeds)


def _row(
    store: Store,
    policy: str,
    i: int,
    inside: np.ndarray,
    columns: list[int],
    ready: list[int],
    request: Request,
    kept: int,
) -> dict[str, np.ndarray]:
    """Of the cells ``inside`` a row of blocks, of which ``ready`` are done."""
    arrays, plan, seeds = store.blocks[policy], store.plan, request.seeds

    def total(name: str) -> np.ndarray:
        return np.sum([arrays[name][i, j][inside] for j in columns], axis=0)

    def runs(name: str, most: int, shape: tuple[int, ...]) -> Float[np.ndarray, "cells *shape most"]:
        found = np.full((len(inside), *shape, most), np.nan, request.dtype)
        for j in ready:
            _, _, a, b = plan.extent(i, j)
            if a < most:
                found[..., a : min(b, most)] = arrays[name][i, j][inside][..., : min(b, most) - a]
        return found

    final = runs("final_regret", seeds, ())
    row = {"final_regret": final}
    if request.rewards:
        row["final_rewards"] = runs("final_rewards", seeds, ())
    curves = runs("curve", kept, (len(request.rounds),)) if kept else None
    if request.curves is not None and curves is not None:
        row["regret_curve"] = np.moveaxis(curves.copy(), -1, -2)
    if ready != columns:
        return row
    quantile = np.full((len(inside), len(request.rounds), len(request.quantiles)), np.nan)
    if curves is not None:
        curves.sort(axis=-1)
        quantile = quantiles(curves, request.quantiles)
    quantile[:, -1] = quantiles(np.sort(final, axis=-1), request.quantiles)
    row |= {
        "regret_standard_error": standard_error(total("regret"), request.rounds, seeds),
        "regret_quantile": quantile,
        "pulls_mean": total("pulls") / seeds,
    }
    if names := plan.policies[policy].diagnostics:
        means = diagnostic_mean(total("diagnostics"), seeds)
        row |= {f"{name}_mean": means[:, d] for d, name in enumerate(names)}
    return row


def quantiles(in_order: Float[np.ndarray, "*shape n"], q: Float[np.ndarray, " Q"]) -> Float64[np.ndarray, "*shape Q"]:
    """Linear between order statistics: what ``np.quantile`` gives, which selects more slowly than NumPy sorts."""
    place = q * (in_order.shape[-1] - 1)
    below, above = (in_order[..., side(place).astype(int)].astype(np.float64) for side in (np.floor, np.ceil))
    return below + (above - below) * (place % 1)


def labelled(
    store: Store, request: Request, variables: dict[str, np.ndarray], found: dict[str, Any]
) -> "xarray.Dataset":
    """The dataset: dimensions of the grid for the axis of cells, and a long name and unit for everything."""
    import xarray

    beyond = {"regret_mean": (("round",), "mean regret", REWARD)} | _variables(store, request)
    shape = tuple(axis.dimension for axis in request.axes)
    lengths = tuple(len(axis) for axis in request.axes)
    gaps = store.gaps[store.plan.places([list(cell.values()) for cell in grid.values_of(request.axes)])]
    data = {
        name: (
            (*shape, "policy", *beyond[name][0]),
            values.reshape(*lengths, *values.shape[1:]),
            _named(*beyond[name][1:]),
        )
        for name, values in variables.items()
    }
    coordinates: dict[str, Any] = {
        name: (axis.dimension, values, _named(name)) for axis in request.axes for name, values in axis.values.items()
    }
    coordinates |= {
        "policy": ("policy", np.array(request.policies, object), _named("policy")),
        "round": ("round", request.rounds, _named("round t")),
        ARM_GAP: ((*shape, "arm"), gaps.reshape(*lengths, -1), _named("gap of the arm", REWARD)),
        "arm": ("arm", np.arange(store.gaps.shape[1]), _named("arm")),
        "seed": ("seed", np.arange(request.seeds), _named("seed: the key is fold_in(key, seed)")),
        "quantile": ("quantile", request.quantiles, _named("quantile")),
    }
    if "regret_curve" in data:
        coordinates["curve"] = ("curve", np.arange(variables["regret_curve"].shape[2]), _named("seed"))
    return xarray.Dataset(data, coordinates, request.attributes | found)


def _named(name: str, units: str = "") -> dict[str, str]:
    return {"long_name": name} | ({"units": units} if units else {})


def attributes(spec: Any, build: Callable[..., Any]) -> dict[str, Any]:
    """What it takes to run the sweep again, in types that NetCDF knows."""
    try:
        source = inspect.getsource(build)
    except (OSError, TypeError):
        source = "not available"
    return (
        {
            "title": "sweep of stochastic bandits with delayed rewards",
            "build": source,
            "horizon": spec.horizon,
            "seeds": spec.seeds,
            "key": spec.words.tolist(),
            "x64": int(spec.x64),
            "device": f"{spec.platform}: {jax.local_devices(backend=spec.platform)[0].device_kind}",
            "python": platform.python_version(),
        }
        | ({} if spec.history is None else {"history": len(spec.history)})
        | {p: version(p) for p in PACKAGES}
    )
