"""Makes the log that ships with the package: three campaigns in 14 days, the better the slower.

``python -m experiments.logs.example`` writes ``jaxbandit/logs/data/campaigns.csv.gz``.
"""

import gzip

import jax
import numpy as np

import jaxbandit as jb

RATES = (0.06, 0.09, 0.11)
MEDIANS = (0.2, 1.0, 2.5)
"""Of the delays, in days."""
SIGMA = 1.2
PULLS, DAYS = 12_000, 14
START = np.datetime64("2026-11-01T00:00:00")


def rows(seed: int = 0) -> list[str]:
    """Lines of the file. Delays are drawn in seconds, by the same function of a uniform as in a simulation."""
    day = 86_400
    law = jb.LogNormal(np.array(MEDIANS) * day, SIGMA)
    arms, clicks, sales, delays = jax.random.split(jax.random.key(seed), 4)
    arm = np.asarray(jax.random.randint(arms, (PULLS,), 0, len(RATES)))
    click = np.sort(np.asarray(jax.random.uniform(clicks, (PULLS,))) * DAYS * day).astype(int)
    sold = np.asarray(jb.Bernoulli(RATES).isf(jax.random.uniform(sales, (PULLS, 1), minval=1e-7)))[
        np.arange(PULLS), arm
    ]
    delay = np.asarray(law.isf(jax.random.uniform(delays, (PULLS, 1), minval=1e-7)))[np.arange(PULLS), arm]
    seen = (sold > 0) & (click + delay <= DAYS * day)
    lines = ["campaign,click,sale"]
    for i in range(PULLS):
        sale = str(START + np.timedelta64(int(click[i] + delay[i]), "s")).replace("T", " ") if seen[i] else ""
        lines.append(f"{'ABC'[arm[i]]},{str(START + np.timedelta64(int(click[i]), 's')).replace('T', ' ')},{sale}")
    return lines


if __name__ == "__main__":
    data = ("\n".join(rows()) + "\n").encode()
    jb.example_log().parent.mkdir(exist_ok=True)
    jb.example_log().write_bytes(gzip.compress(data, mtime=0))
