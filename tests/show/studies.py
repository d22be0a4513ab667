"""Studies that are shown: small, but with everything that plots have marks for."""

import functools

import numpy as np

import calamint as cm

HOSTILE = {
    "markup": "<script>alert(1)</script>",
    "quotes": "a\"b'c",
    "long": "n" * 300,
    "unicode": "größe ✓ 名前",
    "entity": "a&lt;b</script><!--",
    "template": "%{x} ${y} {{z}} $\\alpha$",
}


def truth(params):
    f = (params["x"] - 0.3) ** 2 + (params["y"] - 0.6) ** 2
    return {"f": f, "c": params["x"] + params["y"] - 0.8, "d": params["y"] + 1.0}


def problem():
    """The objective, a limit that binds, and one that does not."""
    return cm.Problem(
        {"x": cm.Real(0, 1), "y": cm.Real(0, 1)},
        minimize="f",
        constraints=["c >= 0.3", "d <= 5"],
        tasks={
            "price": cm.Task(["f"], runs_on="office", cost=2.0),
            "weigh": cm.Task(["c", "d"], runs_on="office", failures="model"),
        },
        resources={"office": 2},
    )


@functools.cache
def decoupled():
    """Two tasks that compete, with failures, partial updates, added and pending measurements."""
    clock = cm.VirtualClock()
    study = cm.Study(problem(), seed=1, rationality=1.0, clock=clock)
    study.add({"x": 0.9, "y": 0.9}, truth({"x": 0.9, "y": 0.9}))

    def weigh(params):
        if params["x"] > 0.6:
            raise RuntimeError("the scale broke")
        found = truth(params)
        return {"c": found["c"], "d": found["d"]}

    tasks = {"price": lambda params: truth(params)["f"], "weigh": weigh}
    durations = {"price": 30.0, "weigh": 10.0}
    study.run(tasks, evaluations=24, confirm=1, executor=cm.Simulated(durations, clock))
    study.ask()
    return study


@functools.cache
def mixed():
    """Integers, choices, a log scale and a binary constraint, in an optimiser."""
    space = {
        "rate": cm.Real(1e-4, 1.0, log=True),
        "layers": cm.Integer(1, 4),
        "kind": cm.Choice("relu", "tanh", True),
    }
    stated = cm.Problem(
        space,
        maximize="score",
        constraints=[cm.Constraint("fits", binary=True)],
        tasks={"all": cm.Task(["score", "fits"], failures="model")},
    )
    optimizer = cm.Optimizer(stated, seed=0, model=cm.Model(hyperparameters="map"))
    for index in range(14):
        job = optimizer.ask()
        if index in (5, 9):
            optimizer.fail(job, "out of memory")
            continue
        p = job.params
        score = -((np.log10(p["rate"]) + 2) ** 2) + (p["kind"] == "tanh") + 0.1 * p["layers"]
        optimizer.tell(job, {"score": score, "fits": p["layers"] < 4})
    optimizer.ask()
    return optimizer


def hostile(storage="sqlite://"):
    """Words that would break a page that believes them: options, reasons, notes, a study's name."""
    stated = cm.Problem(
        {"größe_名前": cm.Real(0, 1), "option": cm.Choice(*HOSTILE.values())},
        minimize="f" * 200,
        constraints=["c <= 1"],
        tasks={
            "t" * 200: cm.Task(["f" * 200], runs_on="werkstatt_ü"),
            "weigh": cm.Task(["c"], runs_on="werkstatt_ü"),
        },
        resources={"werkstatt_ü": 1},
    )
    model = cm.Model(hyperparameters="map")
    study = cm.Study(stated, storage, HOSTILE["markup"], seed=0, model=model)
    for index in range(14):
        job = study.ask()
        if index == 7:
            study.fail(job, HOSTILE["markup"] + HOSTILE["entity"])
            continue
        value = job.params["größe_名前"]
        study.tell(job, dict.fromkeys(stated.tasks[job.task].measures, value))
    return study
