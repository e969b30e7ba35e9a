"""Kill a sweep with SIGKILL at random moments, let it resume, and compare its table with an uninterrupted one byte by byte.

Run: python benchmarks/kill_and_resume.py [--kills 20] [--seed 0]
"""

from __future__ import annotations

import argparse
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SPEC = """
name = "killed"
rounds = 400
trials = 12
environment = { dim = [4, 6, 8], arms = 16 }
tuning = { trials = 10 }

[[policies]]
policy = "FGTS"
grid.alpha = [0.0, 0.1, 1.0]

[[policies]]
policy = "FGTS"
label = "FGTS, paper's sampler, tuned"
parameters = { sampler = "paper" }
tune.alpha.few = [0.0, 1.0]
tune.alpha.many = [0.0, 0.01, 0.1, 1.0, 10.0]

[[policies]]
policy = "Uniform"
"""

CHILD = """
import sys
from duelist.experiments.sweep.runner import run_spec
from duelist.experiments.sweep.spec import load_spec
result = run_spec(load_spec(sys.argv[1]), sys.argv[2], workers=int(sys.argv[3]), progress=False)
print(f"{result.computed} computed, {result.reused} reused, {len(result.problems)} problems", *result.problems, sep="\\n")
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    moments = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as folder:
        spec = Path(folder) / "spec.toml"
        spec.write_text(SPEC)

        def command(out: str, workers: int) -> list[str]:
            return [sys.executable, "-c", CHILD, str(spec), f"{folder}/{out}", str(workers)]

        subprocess.run(command("warm-up", 2), check=True, stdout=subprocess.DEVNULL)
        started = time.perf_counter()
        subprocess.run(command("whole", 1), check=True, stdout=subprocess.DEVNULL)
        whole = time.perf_counter() - started
        print(f"uninterrupted, one worker: {whole:.1f} s")
        killed = interrupted = 0
        rounds_to_finish = 0
        while killed < options.kills:
            child = subprocess.Popen(command(f"killed{rounds_to_finish}", 1 + killed % 2), stdout=subprocess.PIPE, text=True)
            try:
                child.wait(moments.uniform(0.0, 0.6 * whole))
                rounds_to_finish += 1  # it ended before its moment came: kill a fresh sweep from here on
                continue
            except subprocess.TimeoutExpired:
                child.send_signal(signal.SIGKILL)
                child.wait()
                killed += 1
            parts = list(Path(folder, f"killed{rounds_to_finish}", "parts").glob("*.parquet"))
            half_written = list(Path(folder, f"killed{rounds_to_finish}", "parts").glob(".*.part"))
            interrupted += bool(half_written)
            print(f"kill {killed:2d}: {len(parts)} parts finished, {len(half_written)} half written")
        same = []
        for sweep in range(rounds_to_finish + 1):
            last = subprocess.run(command(f"killed{sweep}", 2), check=True, capture_output=True, text=True)
            print(f"sweep {sweep} resumed: {last.stdout.strip()}")
            (expected,), (table,) = Path(folder, "whole").glob("*.parquet"), Path(folder, f"killed{sweep}").glob("*.parquet")
            same.append(expected.read_bytes() == table.read_bytes())
        print(f"{killed} kills over {len(same)} sweeps: {'every byte the same' if all(same) else 'TABLES DIFFER'}")
        return 0 if all(same) else 1


if __name__ == "__main__":
    sys.exit(main())
