"""Record histories: all of them, or those whose names are given."""

import json
import sys
import time
from pathlib import Path

import numpy
import scipy
from threadpoolctl import threadpool_info

from .scenarios import SCENARIOS, run


def environment() -> dict[str, str]:
    """What the last digits depend on."""
    (blas,) = {
        (pool.get("architecture", ""), pool.get("version", ""))
        for pool in threadpool_info()
        if pool["user_api"] == "blas" and "numpy" in pool["filepath"]
    }
    return {
        "numpy": numpy.__version__,
        "scipy": scipy.__version__,
        "blas": " ".join(map(str, blas)),
    }


def main() -> None:
    for name in sys.argv[1:] or SCENARIOS:
        begin = time.perf_counter()
        events = run(SCENARIOS[name]())
        content = {"environment": environment(), "events": events}
        path = Path(__file__).parent / f"{name}.json"
        lines = ",\n".join(json.dumps(event) for event in events)
        head = json.dumps(content["environment"])
        path.write_text(f'{{"environment": {head},\n"events": [\n{lines}\n]}}\n')
        print(f"{name}: {len(events)} events in {time.perf_counter() - begin:.1f} s", flush=True)


if __name__ == "__main__":
    main()
