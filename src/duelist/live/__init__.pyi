from duelist.live.agent import Agent as Agent
from duelist.live.duel import Duel as Duel
from duelist.live.lane import LiveLane as LiveLane
from duelist.live.lane import Proposal as Proposal
from duelist.live.slate_agent import Slate as Slate
from duelist.live.slate_agent import SlateAgent as SlateAgent
