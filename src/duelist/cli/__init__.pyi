from duelist.cli.bench import CLOCKS as CLOCKS
from duelist.cli.bench import LEARNERS as LEARNERS
from duelist.cli.bench import measure_fastest as measure_fastest
from duelist.cli.bench import speed_table as speed_table
from duelist.cli.main import main as main
