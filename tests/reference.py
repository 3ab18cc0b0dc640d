"""Every policy again, slowly, in plain NumPy and double precision, straight from its formula and the whole history."""

from collections.abc import Callable

import numpy as np
from scipy import special


class History:
    """What was pulled in rounds 1..t-1, and what of it can be seen at the start of round t."""

    def __init__(self, rewards: np.ndarray, delays: np.ndarray):
        self.rewards, self.delays = np.asarray(rewards, float), np.asarray(delays, float)
        self.horizon, self.num_arms = self.rewards.shape
        self.arms: list[int] = []

    @property
    def t(self) -> int:
        return len(self.arms) + 1

    def pulls_of(self, arm: int) -> np.ndarray:
        """The rounds s < t in which ``arm`` was pulled."""
        return np.array([s + 1 for s, a in enumerate(self.arms) if a == arm], int)

    def count(self, arm: int) -> int:
        return len(self.pulls_of(arm))

    def seen(self, arm: int, age: float = np.inf, old: int = 0) -> float:
        """Sum of C_s 1{D_s <= min(t - s, age)} over the arm's pulls that are at least ``old`` rounds old."""
        s = self.pulls_of(arm)
        s = s[self.t - s >= old]
        c, d = self.rewards[s - 1, arm], self.delays[s - 1, arm]
        return float(np.sum(c * (d <= np.minimum(self.t - s, age))))


Index = Callable[[History, int], float]


def play(index: Index, rewards: np.ndarray, delays: np.ndarray) -> np.ndarray:
    """The arms of rounds 1..T: highest index, then fewest pulls, then lowest number."""
    history = History(rewards, delays)
    for _ in range(history.horizon):
        order = [(-index(history, i), history.count(i), i) for i in range(history.num_arms)]
        history.arms.append(min(order)[2])
    return np.array(history.arms)


def _log_term(h: History) -> float:
    return float(np.log(2 * h.num_arms * float(h.horizon) ** 3))


def ucb1(h: History, i: int) -> float:
    n = h.count(i)
    return np.inf if n == 0 else h.seen(i) / n + np.sqrt(2 * np.log(h.t) / n)


def _patient(h: History, i: int, alpha: float, bonus_scale: float = 1.0, bias_scale: float = 2.0) -> float:
    n = h.count(i)
    if n == 0:
        return np.inf
    return h.seen(i) / n + bonus_scale * np.sqrt(2 * _log_term(h) / n) + bias_scale * n ** -min(alpha, 0.5)


def patient_bandits(alpha: float | Callable[[int], float], bonus_scale: float = 1.0, bias_scale: float = 2.0) -> Index:
    def index(h: History, i: int) -> float:
        return _patient(h, i, alpha(h.t) if callable(alpha) else alpha, bonus_scale, bias_scale)

    return index


def corollary1(t: int) -> float:
    return max(0.0, np.log(np.log(t)) / np.log(t)) if t >= 3 else 0.0


def adaptive_estimates(
    h: History, c: float, alpha_min: float, mean_min: float, lcb_scale: float
) -> tuple[float, float]:
    counts = [h.count(j) for j in range(h.num_arms)]
    i, n = int(np.argmax(counts)), max(counts)
    long = max(1, n // 2)
    short = max(1, int(np.floor((c / 2) ** (1 / alpha_min) * long * (1 + 1e-14))))

    def mean(window: int) -> float:
        old = np.sum(h.t - h.pulls_of(i) >= window)
        return h.seen(i, age=window, old=window) / max(old, 1)

    rise = mean(long) - mean(short)
    alpha_hat = min(-np.log(rise) / np.log(n), 0.5) if rise > 0 else 0.5
    width = np.log(16 * np.sqrt(_log_term(h)) / (c * mean_min)) / np.log(n)
    return alpha_hat, max(0.0, alpha_hat - lcb_scale * width)


def adapt_patient_bandits(c: float, alpha_min: float, mean_min: float, lcb_scale: float = 1.0) -> Index:
    def index(h: History, i: int) -> float:
        if h.t <= 2 * h.num_arms:
            return np.inf
        return _patient(h, i, adaptive_estimates(h, c, alpha_min, mean_min, lcb_scale)[1])

    return index


Belief = Callable[[np.ndarray], np.ndarray] | list[Callable[[np.ndarray], np.ndarray]]
"""A distribution function for all arms, or one an arm."""


def _effective(h: History, i: int, window: float, cdf: Belief) -> float:
    own = cdf[i] if isinstance(cdf, list) else cdf
    return float(np.sum(own(np.minimum(h.t - h.pulls_of(i), window))))


def ducb(window: int | None, cdf: Belief, warmup: str = "arms") -> Index:
    m = np.inf if window is None else window

    def index(h: History, i: int) -> float:
        n, s, e = h.count(i), h.seen(i, age=m), _effective(h, i, m, cdf)
        if e == 0 or (warmup == "window" and h.t <= m + h.num_arms):
            return np.inf
        return s / e + np.sqrt(n / e) * np.sqrt(np.log(h.t) / (2 * e))

    return index


def dkl_ucb(window: int | None, cdf: Belief, warmup: str = "arms") -> Index:
    m = np.inf if window is None else window

    def index(h: History, i: int) -> float:
        s, e = h.seen(i, age=m), _effective(h, i, m, cdf)
        if e == 0 or (warmup == "window" and h.t <= m + h.num_arms):
            return np.inf
        theta = min(1.0, s / e)

        def fits(q: float) -> bool:
            divergence = (theta * np.log(theta / q) if theta > 0 else 0.0) + q - theta
            return e * divergence <= np.log(h.t)

        if fits(1.0):
            return 1.0
        low, high = theta, 1.0
        for _ in range(100):
            middle = (low + high) / 2
            low, high = (middle, high) if fits(middle) else (low, middle)
        return low

    return index


def discarding(window: int) -> Index:
    def index(h: History, i: int) -> float:
        s = h.pulls_of(i)
        n = int(np.sum(h.t - s >= window))
        if n == 0 or h.t <= window + h.num_arms:
            return np.inf
        return h.seen(i, age=window, old=window) / n + np.sqrt(2 * np.log(h.t) / n)

    return index


def delayed_ucb1(h: History, i: int) -> float:
    s = h.pulls_of(i)
    n = int(np.sum(h.delays[s - 1, i] <= h.t - s))
    return np.inf if n == 0 else h.seen(i) / n + np.sqrt(2 * np.log(h.t) / n)


def uniform(h: History, i: int) -> float:
    return 0.0


def settled(h: History, i: int) -> tuple[int, float]:
    """How many of the arm's pulls have settled, and their rewards."""
    s = h.pulls_of(i)
    return int(np.sum(h.delays[s - 1, i] <= h.t - s)), h.seen(i)


def bernoulli_kl(p: float, q: float) -> float:
    zero = 0.0 if p == 0 else p * np.log(p / q)
    return zero if p == 1 else zero + (1 - p) * np.log((1 - p) / (1 - q))


def bernoulli_upper(mean: float, budget: float) -> float:
    """The largest q with ``kl(mean, q) <= budget``, by bisection."""
    if mean >= 1:
        return 1.0
    low, high = mean, 1.0
    for _ in range(100):
        middle = (low + high) / 2
        fits = middle < 1 and bernoulli_kl(mean, middle) <= budget
        low, high = (middle, high) if fits else (low, middle)
    return low


def _klucb(h: History, n: int, rewards: float, c: float) -> float:
    if n == 0:
        return np.inf
    return bernoulli_upper(rewards / n, (np.log(h.t) + c * np.log(max(np.log(h.t), 1))) / n)


def klucb(c: float = 0.0) -> Index:
    return lambda h, i: _klucb(h, h.count(i), h.seen(i), c)


def delayed_klucb(c: float = 0.0) -> Index:
    return lambda h, i: _klucb(h, *settled(h, i), c)


def successive_elimination() -> Index:
    out: set[int] = set()

    def index(h: History, i: int) -> float:
        if h.t == 1:
            out.clear()
        if i == 0:
            active = {j: settled(h, j) for j in range(h.num_arms) if j not in out}
            bounds = {j: (r / n, np.sqrt(2 * np.log(h.horizon) / n)) for j, (n, r) in active.items() if n > 0}
            best = max((mean - width for mean, width in bounds.values()), default=-np.inf)
            out.update(j for j, (mean, width) in bounds.items() if mean + width < best)
        return -np.inf if i in out else 0.0

    return index


def otf_lin_ucb(window: int, ridge: float = 1.0, delta: float = 0.1) -> Index:
    def index(h: History, i: int) -> float:
        k = h.num_arms
        v = [ridge + h.count(j) for j in range(k)]
        bias = sum(1 / np.sqrt(v[arm]) for arm in h.arms[-window:])
        volume = np.log((k * ridge + h.t) / (k * ridge))
        f = np.sqrt(ridge) + np.sqrt(2 * np.log(1 / delta) + k * volume)
        return h.seen(i, age=window) / v[i] + (2 * f + bias) / np.sqrt(v[i])

    return index


def odaaf_target(phase: int, horizon: int, expected: float) -> int:
    gap = 2.0**-phase
    log = max(np.log(horizon * gap**2), 0)
    root = np.sqrt(2 * log) + np.sqrt(2 * log + 8 / 3 * gap * log + 6 * gap * phase * expected)
    return max(int(np.ceil(root**2 / gap**2)), 1)


def _odaaf(h: History, expected: float):
    """The program of ODAAF: yields an arm, is sent the sum of what arrives after it."""
    k, active, phase = h.num_arms, list(range(h.num_arms)), 1
    own, x, before = [0] * k, [0.0] * k, 0
    last = -1
    while phase == 1 or h.horizon * 4.0**-phase > np.e:
        target = odaaf_target(phase, h.horizon, expected)
        waiting = [last] if last in active and own[last] < target else []
        while any(own[j] < target for j in active):
            if not waiting:
                waiting = [min((j for j in active if own[j] < target), key=lambda j: (h.count(j), j))]
            last = waiting.pop()
            while own[last] < target:
                x[last] += yield last
                own[last] += 1
        means = {j: x[j] / own[j] for j in active}
        active = [j for j in active if not means[j] + 2.0**-phase < max(means.values())]
        phase += 1
        if h.horizon * 4.0**-phase > np.e:
            if last not in active and target > before:
                last = min(active, key=lambda j: (h.count(j), j))
            for _ in range(target - before):
                yield last
        before = target
    while True:
        yield min(active, key=lambda j: (-x[j] / own[j], h.count(j), j))


def odaaf(expected: float) -> Index:
    now: dict = {}

    def index(h: History, i: int) -> float:
        if i == 0 and h.t == 1:
            now["program"] = _odaaf(h, expected)
            now["arm"] = next(now["program"])
        elif i == 0:
            s = np.arange(1, h.t)
            arms = np.array(h.arms)
            delays = np.maximum(h.delays[s - 1, arms], 1)
            now["arm"] = now["program"].send(float(np.sum(h.rewards[s - 1, arms] * (s + delays == h.t))))
        return float(i == now["arm"])

    return index


def beta_draw(a: float, b: float, uniforms: np.ndarray) -> float:
    """``X / (X + Y)`` of two gammas, each the exact quantile that a normal has in its own law; of shape + 1, times a
    power of a uniform, where the shape is below 1."""
    (first, second), powers = uniforms
    radius, angle = np.sqrt(-2 * np.log(first)), 2 * np.pi * second
    z = radius * np.cos(angle), radius * np.sin(angle)
    x, y = (
        special.gammaincinv(shape + (shape < 1), special.ndtr(normal)) * (u ** (1 / shape) if shape < 1 else 1)
        for shape, normal, u in zip((a, b), z, powers, strict=True)
    )
    return x / (x + y)


Uniforms = Callable[[int, int], np.ndarray]
"""Of a round and an arm: two uniforms of the normals, two of the powers."""


def thompson(uniforms: Uniforms, successes: float = 1.0, failures: float = 1.0) -> Index:
    def index(h: History, i: int) -> float:
        n, s = h.count(i), h.seen(i)
        return beta_draw(successes + s, failures + max(n - s, 0), uniforms(h.t, i))

    return index


def delayed_thompson(uniforms: Uniforms, successes: float = 1.0, failures: float = 1.0) -> Index:
    def index(h: History, i: int) -> float:
        n, r = settled(h, i)
        return beta_draw(successes + r, failures + n - r, uniforms(h.t, i))

    return index


def corrected_thompson(uniforms: Uniforms, window: int | None, cdf: Belief) -> Index:
    m = np.inf if window is None else window

    def index(h: History, i: int) -> float:
        s = h.seen(i, age=m)
        return beta_draw(1 + s, 1 + max(_effective(h, i, m, cdf) - s, 0), uniforms(h.t, i))

    return index


def windowed_ucb1(window: int) -> Index:
    def index(h: History, i: int) -> float:
        n = int(np.sum(h.t - h.pulls_of(i) >= window))
        return np.inf if n == 0 else h.seen(i, age=window, old=window) / n + np.sqrt(2 * np.log(h.t) / n)

    return index


def batched(inner: Index, period: int) -> Index:
    def index(h: History, i: int) -> float:
        known = History(h.rewards, h.delays)
        known.arms = h.arms[: (h.t - 1) // period * period]
        return inner(known, i)

    return index


def queued(inner: Index) -> Index:
    """QPM-D: what settles waits in a queue of its arm, until the policy inside wishes that arm."""
    now: dict = {}

    def wish() -> int:
        own: History = now["own"]
        return min((-inner(own, i), own.count(i), i) for i in range(own.num_arms))[2]

    def index(h: History, i: int) -> float:
        if i == 0 and h.t == 1:
            now["own"] = History(np.zeros_like(h.rewards), np.zeros_like(h.delays))
            now["queues"] = [[] for _ in range(h.num_arms)]
            now["wish"] = wish()
        elif i == 0:
            for arm, queue in enumerate(now["queues"]):
                s = h.pulls_of(arm)
                s = s[s + np.maximum(h.delays[s - 1, arm], 1) == h.t]
                queue += [h.rewards[s - 1, arm].mean()] * len(s) if len(s) else []
            while now["queues"][now["wish"]]:
                arm, own = now["wish"], now["own"]
                own.rewards[len(own.arms), arm] = now["queues"][arm].pop(0)
                own.arms.append(arm)
                now["wish"] = wish()
        return float(i == now["wish"])

    return index
