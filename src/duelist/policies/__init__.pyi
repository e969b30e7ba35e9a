from duelist.policies.algorithms import *  # noqa: F403 - the registry
from duelist.policies.algorithms.fgts import FGTS as FGTS
from duelist.policies.algorithms.listwise_fgts import ListwiseFGTS as ListwiseFGTS
from duelist.policies.algorithms.nonlinear_fgts import NonlinearFGTS as NonlinearFGTS
from duelist.policies.algorithms.vacdb import VACDB as VACDB
from duelist.policies.base import Policy as Policy
from duelist.policies.base import SlatePolicy as SlatePolicy
from duelist.policies.codec import can_be_written as can_be_written
from duelist.policies.codec import policy_from_mapping as policy_from_mapping
from duelist.policies.codec import to_mapping as to_mapping
from duelist.policies.registry import POLICIES as POLICIES
from duelist.policies.registry import duel_policies as duel_policies
from duelist.policies.registry import plays_slates as plays_slates
from duelist.policies.registry import policy_class as policy_class
from duelist.policies.registry import slate_policies as slate_policies
