"""A study as a run in Weights & Biases, with one step for each evaluation.

    pip install wandb
    WANDB_MODE=offline python examples/track_with_wandb.py

`Study.run(on=...)` calls a function with each event: a job started, a job ended, or a message.
"""

import wandb

import calamint as cm
from calamint.run import RunEvent

PROBLEM = cm.Problem(
    space={"x": cm.Real(0, 1), "y": cm.Real(0, 1)},
    minimize="loss",
    constraints=["load <= 1"],
)


def evaluate(params: dict[str, float]) -> dict[str, float]:
    x, y = params["x"], params["y"]
    return {"loss": (x - 0.3) ** 2 + (y - 0.9) ** 2, "load": x + y}


def main(evaluations: int = 12) -> cm.Recommendation:
    study = cm.Study(PROBLEM, seed=0)
    with wandb.init(project="calamint", config={"problem": PROBLEM.to_content()}) as run:

        def log(event: RunEvent) -> None:
            if event.kind != "ended" or event.job is None or event.result is None:
                return
            values = event.result.values if event.result.error is None else {}
            bits = {"bits": sum(event.job.bits.values())}
            run.log({**event.job.params, **values, **bits}, step=event.job.number)

        print(study.run(evaluate, evaluations=evaluations, on=log))
        best = study.recommend()
        run.summary["recommended"] = dict(best.params)
        run.summary["objective"] = best.objective
        run.summary["probability"] = best.probability
    print(best)
    return best


if __name__ == "__main__":
    main()
