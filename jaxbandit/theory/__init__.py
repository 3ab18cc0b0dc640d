"""The bounds and hard instances of Manegueu, Vernade, Carpentier and Valko (2020), "the paper", as functions.

Each docstring has the statement, its number, and what is wrong with it; where the paper's version and a correct one
differ, ``printed=True`` gives the paper's. Numbers may be arrays of one shape; all works under ``jit`` and ``vmap``.
Here a is ``min(tail_index, 1/2)``, K is ``num_arms`` and T is ``horizon``.

``bounds`` has the theorems, ``assumptions`` and ``windows`` what a delay law comes to in them and in D-UCB, ``checks``
their arguments. May import the rooms up to ``engine``.
"""

from jaxbandit.theory.assumptions import assumption1_tail_index, assumption2_constant
from jaxbandit.theory.bounds import (
    lai_robbins_slope,
    proposition1_interval,
    theorem1_width,
    theorem2_bound,
    theorem3_bound,
    theorem4_gap,
    theorem4_lower_bound,
    theorem4_pair,
    theorem5_lower_bound,
    theorem7_bound,
)
from jaxbandit.theory.windows import ducb_consistent_window, ducb_limits

__all__ = [
    "assumption1_tail_index",
    "assumption2_constant",
    "ducb_consistent_window",
    "ducb_limits",
    "lai_robbins_slope",
    "proposition1_interval",
    "theorem1_width",
    "theorem2_bound",
    "theorem3_bound",
    "theorem4_gap",
    "theorem4_lower_bound",
    "theorem4_pair",
    "theorem5_lower_bound",
    "theorem7_bound",
]
