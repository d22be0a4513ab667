"""Tuning a sampler that may diverge: Hamiltonian Monte Carlo for a logistic regression.

    python examples/sampler.py

Find the step size, the number of steps and the share of draws to throw away that give the most
independent draws from 3,000 gradients, if two chains are to agree (R̂ at most 1.05). A step size
that is too large makes the integrator diverge: such a run fails, and Calamint learns where.
"""

import numpy as np

import calamint as cm

GRADIENTS = 3000
PROBLEM = cm.Problem(
    space={
        "step_size": cm.Real(0.01, 3.0, log=True),
        "steps": cm.Integer(1, 60, log=True),
        "burn_in": cm.Real(0.02, 0.6),
    },
    maximize="log_size",
    constraints=["r_hat <= 1.05"],
)


def regression(count: int = 120) -> tuple[np.ndarray, np.ndarray]:
    """Features (n, 4), two of them alike, and outcomes (n,) of −1 and 1."""
    rng = np.random.default_rng(0)
    features = rng.standard_normal((count, 4))
    features[:, 1] = 0.9 * features[:, 0] + 0.3 * features[:, 1]
    chance = 1 / (1 + np.exp(-features @ np.array([1.5, 0.0, -2.0, 0.5])))
    return features, np.where(rng.random(count) < chance, 1.0, -1.0)


FEATURES, OUTCOMES = regression()


def energy(at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The negative log posterior (2,) of two chains' coefficients (2, 4), and its gradient."""
    margins = OUTCOMES[:, None] * (FEATURES @ at.T)
    pull = OUTCOMES[:, None] / (1 + np.exp(np.clip(margins, -300, 300)))
    return np.logaddexp(0, -margins).sum(0) + 0.5 * (at**2).sum(1), at - pull.T @ FEATURES


def chains(params: dict[str, float], seed: int) -> np.ndarray:
    """(2, draws, 4), after the burn-in."""
    rng = np.random.default_rng(seed)
    steps, size = int(params["steps"]), params["step_size"]
    at = rng.standard_normal((2, 4))
    now, slope = energy(at)
    draws = []
    for _ in range(GRADIENTS // steps):
        momentum = rng.standard_normal(at.shape)
        before = now + 0.5 * (momentum**2).sum(1)
        moved, moving, moved_slope = at, momentum - 0.5 * size * slope, slope
        for step in range(steps):
            moved = moved + size * moving
            moved_energy, moved_slope = energy(moved)
            moving = moving - (size if step < steps - 1 else 0.5 * size) * moved_slope
        after = moved_energy + 0.5 * (moving**2).sum(1)
        if not np.all(np.abs(after - before) < 100):
            raise ArithmeticError("the integrator diverged")
        accepted = np.log(rng.random(2)) < before - after
        at, slope = (
            np.where(accepted[:, None], *pair) for pair in ((moved, at), (moved_slope, slope))
        )
        now = np.where(accepted, moved_energy, now)
        draws.append(at)
    return np.stack(draws[int(params["burn_in"] * len(draws)) :], axis=1)


def run(params: dict[str, float], seed: int = 0) -> dict[str, float]:
    """The logarithm of the effective sample size, and R̂, of the worst coefficient."""
    drawn = chains(params, seed)
    length = drawn.shape[1]
    centred = drawn - drawn.mean(1, keepdims=True)
    within = (centred**2).mean((0, 1)) + 1e-12
    r_hat = np.sqrt(1 + drawn.mean(1).var(0, ddof=1) / within)
    sizes = []
    for name in range(drawn.shape[2]):
        total = 1.0
        for lag in range(1, length // 3):
            alike = (centred[:, lag:, name] * centred[:, :-lag, name]).mean() / within[name]
            if alike < 0.05:
                break
            total += 2 * alike
        sizes.append(2 * length / total)
    return {"log_size": float(np.log(min(sizes))), "r_hat": float(r_hat.max())}


def main(runs: int = 30) -> cm.Recommendation:
    optimizer = cm.Optimizer(PROBLEM, seed=0)
    for number in range(runs):
        job = optimizer.ask()
        assert job is not None
        try:
            values = run(job.params, seed=number)
        except ArithmeticError as error:
            optimizer.fail(job, str(error))
            print(f"{job}\n    -> {error}")
            continue
        optimizer.tell(job, values)
        size, r_hat = np.exp(values["log_size"]), values["r_hat"]
        print(f"{job}\n    -> {size:.0f} independent draws, R̂ {r_hat:.3f}")
    best = optimizer.recommend()
    print(f"\nRecommended: {best}")
    return best


if __name__ == "__main__":
    main()
