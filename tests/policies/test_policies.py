"""What holds for every public policy, found from ``__all__``."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit._arms import one_hot
from jaxbandit.engine.step import start_of, step
from jaxbandit.policies.ducb import poisson_upper
from tests.examples import AT_RANDOM, BY_ARM, NUM_ARMS, POLICIES, each, instance, public, refused

HORIZON = 120


def tables(seed: int, horizon: int = HORIZON, num_arms: int = NUM_ARMS) -> tuple[np.ndarray, np.ndarray]:
    """Rewards without ties, and heavy-tailed delays, zero included."""
    rng = np.random.default_rng(seed)
    rewards = rng.uniform(size=(horizon, num_arms)) * rng.integers(0, 2, (horizon, num_arms))
    delays = np.minimum(np.floor(rng.uniform(size=rewards.shape) ** -1.5), 10**6).astype(int) - 1
    return rewards, delays


def test_every_public_policy_has_an_example():
    assert public(jb.Policy) == {type(policy).__name__ for policy in POLICIES.values()}


@each(POLICIES | BY_ARM, "policy")
def test_no_policy_peeks(policy):
    """Other rewards and delays of pulls that cannot have been seen by round t change no arm up to round t."""
    rewards, delays = tables(0)
    arms = np.asarray(jb.replay(rewards, delays, policy).arms)
    rng = np.random.default_rng(1)
    for t in (2, 3, 10, 40, 77, HORIZON):
        s = np.arange(1, HORIZON + 1)
        age = np.maximum(t - s, 0)[:, None]
        unseen = delays > age  # at the start of round t the learner knows what has D <= t - s
        unseen |= (s >= t)[:, None]
        other_rewards = np.where(unseen, rng.uniform(size=rewards.shape), rewards)
        later = age + 1 + rng.integers(0, 50, delays.shape)
        other_delays = np.where(unseen, np.where((s >= t)[:, None], rng.integers(0, 90, delays.shape), later), delays)
        again = np.asarray(jb.replay(other_rewards, other_delays, policy).arms)
        np.testing.assert_array_equal(arms[:t], again[:t])


@each({name: p for name, p in (POLICIES | BY_ARM).items() if p.observes is not jb.Feedback}, "policy")
def test_a_zero_never_announces_itself(policy):
    """Unless the policy is given feedback, the delay of a zero reward makes no difference, ever."""
    rewards, delays = tables(2)
    other = np.where(rewards == 0, np.random.default_rng(3).integers(0, 100, delays.shape), delays)
    first, second = jb.replay(rewards, delays, policy), jb.replay(rewards, other, policy)
    np.testing.assert_array_equal(first.arms, second.arms)


class Wrapped(jb.Policy):
    """``policy``, of which a subclass changes something."""

    policy: jb.Policy

    @property
    def observes(self):  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.policy.observes

    def init(self, num_arms, horizon):
        return self.policy.init(num_arms, horizon), jnp.zeros(num_arms, jnp.int32)

    def scores(self, state, t, key):
        return self.policy.scores(state[0], t, key)

    def update(self, state, t, arm, observation):
        return self.policy.update(state[0], t, arm, observation), state[1] + one_hot(arm, state[1].shape[0])

    def wait(self, delay):
        return self.policy.wait(delay)

    def windows(self, pulls):
        return self.policy.windows(pulls)


class Tilted(Wrapped):
    """No ties are left: what the policy would leave to the lowest index goes to the highest ``tilt``."""

    tilt: jax.Array

    def scores(self, state, t, key):
        scores = self.policy.scores(state[0], t, key)
        fewest = 1e3 - 10 * state[1].astype(scores.dtype)
        return jnp.where(jnp.isposinf(scores), fewest, scores) + 1e-3 * self.tilt


class Watched(Wrapped):
    """With a report of scores that no policy may give."""

    def diagnostics(self, state, t):
        scores = self.policy.scores(state[0], t, jax.random.key(0))
        ruled_out = jnp.isneginf(scores)
        eliminates = isinstance(self.policy, (jb.SuccessiveElimination, jb.ODAAF))
        bad = jnp.isnan(scores).any() | (ruled_out.all() if eliminates else ruled_out.any())
        return self.policy.diagnostics(state[0], t) | {"bad": bad}


def tilted(policy: jb.Policy, tilt) -> jb.Policy:
    """Where the ties are broken, which in ``Queued`` is inside."""
    tilt = jnp.asarray(tilt, float)
    return jb.Queued(Tilted(policy.policy, tilt)) if isinstance(policy, jb.Queued) else Tilted(policy, tilt)


@each({name: policy for name, policy in POLICIES.items() if name not in AT_RANDOM}, "policy")
@pytest.mark.parametrize("order", [(1, 0, 2), (2, 0, 1), (2, 1, 0)])
def test_permuting_the_arms_permutes_the_pulls(policy, order):
    rewards, delays = tables(4)
    tilt = np.array([0.1, 0.9, 0.5])
    order = np.array(order)
    plain = np.asarray(jb.replay(rewards, delays, tilted(policy, tilt)).arms)
    permuted = jb.replay(rewards[:, order], delays[:, order], tilted(policy, tilt[order]))
    np.testing.assert_array_equal(order[np.asarray(permuted.arms)], plain)


SILENCE_TELLS_AFTER = {
    "DUCB": 20 + NUM_ARMS,  # after its warm-up of m + K rounds
    "DUCB uncensored": NUM_ARMS,
    "DKLUCB": NUM_ARMS,
    "Discarding": 15 + NUM_ARMS,
    "Windowed": 15,
    "Batched": 7,  # until its first night
    "Queued": 1,  # plays its wish until that answers
    "ODAAF": 1,  # plays one arm after another, in blocks
}
"""Policies that take it as evidence when a pull has been silent for a while, and the rounds before they can."""


def assert_equally_often(arms: np.ndarray, rounds: int) -> None:
    pulls = np.cumsum(arms[:rounds, None] == np.arange(NUM_ARMS), axis=0)
    assert (pulls.max(axis=1) - pulls.min(axis=1) <= 1).all()
    assert sorted(arms[: min(rounds, NUM_ARMS)]) == list(range(min(rounds, NUM_ARMS)))


@pytest.mark.parametrize("name", [name for name in POLICIES if name not in AT_RANDOM])
def test_before_any_feedback_the_arms_are_pulled_equally_often(name):
    rewards, delays = tables(5)
    trace = jb.replay(rewards, np.full_like(delays, jb.NEVER), POLICIES[name])
    assert_equally_often(np.asarray(trace.arms), SILENCE_TELLS_AFTER.get(name, HORIZON))


@pytest.mark.parametrize("kind", [jb.DUCB, jb.DKLUCB])
@pytest.mark.parametrize("window", [100, None])
def test_ducb_pulls_equally_often_as_long_as_nothing_can_have_arrived(kind, window):
    rewards, delays = tables(5)
    trace = jb.replay(rewards, np.full_like(delays, jb.NEVER), kind(window, jb.Constant(60)))
    assert_equally_often(np.asarray(trace.arms), 60)


@each(POLICIES | BY_ARM, "policy")
@pytest.mark.parametrize("kind", ["all zero", "all one", "never", "no delay", "random"])
def test_scores_are_never_nan(policy, kind):
    rewards, delays = tables(6)
    if kind in ("all zero", "all one"):
        rewards[:] = kind == "all one"
    if kind in ("never", "no delay"):
        delays[:] = jb.NEVER if kind == "never" else 0

    trace = jb.replay(rewards, delays, Watched(policy))
    assert not np.asarray(trace.diagnostics["bad"]).any()
    assert all(np.isfinite(values).all() for values in trace.diagnostics.values())


@pytest.mark.slow
@each(POLICIES | BY_ARM, "policy")
def test_vmapped_looped_and_jitted_runs_are_the_same_bits(policy):
    keys = jax.random.split(jax.random.key(8), 3)

    def run(key):
        return jb.simulate(key, instance(), policy, horizon=HORIZON)

    vmapped = jax.vmap(run)(keys)
    for i, key in enumerate(keys):
        for other in (run(key), jax.jit(run)(key)):
            jax.tree.map(np.testing.assert_array_equal, other, jax.tree.map(lambda x, i=i: x[i], vmapped))


@pytest.mark.slow
@each(POLICIES | BY_ARM, "policy")
def test_compiled_and_interpreted_runs_are_the_same(policy):
    def run():
        return jb.simulate(2, instance(), policy, horizon=25)

    compiled = run()
    with jax.disable_jit():
        interpreted = run()
    np.testing.assert_array_equal(compiled.pulls, interpreted.pulls)
    np.testing.assert_array_equal(compiled.regret, interpreted.regret)


@pytest.mark.slow
@each(POLICIES | BY_ARM, "policy")
def test_chunked_and_whole_batches_are_the_same_bits(policy):
    def batch(seeds, **options):
        return jb.simulate_batch(3, instance(), policy, horizon=HORIZON, seeds=seeds, **options)

    whole = batch(10)
    jax.tree.map(np.testing.assert_array_equal, whole, batch(10, chunk=3))
    first = batch(4)
    jax.tree.map(np.testing.assert_array_equal, first[1:], jax.tree.map(lambda x: x[:4], whole[1:]))


class Always(jb.Policy):
    """Pulls the arms of a fixed plan, and reports what it has been paid by arm 0."""

    plan: jax.Array

    def init(self, num_arms, horizon):
        return jb.ArmStatistics.empty(num_arms)

    def scores(self, state, t, key):
        return one_hot(self.plan[t - 1], state.pulls.shape[0]).astype(float)

    def update(self, state, t, arm, observation):
        return state.observe(arm, observation.rewards)

    def diagnostics(self, state, t):
        return {"paid": state.rewards[0]}


def test_the_same_pull_of_an_arm_gives_the_same_reward_whenever_it_happens():
    """Arm 0 in rounds 1..50, or in rounds 51..100 after 50 of arm 1: the same 50 rewards."""
    undelayed = jb.Instance(jb.TruncatedNormal([0.5, 0.3], 0.2), jb.NoDelay())
    zeros, ones = jnp.zeros(50, jnp.int32), jnp.ones(50, jnp.int32)
    rounds = range(1, 101)
    early = jb.simulate(4, undelayed, Always(jnp.concatenate([zeros, ones])), horizon=100, checkpoints=rounds)
    late = jb.simulate(4, undelayed, Always(jnp.concatenate([ones, zeros])), horizon=100, checkpoints=rounds)
    np.testing.assert_array_equal(early.diagnostics["paid"][:50], late.diagnostics["paid"][50:])


def test_the_same_pull_of_an_arm_has_the_same_delay_whenever_it_happens():
    """A reward of 1 always: when the n-th pull of arm 0 is paid, counted from its round, is the n-th delay."""
    delayed = jb.Instance(jb.Deterministic([1.0, 0.0]), jb.Geometric([30.0, 1.0]))
    first, second = np.zeros(400, int), np.ones(400, int)
    second[100] = 0  # one pull of arm 0, in round 101 instead of round 1
    first[1:] = 1
    paid = [
        np.asarray(
            jb.simulate(
                5, delayed, Always(jnp.asarray(plan, jnp.int32)), horizon=400, checkpoints=range(1, 401)
            ).diagnostics["paid"]
        )
        for plan in (first, second)
    ]
    assert paid[0].argmax() + 100 == paid[1].argmax() > 100


def test_poisson_upper_solves_its_equation():
    theta, budget = np.meshgrid(np.geomspace(1e-6, 1, 25), np.geomspace(1e-7, 20, 25))
    with jax.enable_x64(True):
        q = np.asarray(poisson_upper(jnp.asarray(theta), jnp.asarray(budget)))
    np.testing.assert_allclose(theta * np.log(theta / q) + q - theta, budget, rtol=1e-8, atol=1e-13)
    assert (q >= theta).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: jb.PatientBandits(-0.1), "PatientBandits: alpha must be finite and >= 0, got -0.1"),
        (lambda: jb.PatientBandits(float("nan")), "PatientBandits: alpha"),
        (lambda: jb.PatientBandits(0.3, bonus_scale=-1), "PatientBandits: bonus_scale"),
        (lambda: jb.PatientBandits(0.3, bias_scale=-1), "PatientBandits: bias_scale"),
        (lambda: jb.AdaptPatientBandits(0.0, 0.2, 0.5), r"AdaptPatientBandits: c must be in \(0, 1\], got 0.0"),
        (lambda: jb.AdaptPatientBandits(1.1, 0.2, 0.5), r"AdaptPatientBandits: c must be in \(0, 1\]"),
        (lambda: jb.AdaptPatientBandits(1.0, 0.0, 0.5), "AdaptPatientBandits: alpha_min"),
        (lambda: jb.AdaptPatientBandits(1.0, 0.2, 0.0), "AdaptPatientBandits: mean_min"),
        (lambda: jb.AdaptPatientBandits(1.0, 0.2, 0.5, -1), "AdaptPatientBandits: lcb_scale"),
        (lambda: jb.DUCB(0, jb.Pareto(0.7)), "DUCB: window must be an integer from 1"),
        (lambda: jb.DKLUCB(-3, jb.Pareto(0.7)), "DKLUCB: window must be an integer from 1"),
        (lambda: jb.DUCB(None, jb.Pareto(0.7), "window"), "DUCB: warmup='window' needs a window"),
        (lambda: jb.Discarding(0), "Discarding: window must be an integer from 1"),
    ],
)
def test_numbers_out_of_range_are_refused(make, message):
    with refused(ValueError, message):
        make()


@pytest.mark.parametrize(
    "policy",
    [
        jb.PatientBandits([0.1, 0.3, 0.5]),
        jb.PatientBandits(0.3, bonus_scale=[1.0, 2.0, 3.0]),
        jb.PatientBandits(jb.corollary1_alpha, bias_scale=[1.0]),
        jb.AdaptPatientBandits(1.0, 0.2, 0.5, lcb_scale=[0.0, 0.5, 1.0]),
        jb.DUCB([5, 10, 20], jb.Pareto(0.7)),
        jb.DKLUCB([5], jb.Pareto(0.7)),
        jb.Discarding([5, 5, 5]),
    ],
    ids=lambda policy: type(policy).__name__,
)
def test_several_numbers_at_once_are_refused_however_many_arms_there_are(policy):
    with refused(ValueError, "must be a single number, got an array of shape .*; use jax.vmap"):
        jb.simulate(0, instance(), policy, horizon=10)


def test_a_window_that_is_not_whole_is_refused():
    for make in (lambda: jb.DUCB(2.5, jb.Pareto(0.7)), lambda: jb.Discarding("20")):
        with refused(TypeError, "window must be"):
            make()


@pytest.mark.parametrize("kind", [jb.DUCB, jb.DKLUCB])
def test_beliefs_about_another_number_of_arms_are_refused(kind):
    for law in (jb.Pareto([0.7, 0.6]), jb.PerArm([jb.Pareto(0.7), jb.NoDelay()])):
        with refused(ValueError, f"{kind.__name__}: cdf has laws of shape .2,., but there are 3 arms"):
            jb.simulate(0, instance(), kind(20, law), horizon=10)


def test_the_index_of_patient_bandits_by_hand():
    """K = 2, T = 4: after one pull of each arm and a reward of arm 0, the indexes of round 3 are these."""
    policy = jb.PatientBandits(0.25, bonus_scale=0.5, bias_scale=3.0)
    state = policy.init(2, 4)
    for t, arm, rewards in ((1, 0, [0.0, 0.0]), (2, 1, [0.75, 0.0]), (3, 0, [0.0, 0.5])):
        state = policy.update(state, jnp.int32(t), jnp.int32(arm), jb.Conversions(jnp.asarray(rewards)))
    bonus = 0.5 * np.sqrt(2 * np.log(2 * 2 * 4.0**3))
    expected = [0.75 / 2 + bonus / np.sqrt(2) + 3 * 2**-0.25, 0.5 + bonus + 3]
    np.testing.assert_allclose(policy.scores(state, jnp.int32(4), jax.random.key(0)), expected, rtol=1e-6)


def test_corollary_1():
    t = jnp.arange(1, 6, dtype=jnp.int32)
    expected = [0, 0, *(np.log(np.log(s)) / np.log(s) for s in (3, 4, 5))]
    np.testing.assert_allclose(jax.vmap(jb.corollary1_alpha)(t), expected, rtol=1e-5)


class Schedule(eqx.Module):
    """A schedule with a number of its own."""

    scale: jax.Array

    def __call__(self, t):
        return jnp.minimum(self.scale / t.astype(float), 0.5)


def test_the_numbers_of_a_schedule_are_traced():
    scales = jnp.array([3.0, 90.0])

    def run(scale):
        return jb.simulate(0, instance(), jb.PatientBandits(Schedule(scale)), horizon=60)

    together = jax.jit(jax.vmap(run))(scales)
    for i in range(2):
        np.testing.assert_array_equal(together.pulls[i], run(scales[i]).pulls)


def test_a_million_fractional_rewards_add_up():
    """In single precision a plain sum would be off by almost 1 %."""
    horizon, policy = 10**6, jb.UCB1()
    state = policy.init(1, horizon)

    def step(state, t):
        return policy.update(state, t, jnp.int32(0), jb.Conversions(jnp.full(1, 0.9))), None

    state, _ = jax.lax.scan(step, state, jnp.arange(1, horizon + 1, dtype=jnp.int32))
    np.testing.assert_allclose(state.rewards, 0.9e6, rtol=1e-6)


@pytest.mark.parametrize(("c", "alpha_min"), [(1.0, 0.2), (1.0, 0.25), (1.0, 0.5), (1.0, 1.0), (0.8, 0.5), (1.0, 0.7)])
def test_the_short_window_of_adapt_patient_bandits_is_right_up_to_a_million_pulls(c, alpha_min):
    """In every precision: exactly where the ratio is a power of two, else but for 1 % of the pulls."""
    pulls = np.arange(1, 10**6 + 1)
    _, short = jb.AdaptPatientBandits(c, alpha_min, 0.5).windows(jnp.asarray(pulls, jnp.int32))
    ratio = (np.longdouble(np.float32(c) if short.dtype == np.int32 else c) / 2) ** (1 / np.longdouble(alpha_min))
    expected = np.maximum(np.floor(ratio * np.maximum(pulls // 2, 1) * (1 + 1e-15)), 1)
    wrong = np.mean(np.asarray(short) != expected)
    assert wrong == 0 if c == 1.0 and alpha_min in (0.2, 0.25, 0.5, 1.0) else wrong < 0.01


def test_a_round_of_adapt_patient_bandits_is_as_much_work_at_any_horizon():
    """A step, as XLA counts its operations; the history is read and written in a few places only."""

    def operations(horizon):
        policy, number = jb.AdaptPatientBandits(1.0, 0.3, 0.5), jax.ShapeDtypeStruct((), jnp.int32)

        def play(carry, t, delay):
            return step(policy, lambda t, arm, n: (jnp.ones(()), delay), jnp.zeros(2, jnp.uint32), t, carry)

        carry = jax.eval_shape(lambda: start_of(policy, horizon, NUM_ARMS, binary=True))
        cost = jax.jit(play).lower(carry, number, number).compile().cost_analysis()
        return cost["flops"], cost["transcendentals"]

    assert operations(10**3) == operations(10**6)


def test_a_policy_made_in_single_precision_runs_in_double():
    if jax.config.jax_numpy_dtype_promotion == "strict":
        pytest.skip("mixes precisions, which this setting forbids")
    policies = [jb.PatientBandits(0.3), jb.DUCB(5, jb.Pareto(0.7)), jb.AdaptPatientBandits(1.0, 0.2, 0.5)]
    with jax.enable_x64(True):
        for policy in policies:
            assert int(jb.replay(*tables(0), policy).arms[0]) == 0


class Thompson(jb.Policy):
    """A posterior draw from the key: what a randomised policy looks like."""

    def init(self, num_arms, horizon):
        return jb.ArmStatistics.empty(num_arms)

    def scores(self, state, t, key):
        n = state.pulls.astype(float)
        return state.rewards / (n + 1) + jax.random.normal(key, n.shape) / jnp.sqrt(n + 1)

    def update(self, state, t, arm, observation):
        return state.observe(arm, observation.rewards)


def test_a_randomised_policy_has_its_own_randomness_in_every_round_and_seed():
    easy = jb.Instance(jb.Bernoulli([0.1, 0.9]), jb.NoDelay())
    runs = jb.simulate_batch(0, easy, Thompson(), horizon=200, seeds=50)
    assert len(np.unique(runs.pulls[:, -1, 1])) > 5
    assert runs.regret[:, -1].mean() < 0.5 * 80
    jax.tree.map(
        np.testing.assert_array_equal,
        runs,
        jb.simulate_batch(0, easy, Thompson(), horizon=200, seeds=50, chunk=7),
    )


class Total(jb.Policy):
    """Sees the sum of all rewards alone: the anonymous model."""

    observes = jb.Anonymous

    def init(self, num_arms, horizon):
        return jnp.zeros(num_arms), jnp.zeros(())

    def scores(self, state, t, key):
        return state[0]

    def update(self, state, t, arm, observation):
        return state[0], state[1] + observation.reward.astype(float)

    def diagnostics(self, state, t):
        return {"total": state[1]}


def test_an_anonymous_policy_sees_the_sum_of_what_has_arrived():
    rewards, delays = tables(9)
    trace = jb.replay(rewards, delays, Total())
    t, arms = np.arange(HORIZON), np.asarray(trace.arms)
    paid, wait = rewards[t, arms], delays[t, arms]
    expected = [paid[:s][t[:s] + wait[:s] <= s].sum() for s in range(HORIZON)]
    np.testing.assert_allclose(trace.diagnostics["total"], expected, rtol=1e-5, atol=1e-5)


class Misnamed(Total):
    observes = "feedback"


class Counting(Total):
    def diagnostics(self, state, t):
        return {"half": 0.5}


class Growing(Total):
    def update(self, state, t, arm, observation):
        return (*state, observation.reward)


def test_what_breaks_the_protocol_is_refused():
    with refused(TypeError, "Misnamed: observes must be Anonymous, Conversions or Feedback, got 'feedback'"):
        jb.simulate(0, instance(), Misnamed(), horizon=10)
    with refused(TypeError, "Growing: update must return a state like init's"):
        jb.simulate(0, instance(), Growing(), horizon=10)


def test_diagnostics_may_be_plain_numbers():
    assert float(jb.simulate(0, instance(), Counting(), horizon=10).diagnostics["half"][-1]) == 0.5


class Nan(Total):
    def scores(self, state, t, key):
        return jnp.where(t < 5, state[0], jnp.nan)


def test_a_nan_score_is_found_out():
    inside_jit = jax.jit(lambda: jb.simulate(0, instance(), Nan(), horizon=10, checkpoints=[4, 5, 10]).regret)()
    np.testing.assert_array_equal(np.isnan(inside_jit), [False, True, True])
    for run in (
        lambda: jb.simulate(0, instance(), Nan(), horizon=10),
        lambda: jb.simulate_batch(0, instance(), Nan(), horizon=10, seeds=3),
        lambda: jb.replay(*tables(0), Nan()),
    ):
        with refused(ValueError, "Nan gave a score that is NaN"):
            run()


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(POLICIES) - {"Uniform"}))
def test_every_policy_that_learns_beats_uniform_play_where_that_is_easy(name):
    easy = jb.Instance(jb.Bernoulli([0.05, 0.95]), jb.Geometric([2.0, 2.0]))
    runs = jb.simulate_batch(0, easy, POLICIES[name], horizon=2000, seeds=20, checkpoints=[2000])
    assert runs.regret[:, -1].mean() < 0.6 * 0.45 * 2000
