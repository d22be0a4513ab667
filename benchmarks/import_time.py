"""How long does `import calamint` take, beside Python itself and NumPy? New processes, medians.

.venv/bin/python benchmarks/import_time.py
"""

import statistics
import subprocess
import sys
import time
from pathlib import Path

STATEMENTS = {
    "python alone": "pass",
    "import numpy": "import numpy",
    "import calamint": "import calamint",
    "calamint.Problem": "from calamint import Problem",
}
LIMIT = 0.5


def seconds(statement: str, repetitions: int = 11) -> float:
    """Median wall time of a new process that runs one statement."""
    times = []
    for _ in range(repetitions):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", statement], check=True)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def main() -> int:
    measured = {name: seconds(statement) for name, statement in STATEMENTS.items()}
    bare = measured["python alone"]
    lines = [f"{name:18} {took:.3f} s  (+{took - bare:.3f} s)" for name, took in measured.items()]
    added = measured["import calamint"] - bare
    lines.append(f"import calamint adds {added:.3f} s; the limit is {LIMIT} s")
    text = "\n".join(lines)
    print(text)
    (Path(__file__).parent / "results" / "import_time.txt").write_text(text + "\n")
    return 0 if added < LIMIT else 1


if __name__ == "__main__":
    raise SystemExit(main())
