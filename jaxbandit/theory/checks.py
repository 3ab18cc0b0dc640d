"""What the arguments of these functions have in common."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from jaxtyping import Array, Float

from jaxbandit import _checks
from jaxbandit.instance import Instance

BLOCK = 2**12
"""So many ages of a delay law are looked at side by side."""

KNOWN = "give a law such as Pareto, or Empirical for delays that were measured"

Numbers = Float[Array, "..."]


def tail_index(name: str, x: Any) -> Numbers:
    return _checks.floats(f"{name}: tail_index", x, "finite and > 0", "rewards that come at once have any tail index")


def count(name: str, x: Any) -> Numbers:
    return _checks.floats(name, x, "finite and >= 1", "give a number of rounds, pulls or arms")


def fraction(name: str, x: Any) -> Numbers:
    return _checks.floats(name, x, "in (0, 1]", "give a number above 0 and at most 1")


def check_instance(name: str, instance: Any) -> None:
    if not isinstance(instance, Instance):
        raise TypeError(f"{name}: instance must be a jaxbandit.Instance, got {instance!r}")


@contextmanager
def known_survival(name: str, delay: Any) -> Iterator[None]:
    """Around what needs ``P(D > m)``: a law of which only draws are known is refused."""
    try:
        yield
    except NotImplementedError:
        raise TypeError(f"{name}: the survival function of delay {delay!r} is unknown; {KNOWN}") from None
