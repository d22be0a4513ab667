"""One simulator that measures everything at once: the profit of a shop, and its risk.

    python examples/profit_and_risk.py

A shop sells one article. When its stock falls to `reorder_at` it sends for `order` more; deliveries
take days and cost money, and so does storing. A run of the simulator is a few years of random
demand, so both numbers come with a standard error. Maximise the profit while customers find an
empty shelf on at most one day in two hundred.
"""

import math

import numpy as np

import calamint as cm

PROBLEM = cm.Problem(
    space={"reorder_at": cm.Integer(0, 120), "order": cm.Integer(10, 300)},
    maximize="profit",
    constraints=["empty_days <= 0.005"],
)


def shop(params: dict[str, int], seed: int, years: int = 8) -> dict[str, tuple[float, float]]:
    """Euros a day, and the share of days on which demand was not met, with standard errors."""
    rng = np.random.default_rng(seed)
    demand = rng.poisson(20, size=(years, 365))
    delays = rng.integers(2, 6, size=(years, 365))
    profits, shares = np.zeros(years), np.zeros(years)
    for year in range(years):
        stock, arriving, arrives = params["reorder_at"] + params["order"], 0, -1
        empty = 0
        for day in range(365):
            if day == arrives:
                stock, arriving = stock + arriving, 0
            sold = min(stock, int(demand[year, day]))
            empty += sold < demand[year, day]
            stock -= sold
            profits[year] += 4.0 * sold - 0.05 * stock
            if stock <= params["reorder_at"] and arriving == 0:
                arriving, arrives = params["order"], day + int(delays[year, day])
                profits[year] -= 60.0
        shares[year] = empty / 365
    error = math.sqrt(years)
    # Years without one empty day do not prove that there will never be one.
    return {
        "profit": (float(profits.mean()) / 365, float(profits.std(ddof=1)) / 365 / error),
        "empty_days": (float(shares.mean()), float(shares.std(ddof=1)) / error + 1e-4),
    }


def main(evaluations: int = 20) -> cm.Recommendation:
    optimizer = cm.Optimizer(PROBLEM, seed=0)
    for number in range(evaluations):
        job = optimizer.ask()
        values = shop(job.params, seed=number)
        optimizer.tell(job, values)
        told = ", ".join(
            f"{name} {value:.3g} ± {error:.1g}" for name, (value, error) in values.items()
        )
        print(f"{number + 1:2}  {job.params}  {told}")
    best = optimizer.recommend()
    print(f"\nRecommended: {best}")
    years = shop(best.params, seed=10**6, years=200)
    print(
        f"200 more years there: profit {years['profit'][0]:.2f}, empty {years['empty_days'][0]:.2%}"
    )
    return best


if __name__ == "__main__":
    main()
