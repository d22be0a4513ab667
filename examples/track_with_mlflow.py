"""Every evaluation of a study as a run in MLflow.

    pip install mlflow
    python examples/track_with_mlflow.py
    mlflow ui --backend-store-uri sqlite:///mlflow.db

`Study.run(on=...)` calls a function with each event: a job started, a job ended, or a message. This
one logs parameters, values and bits, and stops the run as soon as the loss is good enough.
"""

import mlflow

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


def main(evaluations: int = 12, tracking: str = "sqlite:///mlflow.db") -> cm.Recommendation:
    mlflow.set_tracking_uri(tracking)
    mlflow.set_experiment("calamint")
    study = cm.Study(PROBLEM, seed=0)

    def log(event: RunEvent) -> None:
        if event.kind != "ended" or event.job is None or event.result is None:
            return
        with mlflow.start_run(run_name=f"job {event.job.number}"):
            mlflow.set_tags({"task": event.job.task, "update": event.job.update})
            mlflow.log_params(event.job.params)
            mlflow.log_metric("bits", sum(event.job.bits.values()))
            if event.result.error is not None:
                mlflow.set_tag("error", event.result.error)
                return
            mlflow.log_metrics(event.result.values)
        if event.result.values["load"] <= 1 and event.result.values["loss"] < 0.0201:
            study.stop()

    print(study.run(evaluate, evaluations=evaluations, on=log))
    best = study.recommend()
    print(best)
    return best


if __name__ == "__main__":
    main()
