"""How a run is played: the random tape, rewards in flight, the one step and the one loop, batches and traces.

Read ``tape``, ``lookback``, ``pending``, ``ledger``, ``step``, ``history``, ``run``, ``batch``, ``traces``. May
import ``laws``, ``instance`` and ``policies``.
"""

from jaxbandit.engine.batch import simulate_batch
from jaxbandit.engine.history import History
from jaxbandit.engine.ledger import Rewards
from jaxbandit.engine.run import Run, simulate
from jaxbandit.engine.traces import Trace, replay, trace

__all__ = ["History", "Rewards", "Run", "Trace", "replay", "simulate", "simulate_batch", "trace"]
