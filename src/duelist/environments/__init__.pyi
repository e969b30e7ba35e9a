from duelist.environments.base import Environment as Environment
from duelist.environments.continuous import ContinuousDuels as ContinuousDuels
from duelist.environments.hard import HardDuels as HardDuels
from duelist.environments.linear import LinearDuels as LinearDuels
from duelist.environments.linear import LinearDuels as LinearSlates  # noqa: F401 - its name for slates at 0.1.0
from duelist.environments.listed import ListedDuels as ListedDuels
from duelist.environments.nonlinear import NetworkDuels as NetworkDuels
from duelist.environments.nonlinear import QuadraticDuels as QuadraticDuels
from duelist.environments.registry import ENVIRONMENTS as ENVIRONMENTS
