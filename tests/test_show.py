"""What a person sees who prints a law, a policy, an instance, a run or a mean."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from tests.examples import DELAYS, POLICIES, REWARDS, each, instance

ALL = {f"{type(x).__name__} {name}": x for group in (REWARDS, DELAYS, POLICIES) for name, x in group.items()}
TABLES = (jb.Discrete, jb.Empirical)


def test_an_instance_prints_as_the_call_that_makes_it():
    text = "Instance(reward=Bernoulli(mean=[0.6, 0.8]), delay=Pareto(tail_index=[1.0, 0.3]))"
    assert repr(jb.Instance(jb.Bernoulli([0.6, 0.8]), jb.Pareto([1.0, 0.3]))) == text


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (jb.Constant([0, 7, jb.NEVER]), "Constant(delay=[0, 7, NEVER])"),
        (jb.DUCB(window=20, cdf=jb.Pareto(0.7)), "DUCB(window=20, cdf=Pareto(tail_index=0.7), warmup='arms')"),
        (
            jb.PatientBandits(jb.corollary1_alpha),
            "PatientBandits(alpha=corollary1_alpha, bonus_scale=1.0, bias_scale=2.0)",
        ),
        (
            jb.Empirical([0, 9], [[0.5, 0.5], [0.25, 0.75]]),
            "Empirical(table=Table(values=[0, 9], probabilities=[[0.5, 0.5], [0.25, 0.75]]))",
        ),
    ],
    ids=["whole numbers", "nested", "function", "table"],
)
def test_few_numbers_are_shown(shown, text):
    assert str(shown) == text


@each({name: x for name, x in ALL.items() if not isinstance(x, TABLES)}, "shown")
def test_what_is_printed_has_every_number_and_makes_the_same_again(shown):
    again = eval(repr(shown), vars(jb))
    assert jax.tree.structure(again) == jax.tree.structure(shown)
    for made, old in zip(jax.tree.leaves(again), jax.tree.leaves(shown), strict=True):
        np.testing.assert_array_equal(made, old)


def test_many_numbers_are_shown_as_their_type_and_shape():
    kind = jnp.zeros(()).dtype.name.replace("float", "f")
    assert repr(jb.Bernoulli(np.full(8, 0.5))) == f"Bernoulli(mean=[{', '.join(['0.5'] * 8)}])"
    assert repr(jb.Bernoulli(np.full(9, 0.5))) == f"Bernoulli(mean={kind}[9])"


@each(ALL, "shown")
def test_traced_numbers_are_shown_as_their_type_and_shape(shown):
    seen = []

    def show(x):
        seen.append(repr(x))
        return x

    jax.jit(show).lower(shown)
    jax.jit(jax.vmap(show, axis_size=2)).lower(jax.tree.map(lambda x: jnp.stack([x, x]), shown))
    for text in seen:
        assert text.startswith(type(shown).__name__)
        assert text.count("i32[") + text.count("f32[") + text.count("f64[") >= bool(jax.tree.leaves(shown))


def test_what_has_no_numbers_any_more_is_shown_all_the_same():
    law = jb.Bernoulli([0.2, 0.5])
    law.mean.delete()
    assert repr(law) in ("Bernoulli(mean=f32[2])", "Bernoulli(mean=f64[2])")
    assert repr(jax.tree.map(lambda _: 0, law)) == "Bernoulli(mean=0)"
    assert "Bernoulli(mean=" in repr(jax.eval_shape(lambda x: x, jb.Bernoulli(0.5)))


def test_a_run_is_one_line():
    runs = jb.simulate_batch(0, instance(), jb.UCB1(), horizon=30, seeds=4, checkpoints=[10, 30])
    mean = f"{np.asarray(runs.regret)[:, -1].mean():.6g}"
    assert repr(runs) == f"<Run: 4 seeds, horizon 30, 3 arms, mean final regret {mean}>"
    one = jax.tree.map(lambda x: x[0], runs._replace(rounds=runs.rounds[None]))
    assert repr(one).startswith("<Run: 1 seed, horizon 30, 3 arms, mean final regret ")
    assert runs._replace(regret=runs.regret[:2]).regret.shape == (2, 2)  # it is a tuple as before


def test_a_run_in_a_notebook_cell_is_the_same_line():
    pretty = pytest.importorskip("IPython.lib.pretty", reason="IPython is not installed")
    runs = jb.simulate_batch(0, instance(), jb.UCB1(), horizon=30, seeds=4, checkpoints=[10, 30])
    assert pretty.pretty(runs) == repr(runs)


def test_a_traced_run_shows_its_shapes():
    seen = []

    def regret(key):
        run = jb.simulate(key, instance(), jb.UCB1(), horizon=30, checkpoints=[10, 30])
        seen.append(repr(run))
        return run.regret

    jax.jit(jax.vmap(regret)).lower(jax.random.split(jax.random.key(0), 3))
    assert all(text.startswith("Run(") and "pulls=i32[2,3]" in text for text in seen)
    assert repr(jb.Run(None, 0, 0, {})).startswith("Run(rounds=None, pulls=0")  # as in_axes has it


def test_a_mean_is_shown_by_its_numbers():
    text = repr(jb.mean_ci(jnp.array([1.0, 2.0, 3.0])))
    assert text.startswith("MeanCI(mean=2.0, low=-0.484")
    assert "\n" not in text
    assert repr(jb.mean_ci(jnp.ones((3, 20)))).startswith(("MeanCI(mean=f32[20], low=f32[20]", "MeanCI(mean=f64[20]"))
    seen = []
    jax.jit(lambda x: seen.append(repr(jb.mean_ci(x)))).lower(jnp.ones(3))
    assert seen[0].startswith(("MeanCI(mean=f32[], low=f32[]", "MeanCI(mean=f64[], low=f64[]"))


def test_a_gradient_is_shown_by_its_numbers():
    gradient = jb.RegretGradient(jnp.float32(2), (jnp.array([1.5, 2.5]),), jnp.float32(0.5), None, "the derivative")
    assert repr(gradient).startswith("RegretGradient(value=2.0, gradient=([1.5, 2.5],), value_error=0.5")
