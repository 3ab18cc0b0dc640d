"""One round at a time: an agent for a service, an environment for learners.

Read ``environment`` (the simulator, stepped by whoever chooses), then ``agent`` (a policy, stepped by whatever
happens) with ``served`` (what it has learned), ``journal`` (its file) and ``plain`` (policies as text). May import
``engine`` and all that comes before it.
"""

from jaxbandit.online.agent import Agent, load_agent
from jaxbandit.online.environment import Environment, uniform_instance

__all__ = ["Agent", "Environment", "load_agent", "uniform_instance"]
