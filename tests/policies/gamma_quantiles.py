"""How the constants of ``jaxbandit/policies/beta.py`` were found: ``python -m tests.policies.gamma_quantiles``.

The logarithms of the quantiles of gamma laws of shapes from 1 to infinity, at the quantiles of normals up to 6.75
standard deviations, by least squares: each error is weighed by how far it moves the distribution function, and weighed
again and again by its size, so that the largest becomes small (Lawson, 1961).
"""

import numpy as np
from scipy import special

DEGREE = 10
LEAST_WEIGHT = 1e-4
"""Of tails that hardly matter to a distribution function."""


def exact(shapes: np.ndarray, normals: np.ndarray) -> np.ndarray:
    """``log(X / shape)`` of the quantiles X."""
    below = special.gammaincinv(shapes, special.ndtr(normals))
    above = special.gammainccinv(shapes, special.ndtr(-normals))
    return np.log(np.where(normals < 0, below, above) / shapes)


def weights(shapes: np.ndarray, log_quantiles: np.ndarray) -> np.ndarray:
    """The density of the logarithm: what a small error of it costs a distribution function."""
    x = shapes * np.exp(log_quantiles)
    return np.exp(shapes * np.log(x) - x - special.gammaln(shapes))


def fit(repeats: int = 200) -> np.ndarray:
    """The coefficient of ``(z / sqrt(a))^i a^-j`` in row i and column j, i + 2 j from 1 to ``DEGREE``."""
    inverse = (1 - np.cos(np.linspace(0, np.pi, 61)))[1:] / 2
    shapes, normals = np.meshgrid(1 / inverse, 6.75 * np.cos(np.linspace(0, np.pi, 241)), indexing="ij")
    values = exact(shapes, normals)
    weight = np.maximum(weights(shapes, values), LEAST_WEIGHT * np.sqrt(shapes))
    terms = [(i, j) for i in range(DEGREE + 1) for j in range(DEGREE // 2 + 1) if 0 < i + 2 * j <= DEGREE]
    powers = np.stack([(normals / np.sqrt(shapes)) ** i * shapes**-j for i, j in terms], axis=-1)
    again, least = np.ones_like(values), np.inf
    table = np.zeros((DEGREE + 1, DEGREE // 2 + 1))
    for _ in range(repeats):
        rows = weight * np.sqrt(again)
        found = np.linalg.lstsq((powers * rows[..., None]).reshape(-1, len(terms)), (values * rows).ravel())[0]
        error = np.abs((powers @ found - values) * weight)
        if error.max() < least:
            least = error.max()
            table[tuple(np.transpose(terms))] = found
        again = again * np.sqrt(error / error.max() + 1e-3)
        again /= again.mean()
    return table


if __name__ == "__main__":
    for i, row in enumerate(fit()):
        print("    (" + ", ".join(f"{x:.8g}" for x in row[: (DEGREE - i) // 2 + 1]) + ",),")
