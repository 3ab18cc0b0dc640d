"""Sums over runs as whole numbers: exact, so that neither the order of the runs nor their cut into blocks matters.

A device counts in 32 bits. It adds up the halves of its numbers, and the host puts the sums together in 64 bits.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Float64, Int32, Int64, Integer, Real

HALF = 16
AT_ONCE = 2**15
"""So many halves of 16 bits can be added in 32, of signed numbers too."""

LIMB = 32
SIGNED_LIMB = 31
REGRET_BITS = 31
DIAGNOSTIC_BITS = 24


class Halves(NamedTuple):
    """Sums over groups of runs of the high and of the low 16 bits of a whole number."""

    high: Integer[Array, "*shape groups"]
    low: Integer[Array, "*shape groups"]


class RegretSums(NamedTuple):
    """For ``q = 2^16 a + b``: sums of q, a^2, a b, b^2."""

    q: Halves
    high: Halves
    mixed: Halves
    low: Halves


class DiagnosticSums(NamedTuple):
    """For ``q = 2^31 a + b``, both of the sign of q: sums of a and b, and how many q are too large or not finite."""

    high: Halves
    low: Halves
    bad: Int32[Array, "*shape"]


def halves(x: Integer[Array, "*shape runs"]) -> Halves:
    *shape, runs = x.shape
    group = min(runs, AT_ONCE)
    padded = jnp.pad(x, [(0, 0)] * len(shape) + [(0, -runs % group)]).reshape(*shape, -1, group)
    return Halves(*(jnp.sum(half, axis=-1, dtype=x.dtype) for half in _cut(padded)))


def _cut(x: Integer[Array, "*shape"]) -> tuple[Array, Array]:
    """``a`` and ``b`` of ``x = 2^16 a + b``."""
    return x >> jnp.asarray(HALF, x.dtype), x & jnp.asarray(2**HALF - 1, x.dtype)


def regret_bits(rounds: np.ndarray) -> np.ndarray:
    """At a checkpoint t, regret is counted in units of 2^-bits: q <= 2^31, as no regret is above t."""
    return REGRET_BITS - np.ceil(np.log2(rounds + 1.0)).astype(int)


def regret_sums(regret: Float[Array, "C runs"], used: Bool[Array, " runs"], per_unit: Float[Array, " C"]) -> RegretSums:
    """Of ``q = rint(regret per_unit)`` over the runs that are ``used``; ``per_unit`` is 2^bits, see ``regret_bits``."""
    q = jnp.where(used[None], jnp.rint(regret * per_unit[:, None]), 0).astype(jnp.uint32)
    a, b = _cut(q)
    return RegretSums(halves(q), halves(a * a), halves(a * b), halves(b * b))


def diagnostic_sums(values: Real[Array, "C runs"], used: Bool[Array, " runs"]) -> DiagnosticSums:
    """Of ``q = rint(value 2^24)``, of the value as a float, over the runs that are ``used``."""
    scaled = values.astype(float) * 2.0**DIAGNOSTIC_BITS
    good = jnp.abs(scaled) < 2.0**62
    q = jnp.rint(jnp.where(good & used[None], scaled, 0))
    high = jnp.trunc(q * 2.0**-SIGNED_LIMB)
    low = q - high * 2.0**SIGNED_LIMB  # exact: of the sign of q, and the last of its digits
    bad = jnp.sum(~good & used[None], axis=-1, dtype=jnp.int32)
    return DiagnosticSums(halves(high.astype(jnp.int32)), halves(low.astype(jnp.int32)), bad)


def total(sums: Halves) -> Int64[np.ndarray, "*shape"]:
    """The sum of all runs, on the host."""
    high, low = (np.sum(x, axis=-1, dtype=np.int64) for x in sums)
    return np.asarray((high << HALF) + low)


def regret_limbs(sums: RegretSums) -> Int64[np.ndarray, "*shape 3"]:
    """The sum of q, and that of q^2 as two numbers, see ``whole``: neither overflows for 2^31 runs."""
    q, high, mixed, low = map(total, sums)
    carried = LIMB - HALF - 1  # q^2 = 2^32 a^2 + 2^17 a b + b^2
    return np.stack([q, high + (mixed >> carried), low + ((mixed & (2**carried - 1)) << (HALF + 1))], axis=-1)


def diagnostic_limbs(sums: DiagnosticSums) -> Int64[np.ndarray, "*shape 3"]:
    """The sum of q as two numbers, see ``whole``, and how many are left out."""
    high, low = total(sums.high), total(sums.low)
    return np.stack([high >> 1, low + ((high & 1) << SIGNED_LIMB), np.asarray(sums.bad, np.int64)], axis=-1)


def whole(high: np.ndarray, low: np.ndarray) -> Any:
    """The sums behind two numbers, as Python's integers, which do not overflow."""
    return high.astype(object) * 2**LIMB + low.astype(object)


def standard_error(
    sums: Int64[np.ndarray, "*shape C 3"], rounds: np.ndarray, n: int
) -> Float64[np.ndarray, "*shape C"]:
    """``sqrt((n sum q^2 - (sum q)^2) / (n (n - 1)) / n)``, exact up to the last division; NaN for a single run."""
    if n == 1:
        return np.full(sums.shape[:-1], np.nan)
    q, square = sums[..., 0].astype(object), whole(sums[..., 1], sums[..., 2])
    variance = ((n * square - q * q) / (n * (n - 1))).astype(np.float64)
    return np.sqrt(variance / n) * np.exp2(-regret_bits(rounds))


def diagnostic_mean(sums: Int64[np.ndarray, "*shape 3"], n: int) -> Float64[np.ndarray, "*shape"]:
    """NaN where a value was not finite, or 2^38 and more."""
    mean = (whole(sums[..., 0], sums[..., 1]) / (n * 2**DIAGNOSTIC_BITS)).astype(np.float64)
    return np.where(sums[..., 2] > 0, np.nan, mean)
