"""A cheap check before an expensive one: find an efficient material that can be made at all.

    python examples/lab_tests.py

Ingredients are mixed and fired in the one furnace of a laboratory. Whether a mixture melts clean is
seen after an hour; how efficient it is takes a day. Both tests compete for the furnace, and each
is worth the bits that it tells about the best mixture for the hours that it takes. Three weeks run
here on a virtual clock.
"""

from collections import Counter

import numpy as np

import calamint as cm
from calamint.decide import VirtualClock, simulate

HOURS = {"melt": 1.0, "efficiency": 24.0}
PROBLEM = cm.Problem(
    space={
        "zinc": cm.Real(0, 1),
        "copper": cm.Real(0, 1),
        "temperature": cm.Real(700, 1100),
    },
    maximize="efficiency",
    constraints=["residue <= 0.1"],
    tasks={
        "melt": cm.Task(measures=["residue"], cost=HOURS["melt"]),
        "efficiency": cm.Task(measures=["efficiency"], cost=HOURS["efficiency"]),
    },
    resources={"furnace": 1},
)
# To see it in seconds, only some decisions are made in full, as if one took half an hour.
THINKING = {"full": 0.5, "partial": 0.0}


def nature(params: dict[str, float]) -> dict[str, float]:
    """What nobody knows: percent of the light that is used, and grams that do not melt."""
    zinc, copper = params["zinc"], params["copper"]
    heat = (params["temperature"] - 700) / 400
    efficiency = 22 - 25 * (zinc - 0.7) ** 2 - 18 * (copper - 0.6) ** 2 - 8 * (heat - 0.3) ** 2
    residue = 0.6 * zinc * copper + 0.25 * np.sin(5 * zinc) ** 2 - 0.35 * heat + 0.05
    return {"efficiency": float(efficiency), "residue": float(residue)}


def main(weeks: float = 3) -> cm.Recommendation:
    optimizer = cm.Optimizer(PROBLEM, seed=0, rationality=0.05, clock=VirtualClock(THINKING))
    count: Counter[str] = Counter()

    def measure(task: str, params: dict[str, float]) -> dict[str, float]:
        return {name: nature(params)[name] for name in PROBLEM.tasks[task].measures}

    for ran in simulate(optimizer, measure, HOURS, seconds=weeks * 7 * 24):
        count[ran.job.task] += 1
        if ran.job.task == "efficiency":
            best = optimizer.recommend()
            print(
                f"hour {ran.ended:3.0f}, {count['melt']:3} melts,"
                f" {count['efficiency']:2} days of efficiency: {best}"
            )
    best = optimizer.recommend()
    print(f"\nRecommended: {best}")
    print(f"In truth: {nature(best.params)}")
    return best


if __name__ == "__main__":
    main()
