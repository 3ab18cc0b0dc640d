"""What the documents show runs, and says what it says."""

import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from experiments import __main__ as command

ROOT = Path(__file__).parents[1]


def code_blocks(name: str, language: str = "python") -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / name).read_text(), re.DOTALL)


def test_the_readme_is_short_and_shows_code_early():
    lines = (ROOT / "README.md").read_text().splitlines()
    assert len(lines) <= 120
    assert lines.index("```python") < 40


def test_the_readme_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {}
    for block in code_blocks("README.md"):
        exec(re.sub(r"seeds=\d+", "seeds=8", re.sub(r"horizon=\d+", "horizon=300", block)), namespace)
    assert "MeanCI(mean=" in capsys.readouterr().out
    assert (tmp_path / "regret.png").stat().st_size > 5000


def test_the_page_on_gradients_runs(capsys):
    namespace: dict[str, object] = {}
    for block in code_blocks("docs/gradients.md"):
        exec(
            block.replace("seeds=1000", "seeds=8").replace("horizon=1000, seeds=200", "horizon=50, seeds=8"), namespace
        )
    assert "score: unbiased" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("page", "printed"),
    [
        ("rl", ["(7,) ", "(64, 100, 7)", "3 3"]),
        ("service", ["Choice(id=3, arm=2) [Choice(id=3, arm=2)]", "3 Choice(id=4"]),
        ("by_hand", ["[13 74 13]"]),
    ],
)
def test_the_pages_on_one_round_at_a_time_run(page, printed, tmp_path, monkeypatch, capsys):
    if jax.config.jax_numpy_dtype_promotion == "strict":
        pytest.skip("the pages leave the types of a user's own numbers to JAX")
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {}
    for block in code_blocks(f"docs/{page}.md"):
        exec(block, namespace)
    out = capsys.readouterr().out
    assert all(text in out for text in printed), out


def test_every_name_in_the_tables_of_the_readme_is_public():
    for name in re.findall(r"`([A-Z][A-Za-z0-9]+)`", (ROOT / "README.md").read_text()):
        assert name in {*jb.__all__, "NAME"}, name


def test_the_list_of_experiments_is_whole():
    listed = re.findall(r"^\| `(\w+)` \|", (ROOT / "docs" / "experiments.md").read_text(), re.MULTILINE)
    assert listed == list(command.NAMES)


def test_every_public_name_has_a_docstring():
    for name in jb.__all__:
        if name != "NEVER":
            assert (getattr(jb, name).__doc__ or "").strip(), name


def test_the_policy_of_contributing_runs():
    space: dict = {}
    exec(code_blocks("CONTRIBUTING.md")[0], space)
    easy = jb.Instance(jb.Bernoulli([0.1, 0.9]), jb.Geometric([2.0, 2.0]))
    regret = {
        epsilon: jb.simulate_batch(0, easy, space["EpsilonGreedy"](epsilon), horizon=500, seeds=40).regret[:, -1].mean()
        for epsilon in (0.1, 1.0)
    }
    assert regret[0.1] < 60
    assert abs(regret[1.0] - 200) < 5 * 0.8 * np.sqrt(500 / 4 / 40)  # arms at random: 250 pulls, binomial


def test_the_policy_of_contributing_that_knows_delays_by_arm_learns_who_is_slow():
    """Greedy play is right here: the rewards are not random, only late; the slow arm is the better one."""
    space: dict = {}
    exec(code_blocks("CONTRIBUTING.md")[1], space)
    problem = jb.Instance(jb.Deterministic([0.5, 0.9]), jb.Geometric([1.0, 200.0]))
    told, not_told = (
        jb.simulate_batch(0, problem, space["Greedy"](law), horizon=500, seeds=20).regret[:, -1].mean()
        for law in (problem.delay, jb.NoDelay())
    )
    assert told < 0.5 * not_told


def test_the_delay_law_of_contributing_is_one():
    if jax.config.jax_numpy_dtype_promotion == "strict":
        pytest.skip("the example leaves the types of a user's own numbers to JAX")
    space: dict = {}
    exec(code_blocks("CONTRIBUTING.md")[2], space)
    law = space["Batched"](jnp.array([1.0, 7.0]))
    u = jnp.linspace(1e-3, 1, 1000)
    draws = np.asarray(jax.vmap(law.sampler(), (0, None))(u, jnp.int32(1)))
    assert sorted(set(draws.tolist())) == [1, 2, 3, 4, 5, 6, 7]
    for m in range(8):
        np.testing.assert_allclose((draws > m).mean(), law.survival(m)[1], atol=2e-3)
        before = law.survival(m - 1) if m else jnp.ones(2)
        np.testing.assert_allclose(np.exp(law.log_prob(m)), before - law.survival(m), atol=1e-6)
    run = jb.simulate(0, jb.Instance(jb.Bernoulli([0.4, 0.6]), law), jb.UCB1(), horizon=50)
    assert int(run.pulls[-1].sum()) == 50
