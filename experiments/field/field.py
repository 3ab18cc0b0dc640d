"""Every policy against a grid of delay families: which is best where, who fails where, and what a wrong value costs."""

import os
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

import jaxbandit as jb
from experiments.field import grid
from experiments.field.shared import apart, measured, said
from experiments.report import Claim, Options, Progress, save

INSTANCES = {2: (0.5, 0.55), 5: (0.1, 0.2, 0.3, 0.4, 0.5), 10: tuple(np.linspace(0.1, 0.5, 10).tolist())}
HORIZON = 10_000
SEEDS, SLOW_SEEDS = 60, 20
WRONG = {"half": 0.5, "double": 2.0}
WRONG_ARMS = 5
QUICK_FAMILIES = ("none", "fixed 250", "½ lost", "Pareto .8 to .2", "lognormal 10 to 1000")
MOST = 20
"""Where the colours end."""
LINEAR = 0.8
"""A policy fails where its regret of the second half is more than this times that of the first ..."""
POOR = 0.5
"""... and more than this share of uniform play's."""

Cell = tuple[int, str, str, str]
"""Number of arms, delay family, policy, what it was told: "the truth", "half" or "double"."""
Regrets = dict[Cell, np.ndarray]
"""Regret of every run at T/2 and at T, [seeds, 2]."""
TRUTH = "the truth"


def main(options: Options) -> None:
    started = time.perf_counter()
    horizon = options.horizon or (1000 if options.quick else HORIZON)
    instances = {WRONG_ARMS: INSTANCES[WRONG_ARMS]} if options.quick else INSTANCES
    families = QUICK_FAMILIES if options.quick else list(grid.delays(2))
    regrets: Regrets = {}
    for num_arms, means in instances.items():
        for belief, factor in ({TRUTH: 1.0} | (WRONG if num_arms == WRONG_ARMS else {})).items():
            problems = {family: grid.problem(family, means, horizon, factor) for family in families}
            labels = list(problems["none"].policies) if belief == TRUTH else list(grid.TOLD)
            name, count = f"field, K = {num_arms}, told {belief}", len(labels) * len(families)
            with (
                Progress(name, count, unit="cells") as progress,
                ThreadPoolExecutor(os.cpu_count()) as threads,  # to compile side by side
            ):
                tasks = {
                    label: threads.submit(
                        on_all, problems, label, horizon, seeds(label, options), options.seed, progress
                    )
                    for label in labels
                }
                for label, task in tasks.items():
                    for family, regret in task.result().items():
                        regrets[num_arms, family, label, belief] = regret
    save(
        "field",
        draw(regrets, horizon),
        table(regrets),
        claims(regrets),
        {"instances": {str(k): v for k, v in instances.items()}, "families": families, "horizon": horizon}
        | {"seeds": seeds("UCB1", options), "seeds of the slow": seeds(grid.SLOW[0], options), "slow": grid.SLOW}
        | {"told": grid.TOLD, "sentences": sentences(regrets), "seed": options.seed},
        started,
        options,
    )


def seeds(label: str, options: Options) -> int:
    if options.seeds:
        return options.seeds
    return 8 if options.quick else SLOW_SEEDS if label in grid.SLOW else SEEDS


def on_all(
    problems: Mapping[str, grid.Problem], label: str, horizon: int, count: int, seed: int, progress: Progress
) -> dict[str, np.ndarray]:
    """Regret of a policy at T/2 and at T, [seeds, 2], by delay family."""
    found, rounds = {}, [horizon // 2, horizon]
    for family, problem in problems.items():
        policy = problem.policies[label]
        run = jb.simulate_batch(seed, problem.instance, policy, horizon=horizon, seeds=count, checkpoints=rounds)
        found[family] = np.asarray(run.regret, float)
        progress.done(1)
    return found


def of(regrets: Regrets, position: int) -> list[Any]:
    """What is at a position of the cells, each once, in order."""
    return list(dict.fromkeys(cell[position] for cell in regrets))


def mean(regrets: Regrets, cell: Cell) -> float:
    return float(regrets[cell][:, 1].mean())


def growth(regrets: Regrets, cell: Cell) -> float:
    """Regret of the second half over that of the first."""
    half, whole = regrets[cell].mean(axis=0)
    return float((whole - half) / max(half, 1e-9))


def best(regrets: Regrets, num_arms: int, family: str) -> str:
    return min(of(regrets, 2), key=lambda label: mean(regrets, (num_arms, family, label, TRUTH)))


def over_best(regrets: Regrets, cell: Cell) -> float:
    num_arms, family, _, _ = cell
    return mean(regrets, cell) / mean(regrets, (num_arms, family, best(regrets, num_arms, family), TRUTH))


def rank(regrets: Regrets, cell: Cell) -> int:
    num_arms, family, _, belief = cell
    others = [mean(regrets, (num_arms, family, label, belief)) for label in of(regrets, 2)]
    return 1 + sum(other < mean(regrets, cell) for other in others)


def fails(regrets: Regrets, cell: Cell) -> bool:
    """Whether regret still grows about linearly, and is not small beside uniform play's."""
    num_arms, family, _, _ = cell
    uniform = mean(regrets, (num_arms, family, "uniform play", TRUTH))
    return growth(regrets, cell) > LINEAR and mean(regrets, cell) > POOR * uniform


def fails_mostly(regrets: Regrets, label: str, family: str) -> bool:
    """Whether a policy fails with at least half of the numbers of arms."""
    arms = of(regrets, 0)
    return 2 * sum(fails(regrets, (num_arms, family, label, TRUTH)) for num_arms in arms) >= len(arms)


def table(regrets: Regrets) -> list[dict[str, object]]:
    """One row a cell, and at its end the policy's sentence."""
    said_of = sentences(regrets)
    return [
        {"num_arms": cell[0], "delays": cell[1], "policy": cell[2], "told": cell[3]}
        | measured(regret[:, 1])
        | {"over_best": over_best(regrets, cell), "growth": growth(regrets, cell), "fails": fails(regrets, cell)}
        | {"must_be_told": grid.TOLD.get(cell[2], "nothing"), "sentence": said_of[cell[2]]}
        for cell, regret in regrets.items()
    ]


def sentences(regrets: Regrets) -> Mapping[str, str]:
    """Of each policy: where it should be used, and where it fails."""
    return {label: sentence(regrets, label) for label in of(regrets, 2)}


def sentence(regrets: Regrets, label: str) -> str:
    arms, families = of(regrets, 0), of(regrets, 1)

    def at(family: str) -> list[Cell]:
        return [(num_arms, family, label, TRUTH) for num_arms in arms]

    typical = {f: np.exp(np.mean([np.log(over_best(regrets, cell)) for cell in at(f)])) for f in families}
    linear = [family for family in families if fails_mostly(regrets, label, family)]
    within = [family for family in families if typical[family] <= 2 and family not in linear]
    good = "everywhere" if len(within) == len(families) else ", ".join(within) or "nowhere"
    bad = "nowhere" if not linear else "everywhere" if len(linear) == len(families) else ", ".join(linear)
    ends = min(typical, key=typical.__getitem__), max(typical, key=typical.__getitem__)
    extremes = "; ".join(f"{typical[family]:.1f} times the best regret for {family}" for family in ends)
    return f"within twice the best: {good}; linear regret: {bad}; {extremes}"


def draw(regrets: Regrets, horizon: int) -> Figure:
    arms, families, labels = (of(regrets, i) for i in range(3))
    figure = plt.figure(figsize=(max(5.2 * len(arms), 10) + 3, 11.5), layout="constrained")
    halves: Any = figure.subfigures(2, 1, height_ratios=[len(labels) + 5, len(grid.TOLD) + 6])
    above, below = halves
    top, bottom = above.subplots(1, len(arms), squeeze=False)[0], below.subplots(1, len(WRONG), squeeze=False)[0]

    def mean_rank(label: str) -> float:
        return float(np.mean([rank(regrets, (k, family, label, TRUTH)) for k in arms for family in families]))

    order = sorted(labels, key=mean_rank)
    image: Any = None
    for ax, num_arms in zip(top, arms, strict=True):
        image = heat_map(ax, regrets, order, num_arms, TRUTH)
        ax.set_title(f"K = {num_arms}, told the truth", fontsize=10)
    for ax, belief in zip(bottom, WRONG, strict=True):
        heat_map(ax, regrets, [label for label in order if label in grid.TOLD], WRONG_ARMS, belief)
        ax.set_title(f"K = {WRONG_ARMS}, told {belief} the value", fontsize=10)
    for ax in (*top[1:], *bottom[1:]):
        ax.set_yticklabels([])
    bar = above.colorbar(image, ax=top, shrink=0.8, pad=0.01, ticks=[1, 2, 5, 10, MOST])
    bar.ax.set_yticklabels(["1", "2", "5", "10", f"{MOST} and more"])
    bar.minorticks_off()
    figure.suptitle(
        f"Regret at T = {horizon} over that of the best policy of the column (told the truth), its best three in bold; "
        "* still grows linearly",
        fontsize=11,
    )
    return figure


def heat_map(ax: Axes, regrets: Regrets, labels: list[str], num_arms: int, belief: str) -> Any:
    families = of(regrets, 1)
    cells = [[(num_arms, family, label, belief) for family in families] for label in labels]
    values = np.array([[over_best(regrets, cell) for cell in row] for row in cells])
    image = ax.imshow(values, norm=LogNorm(1, MOST), cmap="cividis_r", aspect="auto")
    for i, row in enumerate(cells):
        for j, cell in enumerate(row):
            text = f"{values[i, j]:.1f}" if values[i, j] < 9.95 else f"{values[i, j]:.0f}"
            text += "*" if fails(regrets, cell) else ""
            weight = "bold" if belief == TRUTH and rank(regrets, cell) <= 3 else "normal"
            colour = "white" if values[i, j] > 4 else "black"
            ax.text(j, i, text, ha="center", va="center", fontsize=7, color=colour, fontweight=weight)
    ax.set_xticks(range(len(families)), families, rotation=60, ha="right", rotation_mode="anchor", fontsize=8)
    ax.set_yticks(range(len(labels)), labels, fontsize=8)
    ax.tick_params(length=0)
    return image


def claims(regrets: Regrets) -> list[Claim]:
    return [
        thompson_is_as_good(regrets),
        zeros_fail_by_arm(regrets),
        correction_helps_by_arm(regrets),
        price_of_a_wrong_value(regrets),
        price_of_anonymity(regrets),
    ]


def by_arm(regrets: Regrets) -> list[str]:
    return [family for family in of(regrets, 1) if " to " in family]


def same_luck(regrets: Regrets, first: Cell, second: Cell) -> tuple[np.ndarray, np.ndarray]:
    """The final regrets of the runs that both have."""
    x, y = regrets[first][:, 1], regrets[second][:, 1]
    count = min(len(x), len(y))
    return x[:count], y[:count]


def thompson_is_as_good(regrets: Regrets) -> Claim:
    mine, beaten, columns = "Delayed-Thompson", {}, [(k, f) for k in of(regrets, 0) for f in of(regrets, 1)]
    for num_arms, family in columns:
        found = best(regrets, num_arms, family)
        if found == mine:
            continue
        cells = [(num_arms, family, label, TRUTH) for label in (mine, found)]
        difference, words = apart(*same_luck(regrets, cells[0], cells[1]))
        if difference.low > 0:
            beaten[f"K = {num_arms}, {family}"] = f"{words} above {found}"
    return Claim(
        "(Wu and Wager 2022, from memory) Thompson sampling on what has settled does as well as every other policy, "
        "whatever the delays",
        not beaten,
        f"surely worse than the best in {len(beaten)} of {len(columns)} columns"
        + "".join(f"; {where}: {words}" for where, words in list(beaten.items())[:4]),
    )


def zeros_fail_by_arm(regrets: Regrets) -> Claim:
    labels = ("Thompson", "KL-UCB", "UCB1")
    failed = [(f, p) for f in of(regrets, 1) for p in labels if fails_mostly(regrets, p, f)]
    expected = [(f, p) for f in by_arm(regrets) for p in labels]
    steepest = {
        p: max(growth(regrets, (k, f, p, TRUTH)) for k in of(regrets, 0) for f in by_arm(regrets)) for p in labels
    }
    return Claim(
        "policies that take a missing reward for a zero have linear regret where delays differ by arm, and only there",
        failed == expected,
        f"linear with most numbers of arms (the second half adds over {LINEAR} times what the first did, to over "
        f"{POOR} times uniform play's): "
        + ("; ".join(f"{p}, {f}" for f, p in failed) or "none")
        + f"; of {len(labels) * len(of(regrets, 1))} cases, {len(expected)} of them by arm. At most, by arm: "
        + ", ".join(f"{value:.2f} ({p})" for p, value in steepest.items()),
    )


def correction_helps_by_arm(regrets: Regrets) -> Claim:
    blind = ("Thompson", "KL-UCB", "UCB1", "softmax of UCB1", "PatientBandits", "Windowed(Del. KL-UCB)", "Discarding")
    words, holds = [], True
    for num_arms in of(regrets, 0):
        for family in by_arm(regrets):
            rival = min(blind, key=lambda label: mean(regrets, (num_arms, family, label, TRUTH)))
            mine = (num_arms, family, "CorrectedThompson", TRUTH)
            x, y = same_luck(regrets, mine, (num_arms, family, rival, TRUTH))
            difference, _ = apart(x, 0.6 * y)
            holds &= bool(difference.high < 0)
            words.append(f"K = {num_arms}, {family}: {said(x)}, {rival} {said(y)}")
    return Claim(
        "where delays differ by arm, CorrectedThompson, told each arm's law, has less than 60 % of the regret of every "
        "policy that sees conversions and is not told them",
        holds,
        "; ".join(words),
    )


def price_of_a_wrong_value(regrets: Regrets) -> Claim:
    prices = {
        (label, belief): max(
            (
                mean(regrets, (WRONG_ARMS, family, label, belief)) / mean(regrets, (WRONG_ARMS, family, label, TRUTH)),
                family,
            )
            for family in of(regrets, 1)
        )
        for label in grid.TOLD
        for belief in WRONG
    }
    return Claim(
        f"K = {WRONG_ARMS}: half or double the right value costs no policy more than a factor 2",
        all(price < 2 for price, _ in prices.values()),
        "dearest: " + "; ".join(f"{label}, {b}: {price:.1f} ({f})" for (label, b), (price, f) in prices.items()),
    )


def price_of_anonymity(regrets: Regrets) -> Claim:
    prices = {}
    for num_arms in of(regrets, 0):
        for family in of(regrets, 1):
            told = mean(regrets, (num_arms, family, "Delayed-UCB1", TRUTH))
            prices[num_arms, family] = mean(regrets, (num_arms, family, "ODAAF", TRUTH)) / told
    least, most = min(prices, key=prices.__getitem__), max(prices, key=prices.__getitem__)
    return Claim(
        "not to know which arm a reward belongs to costs ODAAF at least twice the regret of Delayed-UCB1",
        min(prices.values()) > 2,
        f"from {prices[least]:.1f} times (K = {least[0]}, {least[1]}) to {prices[most]:.1f} times (K = {most[0]}, "
        f"{most[1]})",
    )
