"""Derivatives of the expected regret, each by an estimator that is named and whose target is stated.

A run plays the arm of the highest score: along one path the regret is piecewise constant in almost every parameter, and
its derivative is not the derivative of its mean.
"""

import functools
from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NamedTuple, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_derivatives import SymbolicZero
from jaxtyping import Array, Float

from jaxbandit import _checks
from jaxbandit._show import show
from jaxbandit.engine import tape
from jaxbandit.engine.protocol import plan
from jaxbandit.gradients.differences import (
    DIRECTIONS,
    SMOOTHING,
    RoundedWindow,
    check_range,
    differences,
    regrets,
    shaken,
)
from jaxbandit.gradients.prior import first_of, over_instances, prior_of
from jaxbandit.gradients.relaxed import check_relaxed, relaxed
from jaxbandit.gradients.score import no_score, score
from jaxbandit.instance import Instance
from jaxbandit.laws.combined import PerArm
from jaxbandit.laws.rewards import Deterministic, Discrete
from jaxbandit.policies import Policy, Softmax

Estimator = Literal["auto", "score", "crn", "relaxed"]

FEW = 6
"""Up to so many parameters of an instance "auto" takes central differences."""


class Setting(NamedTuple):
    """What is compiled into an estimate."""

    horizon: int
    seeds: int
    estimator: Estimator


class RegretGradient(NamedTuple):
    """``gradient`` and its standard errors have the structure of what was differentiated. ``estimates`` says of what
    the gradient is an unbiased estimate, if of anything."""

    value: Float[Array, ""]
    gradient: Any
    value_error: Float[Array, ""]
    gradient_error: Any
    estimates: str

    def __repr__(self) -> str:
        return show(self)


def expected_regret(
    instance: Instance,
    policy: Policy | RoundedWindow,
    key: Any,
    *,
    horizon: int,
    seeds: int,
    estimator: Estimator = "auto",
    smoothing: Any = None,
) -> Float[Array, ""]:
    """Mean regret at the horizon over ``seeds`` runs, of which ``jax.grad`` is an estimate of the gradient of its mean.

    With respect to any float leaf of ``instance`` or ``policy``, under ``grad``, ``jvp``, ``vmap`` and ``jit``. The
    runs are those of ``simulate_batch`` with this key.

    - ``"score"``: the likelihood ratio, ``sum over s of (c_s - b_s) (scores of all seen before round s)`` plus the
      derivative of the gaps; c_s is the gap of the arm of round s, b_s its mean over other runs, and a pull counts
      with what is seen of it by the horizon. Unbiased for parameters of the instance, and for those of a ``Softmax``
      policy; second derivatives too. One simulation, whatever the number of parameters.
    - ``"crn"``: ``(R(v + h) - R(v - h)) / 2h`` on the same random tape, h = ``smoothing``. Unbiased for the gradient of
      the regret averaged over ``v - h..v + h``. Two simulations a parameter; with more than 16 parameters two in all,
      in a random direction (evolution strategies): unbiased for the regret under normal noise of standard deviation h.
    - ``"relaxed"``: straight-through, for a ``Softmax`` of ``PatientBandits`` or ``UCB1`` and not for delays. Biased.
      Measured for the means (0.4, 0.7) over 100 rounds: (-36.6, 39.3) for (-36.5, 39.1) at temperature 0.5, (-14.0,
      21.0) for (-14.5, 20.8) at 0.1, (-2 ± 1, 11 ± 1) for (-5.9, 13.5) at 0.05.
    - ``"auto"``: crn for parameters of a policy that plays the best score, of which the expected regret is a step
      function, and for up to 6 parameters of an instance; else score.

    Args:
        instance: the problem; or, with a leading axis in the laws' parameters, a prior's instances, over which the mean
            is taken too. Instance m has the key ``fold_in(key, m)``.
        policy, key, horizon: as for ``simulate_batch``.
        seeds: runs of an instance; at least 2 for the score, whose baseline is the mean over the others.
        estimator: how to differentiate.
        smoothing: h of "crn", in the units of the parameters; 0.03 by default, 0.5 for a ``RoundedWindow``.

    Raises:
        TypeError, ValueError: as for ``simulate_batch``, and for an unknown estimator, fewer than 2 seeds with a score,
            a smoothing <= 0 or that takes a parameter out of its range (unchecked where numbers are traced, as in jit).
        ValueError: an estimator that the differentiated parameter does not have; the message names one that it has.
    """
    pair, words, setting, smoothing = _checked((instance, policy), key, horizon, seeds, estimator, smoothing)
    if prior_of(instance)[0] is None:
        return _regret(setting, *pair, words, smoothing)
    return _mean_over_prior(setting, *pair, words, smoothing)


def regret_and_gradient(
    instance: Instance,
    policy: Policy | RoundedWindow,
    key: Any,
    *,
    horizon: int,
    seeds: int,
    estimator: Estimator = "auto",
    smoothing: Any = None,
    wrt: Callable[[Any, Any], Any] | None = None,
) -> RegretGradient:
    """The value and gradient of ``expected_regret``, with standard errors and what they are estimates of.

    Args:
        instance, policy, key, horizon, estimator, smoothing: as for ``expected_regret``.
        seeds: at least 2.
        wrt: what to differentiate, such as ``lambda instance, policy: (instance.reward.mean, policy.alpha)``; by
            default all floats of both, as a pair of an instance and a policy.

    Raises:
        TypeError: a leaf of ``wrt`` that is an integer, or no leaf at all.
        TypeError, ValueError: as for ``expected_regret``.
    """
    pair, words, setting, smoothing = _checked((instance, policy), key, horizon, seeds, estimator, smoothing)
    if setting.seeds < 2:
        raise ValueError("seeds must be at least 2 for a standard error, got 1")
    wanted, pick_out = _wanted(pair, wrt)
    methods = _methods(setting, (first_of(pair[0]), pair[1]), wanted)
    if "crn" in methods:
        check_range(*eqx.partition(pair, methods["crn"]), smoothing)
    value, gradient = _by_run(setting, wanted, pair, words, smoothing)
    prior, own = prior_of(instance)
    is_wanted = jax.tree.unflatten(jax.tree.structure(pair), wanted)
    own = eqx.filter((own, jax.tree.map(lambda _: False, policy)), is_wanted)
    return RegretGradient(
        value=_mean(value, False, prior),
        gradient=pick_out(jax.tree.map(lambda x, own: _mean(x, own, prior), gradient, own)),
        value_error=_error(value, False, prior),
        gradient_error=pick_out(jax.tree.map(lambda x, own: _error(x, own, prior), gradient, own)),
        estimates=_sentence(methods, smoothing),
    )


def _mean(by_run: Array, own: bool, prior: int | None) -> Array:
    """Over seeds and, of what is not each instance's own, over the instances of a prior."""
    if own:
        assert prior is not None
        return jnp.mean(by_run, axis=1) / prior
    return jnp.mean(by_run, axis=0 if prior is None else (0, 1))


def _error(by_run: Array, own: bool, prior: int | None) -> Array:
    """Its standard error: of instances that are drawn from a prior, where there is one."""
    if own:
        assert prior is not None
        return jnp.std(by_run, axis=1, ddof=1) / np.sqrt(by_run.shape[1]).item() / prior
    values = by_run if prior is None else jnp.mean(by_run, axis=1)
    return jnp.std(values, axis=0, ddof=1) / np.sqrt(values.shape[0]).item()


def _checked(
    pair: tuple[Any, Any], key: Any, horizon: int, seeds: int, estimator: Estimator, smoothing: Any
) -> tuple[Any, tape.Words, Setting, Float[Array, ""]]:
    instance, policy = pair
    words = tape.words(key)
    rounded = isinstance(policy, RoundedWindow)
    plan(first_of(instance), policy.at(words) if rounded else policy, horizon, None)
    seeds = _checks.whole_number("seeds", seeds, 1, 2**31 - 1, "give the number of runs")
    if estimator not in get_args(Estimator):
        raise ValueError(f"estimator must be one of {', '.join(get_args(Estimator))}, got {estimator!r}")
    if smoothing is not None and estimator in ("score", "relaxed"):
        raise ValueError(f"smoothing is for estimator='crn', and estimator={estimator!r} does not smooth; leave it out")
    if rounded and estimator in ("score", "relaxed"):
        raise ValueError(f"estimator={estimator!r} does not know RoundedWindow; use estimator='crn'")
    default = 0.5 if rounded else SMOOTHING
    mend = f"leave it out for {default}"
    smoothing = _checks.floats("smoothing", default if smoothing is None else smoothing, "finite and > 0", mend)
    if smoothing.ndim:
        raise ValueError(f"smoothing must be a single number, got an array of shape {smoothing.shape}; {mend}")
    return jax.tree.map(jnp.asarray, pair), words, Setting(int(horizon), seeds, estimator), smoothing


# The function that is differentiated.


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _regret(
    setting: Setting, instance: Instance, policy: Any, words: tape.Words, smoothing: Float[Array, ""]
) -> Float[Array, ""]:
    return jnp.mean(regrets(instance, policy, words, setting.horizon, setting.seeds))


def _regret_jvp(setting: Setting, primals: Any, tangents: Any) -> tuple[Array, Array]:
    instance, policy, words, smoothing = primals
    pair = (instance, policy)
    if not isinstance(tangents[3], SymbolicZero):
        raise TypeError("smoothing cannot be differentiated; put jax.lax.stop_gradient around it")
    wanted = tuple(not isinstance(tangent, SymbolicZero) for tangent in jax.tree.leaves(tangents[:2]))
    value, change = None, jnp.zeros(())
    for method, mask in _methods(setting, pair, wanted).items():
        chosen, rest = eqx.partition(pair, mask)
        if method == "score":
            value, gradient = score(chosen, rest, words, horizon=setting.horizon, seeds=setting.seeds, per_run=False)
        elif method == "crn":
            check_range(chosen, rest, smoothing)
            gradient = differences(chosen, rest, smoothing, _mean_regret(setting), words, smoothing)
        else:
            by_run = _other_methods[method](chosen, rest, smoothing, words, setting)
            gradient = jax.tree.map(partial(jnp.mean, axis=0), by_run)
        products = jax.tree.map(lambda g, t: jnp.sum(g * t), gradient, eqx.filter(tangents[:2], mask))
        change = sum(jax.tree.leaves(products), change)
    return (_regret(setting, *pair, words, smoothing) if value is None else value), change


_regret.defjvp(_regret_jvp, symbolic_zeros=True)


@functools.cache
def _mean_regret(setting: Setting) -> Callable[..., Array]:
    return partial(_regret, setting)


@functools.cache
def _regrets(setting: Setting) -> Callable[..., Array]:
    return partial(regrets, horizon=setting.horizon, seeds=setting.seeds)


_other_methods: dict[str, Callable[..., Any]] = {
    "shaken": lambda chosen, rest, smoothing, words, setting: shaken(
        chosen, rest, smoothing, words, horizon=setting.horizon, seeds=setting.seeds
    ),
    "relaxed": lambda chosen, rest, smoothing, words, setting: relaxed(
        chosen, rest, words, horizon=setting.horizon, seeds=setting.seeds
    ),
}


@partial(jax.jit, static_argnames=("setting", "wanted"))
def _by_run(
    setting: Setting, wanted: tuple[bool, ...], pair: Any, words: tape.Words, smoothing: Float[Array, ""]
) -> tuple[Float[Array, "*M seeds"], Any]:
    """Regret and gradient of every run."""
    if prior_of(pair[0])[0] is not None:
        one = lambda instance, key: _by_run(setting, wanted, (instance, pair[1]), key, smoothing)  # noqa: E731
        return over_instances(one, pair[0], words, setting.seeds)
    value, gradient = None, jax.tree.map(lambda _: None, pair)
    for method, mask in _methods(setting, pair, wanted).items():
        chosen, rest = eqx.partition(pair, mask)
        if method == "score":
            value, part = score(chosen, rest, words, horizon=setting.horizon, seeds=setting.seeds, per_run=True)
        elif method == "crn":
            part = differences(chosen, rest, smoothing, _regrets(setting), words)
        else:
            part = _other_methods[method](chosen, rest, smoothing, words, setting)
        gradient = eqx.combine(gradient, part)
    return (_regrets(setting)(*pair, words) if value is None else value), gradient


# Which estimator for which parameter.


def _methods(setting: Setting, pair: tuple[Instance, Any], wanted: tuple[bool, ...]) -> dict[str, Any]:
    """For every method that is needed, which leaves of (instance, policy) it differentiates."""
    leaves, structure = jax.tree.flatten(pair)
    of_instance = len(jax.tree.leaves(pair[0]))
    soft, moves_values = isinstance(pair[1], Softmax), _moved_values(pair[0], wanted)
    size = sum(leaf.size for leaf, is_wanted in zip(leaves[:of_instance], wanted, strict=False) if is_wanted)
    first = second = setting.estimator
    if setting.estimator == "auto":
        first = "crn" if size <= FEW or moves_values or isinstance(pair[1], RoundedWindow) else "score"
        second = "score" if soft else "crn"
    methods = [first] * of_instance + [second] * (len(leaves) - of_instance)
    used = {method for method, is_wanted in zip(methods, wanted, strict=True) if is_wanted}
    if second == "score" and not soft and any(wanted[of_instance:]):
        raise ValueError(no_score(pair[1]))
    if first == "score" and moves_values:
        raise ValueError(
            f"estimator='score' cannot differentiate the values that {moves_values} rewards take, only their "
            "probabilities; use estimator='crn'"
        )
    if "score" in used and setting.seeds < 2:
        raise ValueError("seeds must be at least 2 for a score, whose baseline is the mean over the other runs, got 1")
    if "relaxed" in used:
        check_relaxed(pair[1], structure.unflatten(wanted))
    masks = {
        method: structure.unflatten([m == method and w for m, w in zip(methods, wanted, strict=True)])
        for method in sorted(used)
    }
    if "crn" in masks and sum(x.size for x in jax.tree.leaves(eqx.filter(pair, masks["crn"]))) > DIRECTIONS:
        masks["shaken"] = masks.pop("crn")
    return masks


def _moved_values(instance: Instance, wanted: tuple[bool, ...]) -> str:
    """The reward law whose values, not probabilities, are to be differentiated; "" if there is none."""
    leaves, structure = jax.tree.flatten(instance)
    reward = structure.unflatten(wanted[: len(leaves)]).reward
    for law in reward.laws if isinstance(reward, PerArm) else (reward,):
        if (isinstance(law, Deterministic) and law.mean) or (isinstance(law, Discrete) and law.table.values):
            return type(law).__name__
    return ""


def _sentence(methods: dict[str, Any], smoothing: Float[Array, ""]) -> str:
    h = "smoothing" if _checks.is_traced(smoothing) else f"{float(smoothing):.3g}"
    told = {
        "score": "score: unbiased for the gradient of the expected regret",
        "crn": f"crn: unbiased for the gradient of the expected regret averaged over each parameter ± {h}",
        "shaken": f"crn: unbiased for the gradient of the expected regret under normal noise of scale {h} on all "
        "parameters",
        "relaxed": "relaxed: biased for the gradient of the expected regret",
    }
    return "; ".join(told[method] for method in methods)


class _Place:
    """Stands for a leaf while ``wrt`` picks."""

    def __init__(self, number: int):
        self.number = number


def _wanted(
    pair: tuple[Instance, Any], wrt: Callable[[Any, Any], Any] | None
) -> tuple[tuple[bool, ...], Callable[[Any], Any]]:
    """Which leaves of the pair are differentiated, and what takes them out of a pair of gradients."""
    leaves, structure = jax.tree.flatten(pair)
    floats = [jnp.issubdtype(leaf.dtype, jnp.floating) for leaf in leaves]
    if wrt is None:
        return tuple(floats), lambda gradient: gradient
    picked = jax.tree.leaves(wrt(*structure.unflatten([_Place(i) for i in range(len(leaves))])))
    if not picked or not all(isinstance(place, _Place) for place in picked):
        raise TypeError(
            "wrt must pick parameters, such as lambda instance, policy: (instance.reward.mean, policy.alpha)"
        )
    numbers = [place.number for place in picked]
    for number in numbers:
        if not floats[number]:
            raise TypeError(
                f"wrt picks a parameter of type {leaves[number].dtype}, which has no derivative; "
                "for a window use jaxbandit.RoundedWindow"
            )
    return tuple(i in numbers for i in range(len(leaves))), lambda gradient: wrt(*gradient)


@partial(jax.jit, static_argnames="setting")
def _mean_over_prior(
    setting: Setting, instance: Instance, policy: Any, words: tape.Words, smoothing: Float[Array, ""]
) -> Float[Array, ""]:
    one = lambda instance, key: _regret(setting, instance, policy, key, smoothing)  # noqa: E731
    return jnp.mean(over_instances(one, instance, words, setting.seeds))
