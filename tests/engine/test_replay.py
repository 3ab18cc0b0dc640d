"""Policies pull the arms that independent implementations pull."""

import functools
import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.engine import tape
from jaxbandit.policies import beta
from tests import reference
from tests.examples import refused

CASES = Path(__file__).parents[1] / "cases"
INDEX = json.loads((CASES / "index.json").read_text())
TABLES = np.load(CASES / "trajectories.npz")
WARMUPS = {"K": "arms", "m+K": "window"}


def policy_of(name: str, params: dict[str, Any]) -> jb.Policy:
    """The policy that a case was made with."""
    if name == "ucb1":
        return jb.UCB1()
    if name == "delayed_ucb1":
        return jb.DelayedUCB1()
    if name.startswith("patient_bandits"):
        return jb.PatientBandits(jb.corollary1_alpha if params["alpha"] == "corollary 1" else params["alpha"])
    if name.startswith("adapt"):
        return jb.AdaptPatientBandits(**params)
    if name.startswith("discarding"):
        return jb.Discarding(**params)
    kind = {"d_ucb": jb.DUCB, "dkl_u": jb.DKLUCB}[name[:5]]
    assert params["tau"] == "pareto 0.7"
    return kind(params["window"], jb.Pareto(0.7), warmup=WARMUPS[params["warmup"]])


@pytest.mark.parametrize("x64", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["float32", "x64"])
@pytest.mark.parametrize("case", INDEX)
def test_the_arms_of_every_case_are_pulled(case: str, x64: bool):
    with jax.enable_x64(x64):
        policy = policy_of(case.split("/")[0], INDEX[case]["params"])
        trace = jb.replay(TABLES[f"{case}/rewards"], TABLES[f"{case}/delays"], policy)
        np.testing.assert_array_equal(trace.arms, TABLES[f"{case}/arms"])


def test_all_cases_are_there():
    assert len(INDEX) == 130


def pareto(tail_index: float):
    return lambda m: np.where(m >= 1, 1 - np.maximum(m, 1.0) ** -tail_index, 0.0)


@functools.cache
def uniforms_of_round(t: int, dtype: str) -> np.ndarray:
    """What the draws of a round are made from, [arms, 2, 2]: both sides are given the same."""
    words = tape.words(tape.policy_key(jnp.zeros(2, jnp.uint32), jnp.int32(t)))
    of_all = jnp.stack([jnp.stack(beta.uniforms(words, i, 5), axis=-1) for i in (0, 1)], axis=1)
    assert of_all.dtype == dtype
    return np.asarray(of_all, float)


def uniforms(t: int, arm: int) -> np.ndarray:
    return uniforms_of_round(t, str(jnp.result_type(float)))[arm]


PAIRS = {
    "UCB1": (jb.UCB1, reference.ucb1),
    "PatientBandits": (lambda: jb.PatientBandits(0.2, 0.3, 1.5), reference.patient_bandits(0.2, 0.3, 1.5)),
    "schedule": (lambda: jb.PatientBandits(jb.corollary1_alpha), reference.patient_bandits(reference.corollary1)),
    "adaptive": (
        lambda: jb.AdaptPatientBandits(0.7, 0.5, 0.1, lcb_scale=0.2),
        reference.adapt_patient_bandits(0.7, 0.5, 0.1, lcb_scale=0.2),
    ),
    "DUCB": (lambda: jb.DUCB(7, jb.Pareto(0.7)), reference.ducb(7, pareto(0.7))),
    "DUCB warm-up": (lambda: jb.DUCB(5, jb.Pareto(0.4), "window"), reference.ducb(5, pareto(0.4), "window")),
    "DUCB uncensored": (lambda: jb.DUCB(None, jb.Pareto(0.7)), reference.ducb(None, pareto(0.7))),
    "DKLUCB": (lambda: jb.DKLUCB(40, jb.Pareto(0.7)), reference.dkl_ucb(40, pareto(0.7))),
    "DKLUCB uncensored": (lambda: jb.DKLUCB(None, jb.Pareto(0.7)), reference.dkl_ucb(None, pareto(0.7))),
    "Discarding": (lambda: jb.Discarding(6), reference.discarding(6)),
    "DelayedUCB1": (jb.DelayedUCB1, reference.delayed_ucb1),
    "Uniform": (jb.Uniform, reference.uniform),
    "KLUCB": (jb.KLUCB, reference.klucb()),
    "DelayedKLUCB": (lambda: jb.DelayedKLUCB(3), reference.delayed_klucb(3)),
    "SuccessiveElimination": (jb.SuccessiveElimination, reference.successive_elimination()),
    "OTFLinUCB": (lambda: jb.OTFLinUCB(6, 0.5, 0.2), reference.otf_lin_ucb(6, 0.5, 0.2)),
    "ODAAF": (lambda: jb.ODAAF(0.0), reference.odaaf(0.0)),
    "ODAAF told of delays": (lambda: jb.ODAAF(2.5), reference.odaaf(2.5)),
    "Windowed": (lambda: jb.Windowed(jb.DelayedUCB1(), 6), reference.windowed_ucb1(6)),
    "Batched": (lambda: jb.Batched(jb.UCB1(), 7), reference.batched(reference.ucb1, 7)),
    "Batched DUCB": (
        lambda: jb.Batched(jb.DUCB(40, jb.Pareto(0.7)), 20),
        reference.batched(reference.ducb(40, pareto(0.7)), 20),
    ),
    "Queued": (lambda: jb.Queued(jb.UCB1()), reference.queued(reference.ucb1)),
    "Queued feedback": (lambda: jb.Queued(jb.DelayedUCB1()), reference.queued(reference.delayed_ucb1)),
    "Thompson": (jb.Thompson, reference.thompson(uniforms)),
    "Thompson, other prior": (lambda: jb.Thompson(0.2, 3.0), reference.thompson(uniforms, 0.2, 3.0)),
    "DelayedThompson": (lambda: jb.DelayedThompson(0.5, 0.5), reference.delayed_thompson(uniforms, 0.5, 0.5)),
    "CorrectedThompson": (
        lambda: jb.CorrectedThompson(jb.Pareto(0.7), 9),
        reference.corrected_thompson(uniforms, 9, pareto(0.7)),
    ),
}


TAILS = (0.7, 0.3, 2.0, 0.5, 1.2)
BY_ARM = {
    "DUCB by arm": (lambda law: jb.DUCB(7, law), lambda cdfs: reference.ducb(7, cdfs)),
    "DUCB uncensored by arm": (lambda law: jb.DUCB(None, law), lambda cdfs: reference.ducb(None, cdfs)),
    "CorrectedThompson by arm": (
        lambda law: jb.CorrectedThompson(law, None),
        lambda cdfs: reference.corrected_thompson(uniforms, None, cdfs),
    ),
    "DKLUCB by arm": (lambda law: jb.DKLUCB(40, law), lambda cdfs: reference.dkl_ucb(40, cdfs)),
}
"""Policies that are told the delays of each arm."""


def pair(name: str, num_arms: int):
    """The policy, and its index in plain NumPy."""
    if name in BY_ARM:
        policy, index = BY_ARM[name]
        return policy(jb.Pareto(TAILS[:num_arms])), index([pareto(tail) for tail in TAILS[:num_arms]])
    make, index = PAIRS[name]
    return make(), index


SINGLE_TOO = (*BY_ARM, *list(PAIRS)[list(PAIRS).index("KLUCB") :])
"""Policies that are compared in single precision as well: there a tie may be decided by a rounding error."""


def tables(kind: str, num_arms: int, horizon: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    means = rng.uniform(0.1, 0.9, num_arms)
    rewards = (rng.uniform(size=(horizon, num_arms)) < means).astype(float)
    delays = np.ceil(rng.uniform(size=(horizon, num_arms)) ** (-1 / rng.uniform(0.3, 1.5, num_arms)))
    if kind == "no delay":
        delays[:] = 0
    elif kind == "all zero":
        rewards[:] = 0
    elif kind == "all one":
        rewards[:] = 1
    elif kind == "never":
        delays[:] = np.inf
    elif kind == "zeros among them":
        delays -= 1
    elif kind == "graded rewards":
        rewards *= rng.uniform(size=rewards.shape)
    return rewards, delays


KINDS = ("random", "no delay", "all zero", "all one", "never", "graded rewards")


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [*PAIRS, *BY_ARM])
@pytest.mark.parametrize("x64", [True, False])
def test_the_arms_of_the_plain_reference_are_pulled(name: str, kind: str, x64: bool):
    if not x64 and name not in SINGLE_TOO:
        pytest.skip("compared in double precision")
    with jax.enable_x64(x64):
        for num_arms, horizon in ((1, 12), (2, 150), (3, 100), (5, 100), (5, 3)):
            rewards, delays = tables(kind, num_arms, horizon, seed=num_arms + horizon)
            policy, index = pair(name, num_arms)
            trace = jb.replay(rewards, delays, policy)
            np.testing.assert_array_equal(trace.arms, reference.play(index, rewards, delays))


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*KINDS, "zeros among them"])
@pytest.mark.parametrize("num_arms", [1, 2, 3, 4, 5])
@pytest.mark.parametrize(("c", "alpha_min"), [(1.0, 0.2), (0.3, 0.6), (0.8, 0.4)])
def test_alpha_hat_equals_the_literal_sums_in_every_round(c: float, alpha_min: float, num_arms: int, kind: str):
    horizon = 120
    rewards, delays = tables(kind, num_arms, horizon, seed=num_arms)
    with jax.enable_x64(True):
        trace = jb.replay(rewards, delays, jb.AdaptPatientBandits(c, alpha_min, 0.5, lcb_scale=0.1))
    history = reference.History(rewards, delays)
    for t, arm in enumerate(trace.arms.tolist(), start=1):
        if t > 2 * num_arms:
            hat, bar = reference.adaptive_estimates(history, c, alpha_min, 0.5, 0.1)
            np.testing.assert_allclose(trace.diagnostics["alpha_hat"][t - 1], hat, atol=1e-12)
            np.testing.assert_allclose(trace.diagnostics["alpha_bar"][t - 1], bar, atol=1e-12)
        history.arms.append(arm)


@pytest.mark.parametrize(
    ("rewards", "delays", "message"),
    [
        ([[0.5, 1.5]], [[0, 0]], r"rewards must be in \[0, 1\], got 1.5 at index \[0, 1\]"),
        ([[0.5, np.nan]], [[0, 0]], r"rewards must be in \[0, 1\]"),
        ([[0.5, 1.0]], [[0, -1]], "delays must be an integer from 0"),
        ([[0.5, 1.0]], [[0, 0], [0, 0]], "must both have shape"),
        ([0.5, 1.0], [0, 0], "must both have shape"),
        (np.zeros((0, 2)), np.zeros((0, 2), int), "rewards is empty"),
    ],
)
def test_a_table_that_is_not_one_is_refused(rewards, delays, message):
    with refused(ValueError, message):
        jb.replay(rewards, delays, jb.UCB1())


def test_delays_that_are_not_whole_are_refused():
    with refused(TypeError, "delays must be an integer"):
        jb.replay([[1.0]], [[0.5]], jb.UCB1())
    with refused(TypeError, "delays must be an integer"):
        jb.replay([[1.0]], [[np.nan]], jb.UCB1())
    for delays in ([["a"]], None):
        with refused(TypeError, "replay: delays must be numbers"):
            jb.replay([[1.0]], delays, jb.UCB1())
