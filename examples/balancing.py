"""Trials that fail, and a test that only says yes or no: tune a robot that balances a pole.

    python examples/balancing.py

A trial pushes the pole and measures how far it sways. With wrong gains the pole falls, and there is
nothing to measure: the trial has failed, and where trials fail is learnt from that. Whether the
motor stays cool is a lamp that is green or red, with no number behind it.
"""

import math

import calamint as cm

PROBLEM = cm.Problem(
    space={
        "stiffness": cm.Real(5, 200, log=True),  # newtons per radian
        "damping": cm.Real(0.5, 50, log=True),
    },
    minimize="sway",
    constraints=["motor_cool"],
    tasks={"trial": cm.Task(measures=["sway", "motor_cool"], failures="model")},
)


class PoleFellError(Exception):
    pass


def trial(params: dict[str, float]) -> dict[str, float | bool]:
    """Four seconds after a push, in steps of ten milliseconds, with a sensor that lags by four."""
    angle, speed, sway, heat = 0.1, 0.3, 0.0, 0.0
    seen = [(angle, speed)] * 4
    for _ in range(400):
        late_angle, late_speed = seen.pop(0)
        force = params["stiffness"] * late_angle + params["damping"] * late_speed
        force = max(-60.0, min(60.0, force))
        speed += 0.01 * (12 * math.sin(angle) - force * math.cos(angle))
        angle += 0.01 * speed
        seen.append((angle, speed))
        if abs(angle) > 1:
            raise PoleFellError
        sway += 0.01 * abs(angle)
        heat += 0.01 * force**2
    return {"sway": 1000 * sway, "motor_cool": heat < 12}


def main(trials: int = 30) -> cm.Recommendation:
    optimizer = cm.Optimizer(PROBLEM, seed=0)
    for _ in range(trials):
        job = optimizer.ask()
        assert job is not None
        try:
            values = trial(job.params)
        except PoleFellError:
            optimizer.fail(job, "the pole fell")
            found = "the pole fell"
        else:
            optimizer.tell(job, values)
            found = f"sway {values['sway']:.0f}, motor {'cool' if values['motor_cool'] else 'HOT'}"
        gains = ", ".join(f"{name} {value:5.1f}" for name, value in job.params.items())
        print(f"trial {job.number + 1:2}: {gains}: {found}")
    best = optimizer.recommend()
    print(f"\nRecommended: {best}")
    expected = optimizer.predict(best.params)
    print(f"The lamp is green in {expected['motor_cool'].mean:.0%} of trials there,")
    print(f"and the pole stays up in {expected['trial_works'].mean:.0%}.")
    return best


if __name__ == "__main__":
    main()
