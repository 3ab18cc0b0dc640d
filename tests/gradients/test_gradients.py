"""Derivatives of the expected regret, through the public API."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.gradients import estimate
from tests.examples import refused
from tests.gradients import enumeration
from tests.gradients.enumeration import Parameters

KEY = 7
HARD = Parameters(np.array([0.4, 0.7]), np.array([1.0, 0.4]), 0.2, 0.5, 0.3, None)
SOFT = HARD._replace(temperature=0.3)
OTHER = Parameters(np.array([0.6, 0.3]), np.array([0.3, 0.8]), 0.4, 0.2, 0.2, 0.2)


def problem(p: Parameters) -> tuple[jb.Instance, jb.Policy]:
    patient = jb.PatientBandits(p.alpha, bonus_scale=p.bonus_scale, bias_scale=p.bias_scale)
    policy = patient if p.temperature is None else jb.Softmax(patient, p.temperature)
    return jb.Instance(jb.Bernoulli(p.mean), jb.Pareto(p.tail)), policy


def instance(mean=HARD.mean, tail_index=HARD.tail) -> jb.Instance:
    return jb.Instance(jb.Bernoulli(mean), jb.Pareto(tail_index))


def regret(mean=HARD.mean, tail_index=HARD.tail, alpha=0.3, bonus_scale=0.2, **options):
    policy = jb.PatientBandits(alpha, bonus_scale=bonus_scale, bias_scale=0.5)
    options = {"horizon": 50, "seeds": 40} | options
    return jb.expected_regret(instance(mean, tail_index), policy, KEY, **options)


def parameters(instance, policy):
    """What of them the enumeration calls by the names of ``Parameters``."""
    soft = isinstance(policy, jb.Softmax)
    patient = policy.policy if soft else policy
    last = policy.temperature if soft else None
    found = (instance.reward.mean, instance.delay.tail_index)
    return (*found, patient.bonus_scale, patient.bias_scale, patient.alpha, last) if soft else found


@pytest.mark.parametrize(
    "p",
    [HARD, *(pytest.param(p, marks=pytest.mark.slow) for p in (SOFT, OTHER))],
    ids=["hard", "softmax", "softmax, the first arm better"],
)
@pytest.mark.parametrize("estimator", ["score", "crn"])
def test_estimates_agree_with_the_enumeration(p, estimator):
    """22 numbers for each estimator: within 4.5 of their own standard errors."""
    horizon, seeds, h = 6, 40_000, 0.02
    found = jb.regret_and_gradient(
        *problem(p), KEY, horizon=horizon, seeds=seeds, estimator=estimator, wrt=parameters,
        smoothing=h if estimator == "crn" else None,
    )  # fmt: skip
    with jax.enable_x64(True):
        paths = enumeration.follow(horizon, p)
        values = [jnp.asarray(x, float) for x in (p if p.temperature else p[:2])]

        def exact(*values):
            return enumeration.expected_regret(paths, Parameters(*values, *p[len(values) :]))

        wrt = tuple(range(len(values)))
        value, gradient = jax.jit(jax.value_and_grad(exact, wrt))(*values)
        if estimator == "crn":
            gradient = jax.jit(lambda values: box_gradient(exact, values, h))(values)
    assert abs(float(found.value) - float(value)) < 4.5 * float(found.value_error)
    for ours, error, expected in zip(found.gradient, found.gradient_error, gradient, strict=True):
        assert (np.abs(np.asarray(ours) - np.asarray(expected)) < 4.5 * np.asarray(error)).all(), (
            ours,
            error,
            expected,
        )


def box_gradient(function, values, h):
    """``(J(v + h e_j) - J(v - h e_j)) / 2h``: of J averaged over v_j ± h."""
    point, unravel = jax.flatten_util.ravel_pytree(values)
    steps = h * jnp.eye(point.size)
    return unravel(jax.vmap(lambda e: (function(*unravel(point + e)) - function(*unravel(point - e))) / (2 * h))(steps))


@pytest.mark.slow
def test_the_baseline_of_a_run_leaves_out_the_run():
    """With two seeds a mean over both would halve the gradient: 20 000 keys, within 4.5 standard errors."""
    horizon = 6

    def value(mean, key):
        policy = problem(HARD)[1]
        return jb.expected_regret(instance(mean), policy, key, horizon=horizon, seeds=2, estimator="score")

    keys = jax.random.split(jax.random.key(KEY), 20_000)
    by_key = np.asarray(jax.jit(jax.vmap(jax.grad(value), (None, 0)))(jnp.asarray(HARD.mean, float), keys), float)
    with jax.enable_x64(True):
        paths = enumeration.follow(horizon, HARD)
        exact = jax.grad(lambda mean: enumeration.expected_regret(paths, HARD._replace(mean=mean)))
        expected = np.asarray(jax.jit(exact)(jnp.asarray(HARD.mean, float)))
    error = by_key.std(axis=0, ddof=1) / np.sqrt(len(keys))
    assert (np.abs(by_key.mean(axis=0) - expected) < 4.5 * error).all()
    assert (np.abs(by_key.mean(axis=0) / 2 - expected) > 4.5 * error).all()


ON_INSTANCE_A = {  # GRADIENTS: standard deviations of a seed and means, at T = 200
    "score": ([87, 82], [21, 65]),
    "crn": ([59, 46], [6.6, 37]),
}


@pytest.mark.slow
@pytest.mark.parametrize("estimator", ["score", "crn"])
def test_the_variance_is_what_it_can_be(estimator):
    """Measured with an independent program: means 26, -11.7, 1.95, -39, and these deviations of one seed."""
    seeds = 4000
    policy = jb.PatientBandits(0.3, bonus_scale=0.2, bias_scale=0.5)
    found = jb.regret_and_gradient(
        instance(),
        policy,
        KEY,
        horizon=200,
        seeds=seeds,
        estimator=estimator,
        wrt=lambda i, p: (i.reward.mean, i.delay.tail_index),
    )
    for error, deviation in zip(found.gradient_error, ON_INSTANCE_A[estimator], strict=True):
        assert (error * np.sqrt(seeds) < 1.2 * np.array(deviation)).all()
    for ours, error, mean in zip(found.gradient, found.gradient_error, ([26.1, -11.7], [1.95, -39.2]), strict=True):
        assert (np.abs(ours - np.array(mean)) < 4.5 * error).all()


@pytest.mark.slow
@pytest.mark.parametrize("horizon", [100, 200, 1000])
@pytest.mark.parametrize("tail_index", [(1.0, 0.4), (0.5, 0.8)])
def test_score_and_differences_agree(horizon, tail_index):
    """Within 4 of their combined standard errors."""
    policy = jb.PatientBandits(0.3, bonus_scale=0.2, bias_scale=0.5)
    first, second = (
        jb.regret_and_gradient(
            instance(tail_index=tail_index),
            policy,
            KEY,
            horizon=horizon,
            seeds=4000,
            estimator=estimator,
            wrt=lambda i, p: i,
        )
        for estimator in ("score", "crn")
    )
    pairs = zip(*(jax.tree.leaves((x.gradient, x.gradient_error)) for x in (first, second)), strict=True)
    (mean, mean2), (tail, tail2), (mean_error, mean_error2), (tail_error, tail_error2) = pairs
    assert (np.abs(mean - mean2) < 4 * np.hypot(mean_error, mean_error2)).all()
    assert (np.abs(tail - tail2) < 4 * np.hypot(tail_error, tail_error2)).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("reward", "delay", "policy"),
    [
        (jb.TruncatedNormal([0.3, 0.6], [0.2, 0.3]), jb.LogNormal([3.0, 8.0], [1.0, 0.5]), jb.DelayedUCB1()),
        (jb.Bernoulli([0.3, 0.6]), jb.Lossy(jb.Pareto([0.8, 0.5]), [0.1, 0.2]), jb.Discarding(5)),
        (jb.Bernoulli([0.3, 0.6]), jb.PerArm([jb.Geometric(3.0), jb.Pareto(0.5)]), jb.DUCB(10, jb.Pareto(0.7))),
    ],
    ids=["all delays are seen", "some rewards are lost", "a law for each arm"],
)
def test_score_and_differences_agree_for_other_laws_and_policies(reward, delay, policy):
    """Every parameter of the instance, within 4.5 of their combined standard errors."""
    problem = jb.Instance(reward, delay)
    first, second = (
        jb.regret_and_gradient(problem, policy, KEY, horizon=60, seeds=3000, estimator=estimator, wrt=lambda i, p: i)
        for estimator in ("score", "crn")
    )
    numbers = (jax.tree.leaves(x) for found in (first, second) for x in (found.gradient, found.gradient_error))
    for ours, error, other, other_error in zip(*numbers, strict=True):
        assert (np.abs(ours - other) < 4.5 * np.hypot(error, other_error)).all()


@pytest.mark.slow
def test_the_hessian_of_the_score_agrees_with_the_enumeration():
    """Over 20 batches, by their own standard error."""
    horizon = 6

    def value(mean, tail_index, key):
        policy = jb.PatientBandits(0.3, bonus_scale=0.2, bias_scale=0.5)
        return jb.expected_regret(
            instance(mean, tail_index), policy, key, horizon=horizon, seeds=4000, estimator="score"
        )

    point = jnp.asarray(HARD.mean, float), jnp.asarray(HARD.tail, float)
    hessian = jax.jit(jax.hessian(value, argnums=(0, 1)))
    batches = [jax.tree.leaves(hessian(*point, jax.random.key(i))) for i in range(20)]
    with jax.enable_x64(True):
        paths = enumeration.follow(horizon, HARD)
        exact = jax.jit(
            jax.hessian(lambda *v: enumeration.expected_regret(paths, Parameters(*v, *HARD[2:])), argnums=(0, 1))
        )
        expected = jax.tree.leaves(exact(*(jnp.asarray(x, float) for x in HARD[:2])))
    for entries, reference in zip(zip(*batches, strict=True), map(np.asarray, expected), strict=True):
        entries = np.stack(entries)
        error = entries.std(axis=0, ddof=1) / np.sqrt(len(entries))
        assert (np.abs(entries.mean(axis=0) - reference) < 5 * error).all()


@pytest.mark.parametrize("estimator", ["score", pytest.param("crn", marks=pytest.mark.slow)])
def test_the_value_is_that_of_simulate_batch(estimator):
    """Also the value that comes with a gradient."""
    policy = jb.PatientBandits(0.3, bonus_scale=0.2, bias_scale=0.5)
    runs = jb.simulate_batch(KEY, instance(), policy, horizon=50, seeds=40)
    expected = float(runs.regret[:, -1].mean())
    assert float(regret()) == pytest.approx(expected, rel=1e-6)
    value, _ = jax.value_and_grad(lambda mean: regret(mean, estimator=estimator))(jnp.asarray(HARD.mean, float))
    assert float(value) == pytest.approx(expected, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("estimator", ["score", "crn"])
def test_grad_jvp_jit_and_vmap_give_the_same_estimate(estimator):
    def value(mean):
        return regret(mean, estimator=estimator)

    mean = jnp.asarray(HARD.mean, float)
    gradient = jax.grad(value)(mean)
    assert np.abs(gradient).min() > 0
    direction = jnp.array([0.5, -2.0], float)
    slope = jax.jvp(value, (mean,), (direction,))[1]
    many = jax.vmap(jax.grad(value))(jnp.stack([mean, mean]))
    np.testing.assert_allclose(slope, gradient @ direction, rtol=1e-4)
    np.testing.assert_allclose(jax.jit(jax.grad(value))(mean), gradient, rtol=1e-4)
    np.testing.assert_allclose(many, jnp.stack([gradient, gradient]), rtol=1e-4)


@pytest.mark.slow
def test_regret_and_gradient_is_the_gradient_with_its_errors():
    policy = jb.PatientBandits(0.3, bonus_scale=0.2, bias_scale=0.5)
    for estimator in ("score", "crn"):
        found = jb.regret_and_gradient(
            instance(), policy, KEY, horizon=50, seeds=40, estimator=estimator, wrt=lambda i, p: i.reward.mean
        )
        gradient = jax.grad(lambda mean, e=estimator: regret(mean, estimator=e))(jnp.asarray(HARD.mean, float))
        np.testing.assert_allclose(found.gradient, gradient, rtol=1e-4)
        assert (found.gradient_error > 0).all()
        assert found.estimates.startswith(f"{estimator}: unbiased for the gradient of the expected regret")


def test_auto_takes_differences_for_few_parameters_and_policies_that_play_the_best():
    patient = jb.PatientBandits(0.3, bonus_scale=0.2, bias_scale=0.5)
    tails = jb.Pareto([0.3, 0.5, 0.7, 0.9])
    many = jb.Instance(jb.Bernoulli([0.1, 0.2, 0.3, 0.4]), tails)
    setting = estimate.Setting(horizon=8, seeds=4, estimator="auto")

    def estimators(problem, policy, wrt):
        wanted, _ = estimate._wanted((problem, policy), wrt)
        return set(estimate._methods(setting, (problem, policy), wanted))

    assert estimators(instance(), patient, lambda i, p: i) == {"crn"}
    assert estimators(many, patient, lambda i, p: i) == {"score"}
    assert estimators(many, patient, lambda i, p: (i, p.alpha)) == {"score", "crn"}
    assert estimators(many, jb.Softmax(patient, 0.3), None) == {"score"}
    assert estimators(jb.Instance(jb.Deterministic([0.1, 0.2, 0.3, 0.4]), tails), patient, lambda i, p: i) == {"crn"}


def test_a_policy_that_plays_the_best_score_has_no_score():
    with refused(
        ValueError, "estimator='score' cannot differentiate the parameters of PatientBandits.*use estimator='crn'"
    ):
        jax.grad(lambda alpha: regret(alpha=alpha, estimator="score"))(0.3)
    mixed = jax.grad(lambda alpha: jax.grad(lambda mean: regret(mean, alpha=alpha, estimator="score"))(HARD.mean)[0])
    with refused(ValueError, "estimator='score' cannot differentiate the parameters of PatientBandits"):
        mixed(0.3)


@pytest.mark.slow
def test_a_prior_is_the_mean_over_its_instances():
    """And each instance's gradient is its own."""
    means = jnp.array([[0.4, 0.7], [0.2, 0.3], [0.9, 0.5]], float)
    key = jax.random.key(KEY)
    policy = jb.PatientBandits(0.3, bonus_scale=0.2, bias_scale=0.5)

    def one(mean, key, alpha=0.3):
        policy = jb.PatientBandits(alpha, bonus_scale=0.2, bias_scale=0.5)
        return jb.expected_regret(instance(mean), policy, key, horizon=40, seeds=16, estimator="crn")

    keys = [jax.random.fold_in(key, i) for i in range(3)]
    value, gradient = jax.value_and_grad(one)(means, key)
    apart = [jax.value_and_grad(one)(means[i], keys[i]) for i in range(3)]
    assert float(value) == pytest.approx(np.mean([float(x) for x, _ in apart]), rel=1e-5)
    np.testing.assert_allclose(gradient, np.stack([g for _, g in apart]) / 3, rtol=1e-3, atol=1e-4)
    found = jb.regret_and_gradient(
        instance(means), policy, key, horizon=40, seeds=16, estimator="crn", wrt=lambda i, p: (i, p.alpha)
    )
    np.testing.assert_allclose(found.gradient[0].reward.mean, gradient, rtol=1e-3, atol=1e-4)
    of_alpha = [jax.grad(one, argnums=2)(means[i], keys[i], 0.3) for i in range(3)]
    assert float(found.gradient[1]) == pytest.approx(np.mean(of_alpha), rel=1e-3, abs=1e-4)
    assert float(found.gradient_error[1]) == pytest.approx(np.std(of_alpha, ddof=1) / np.sqrt(3), rel=1e-3, abs=1e-4)


@pytest.mark.slow
def test_evolution_strategies_agree_with_differences():
    """18 parameters at once, within 5 combined standard errors; the best arm remains the best under the noise."""
    arms = jb.Instance(jb.Bernoulli([*np.linspace(0.2, 0.6, 8), 0.9]), jb.Pareto(jnp.linspace(0.5, 1.0, 9)))
    policy = jb.PatientBandits(0.3, bonus_scale=0.2, bias_scale=0.5)
    shaken = jb.regret_and_gradient(arms, policy, KEY, horizon=60, seeds=6000, estimator="crn", wrt=lambda i, p: i)
    apart = jb.regret_and_gradient(
        arms, policy, KEY, horizon=60, seeds=1000, estimator="crn", wrt=lambda i, p: i.reward.mean
    )
    assert "normal noise" in shaken.estimates
    error = np.hypot(shaken.gradient_error.reward.mean, apart.gradient_error)
    assert (np.abs(shaken.gradient.reward.mean - apart.gradient) < 5 * error).all()


@pytest.mark.slow
def test_a_rounded_window_is_differentiated_as_a_difference_of_two_windows():
    """Of 10.25, on one tape: a share 3/4 of the runs compares 11 with 10 rounds, or 10 with 9."""

    def policy(window):
        return jb.DUCB(window, jb.Pareto(0.7))

    runs = {m: jb.simulate_batch(KEY, instance(), policy(m), horizon=60, seeds=3000).regret[:, -1] for m in (9, 10, 11)}
    found = jb.regret_and_gradient(
        instance(), jb.RoundedWindow(policy, 10.25), KEY, horizon=60, seeds=3000, wrt=lambda i, p: p.window
    )
    expected = jb.mean_ci(0.75 * (runs[11] - runs[10]) + 0.25 * (runs[10] - runs[9]))
    assert abs(found.gradient - expected.mean) < 5 * np.hypot(found.gradient_error, expected.standard_error)
    value = jb.mean_ci(0.75 * runs[10] + 0.25 * runs[11])
    assert abs(found.value - value.mean) < 5 * np.hypot(found.value_error, value.standard_error)


@pytest.mark.slow
def test_straight_through_is_biased_but_not_by_much_when_choices_are_soft():
    """Temperature 0.5, T = 100: about (-36.4, 39.1) where the truth is (-36.6, 39.1)."""
    policy = jb.Softmax(jb.PatientBandits(0.3, bonus_scale=0.2, bias_scale=0.5), 0.5)
    options = {"horizon": 100, "seeds": 400, "wrt": lambda i, p: i.reward.mean}
    found = jb.regret_and_gradient(instance(), policy, KEY, estimator="relaxed", **options)
    np.testing.assert_allclose(found.gradient, [-36.5, 39.1], atol=0.8)
    plain = jb.simulate_batch(KEY, instance(), policy, horizon=100, seeds=400).regret[:, -1].mean()
    assert float(found.value) == pytest.approx(float(plain), rel=1e-6)
    assert found.estimates == "relaxed: biased for the gradient of the expected regret"


@pytest.mark.slow
def test_the_parameters_of_a_policy_of_ones_own_may_be_plain_numbers():
    class Stubborn(jb.UCB1):
        bonus: float = 0.3

        def scores(self, state, t, key):
            return super().scores(state, t, key) + self.bonus

    found = jb.regret_and_gradient(instance(), Stubborn(), KEY, horizon=20, seeds=10, wrt=lambda i, p: p.bonus)
    assert float(found.gradient) == 0  # the same for all arms


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"smoothing": 0}, "smoothing must be finite and > 0, got 0"),
        ({"smoothing": -0.1}, "smoothing must be finite and > 0"),
        (
            {"smoothing": 0.5, "estimator": "crn"},
            r"smoothing 0.5 takes a parameter out of its range: Bernoulli: mean must",
        ),
        ({"smoothing": 0.1, "estimator": "score"}, "smoothing is for estimator='crn'"),
        ({"estimator": "reinforce"}, "estimator must be one of auto, score, crn, relaxed, got 'reinforce'"),
        ({"seeds": 1, "estimator": "score"}, "seeds must be at least 2 for a score"),
        ({"estimator": "relaxed"}, "estimator='relaxed' needs a Softmax of PatientBandits"),
    ],
)
def test_bad_input_is_refused(options, message):
    with refused(ValueError, message):
        jax.grad(lambda mean: regret(mean, **options))(jnp.asarray(HARD.mean, float))


def test_a_prior_takes_the_estimator_of_a_single_instance():
    """Four parameters of each of three instances are few."""
    problems = instance(jnp.array([[0.4, 0.7], [0.2, 0.3], [0.9, 0.5]], float))
    policy = jb.PatientBandits(0.3)
    setting = estimate.Setting(horizon=8, seeds=4, estimator="auto")
    wanted, _ = estimate._wanted((problems, policy), lambda i, p: i)
    assert set(estimate._methods(setting, (estimate.first_of(problems), policy), wanted)) == {"crn"}


def test_smoothing_has_no_derivative():
    with refused(TypeError, "smoothing cannot be differentiated"):
        jax.grad(lambda h: regret(smoothing=h))(0.03)


def test_leaves_and_laws_without_a_derivative_are_refused():
    options = {"horizon": 20, "seeds": 10}
    with refused(TypeError, "wrt picks a parameter of type int32"):
        jb.regret_and_gradient(instance(), jb.DUCB(5, jb.Pareto(0.7)), KEY, wrt=lambda i, p: p.window, **options)
    with refused(TypeError, "wrt must pick parameters"):
        jb.regret_and_gradient(instance(), jb.UCB1(), KEY, wrt=lambda i, p: 0.3, **options)
    fixed = jb.Instance(jb.Deterministic([0.3, 0.4]), jb.Pareto([1.0, 0.4]))
    with refused(ValueError, "cannot differentiate the values that Deterministic rewards take"):
        jb.regret_and_gradient(fixed, jb.UCB1(), KEY, estimator="score", wrt=lambda i, p: i.reward, **options)
    with refused(ValueError, "RoundedWindow: window must be one number >= 1"):
        jb.RoundedWindow(lambda m: jb.DUCB(m, jb.Pareto(0.7)), 0.5)


def test_a_run_points_to_what_can_be_differentiated():
    policy = jb.PatientBandits(0.3)
    with refused(TypeError, "cannot be differentiated.*jaxbandit.expected_regret"):
        jax.grad(lambda mean: jb.simulate(0, instance(mean), policy, horizon=20).regret[-1])(
            jnp.asarray(HARD.mean, float)
        )
    with refused(TypeError, "cannot be differentiated.*jaxbandit.expected_regret"):
        jax.grad(lambda mean: jb.simulate_batch(0, instance(mean), policy, horizon=20, seeds=2).regret[0, -1])(
            jnp.asarray(HARD.mean, float)
        )


def test_new_numbers_compile_nothing():
    compiled = []
    jax.monitoring.register_event_duration_secs_listener(
        lambda event, duration, **_: compiled.append(event) if "backend_compile" in event else None
    )
    value = jax.value_and_grad(lambda mean, alpha: regret(mean, alpha=alpha, estimator="score"))
    value(jnp.array([0.1, 0.2], float), 0.1)
    compiled.clear()
    value(jnp.array([0.3, 0.6], float), 0.4)
    assert not compiled


@pytest.mark.slow
def test_a_module_may_be_differentiated_as_a_whole():
    """With equinox, whose gradient leaves out integers."""

    def value(pair):
        return jb.expected_regret(*pair, KEY, horizon=20, seeds=8)

    gradient = eqx.filter_grad(value)((instance(), jb.DUCB(5, jb.Pareto(0.7))))
    assert gradient[1].window is None
    assert np.isfinite(gradient[1].cdf.tail_index)
