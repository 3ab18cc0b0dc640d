"""Every policy again, slowly, in plain NumPy and double precision, straight from its formula and the whole history."""

from collections.abc import Callable

import numpy as np


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


def _effective(h: History, i: int, window: float, cdf: Callable[[np.ndarray], np.ndarray]) -> float:
    return float(np.sum(cdf(np.minimum(h.t - h.pulls_of(i), window))))


def ducb(window: int | None, cdf: Callable[[np.ndarray], np.ndarray], warmup: str = "arms") -> Index:
    m = np.inf if window is None else window

    def index(h: History, i: int) -> float:
        n, s, e = h.count(i), h.seen(i, age=m), _effective(h, i, m, cdf)
        if e == 0 or (warmup == "window" and h.t <= m + h.num_arms):
            return np.inf
        return s / e + np.sqrt(n / e) * np.sqrt(np.log(h.t) / (2 * e))

    return index


def dkl_ucb(window: int | None, cdf: Callable[[np.ndarray], np.ndarray], warmup: str = "arms") -> Index:
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
