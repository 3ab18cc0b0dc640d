"""How a run is played: the random tape, rewards in flight, the one step and the one loop, batches and traces.

Read ``tape``, ``pending``, ``step``, ``run``, ``batch``, ``trace``. May import ``laws``, ``instance`` and ``policies``.
"""

from jaxbandit.engine.batch import simulate_batch
from jaxbandit.engine.run import Run, simulate
from jaxbandit.engine.trace import Trace, replay

__all__ = ["Run", "Trace", "replay", "simulate", "simulate_batch"]
