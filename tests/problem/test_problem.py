"""Stating a problem: defaults, merging, the graph's name, and a sentence for every mistake."""

import math

import pytest

import calamint as cm
from calamint.problem import Kind

SPACE = {"x": cm.Real(0, 1), "n": cm.Integer(1, 8)}


def weight(params):
    return params["x"] * params["n"]


def two_tasks(**changes):
    stated = {
        "space": SPACE,
        "minimize": "error",
        "constraints": ["latency <= 2"],
        "tasks": {
            "train": cm.Task(measures=["error"], runs_on=["gpu"]),
            "profile": cm.Task(measures=["latency"], runs_on=["cpu"]),
        },
        "resources": {"gpu": 1, "cpu": 4},
    }
    return cm.Problem(**{**stated, **changes})


def test_without_tasks_one_task_measures_everything_in_one_place():
    problem = cm.Problem(SPACE, minimize="error", constraints=["latency <= 2", "ok"])
    assert problem.functions == ("error", "latency", "ok")
    (task,) = problem.tasks.values()
    assert task.measures == ("error", "latency", "ok")
    assert list(problem.resources.values()) == [1]
    assert task.runs_on == (tuple(problem.resources),)
    assert task.cost == 1
    assert problem.kind is Kind.COUPLED


def test_limits_on_one_function_merge():
    problem = cm.Problem(SPACE, minimize="f", constraints=["ph <= 8", "6 <= ph <= 9", "c >= 1"])
    assert problem.constraints == (cm.Constraint("ph", 6, 8), cm.Constraint("c", 1, math.inf))


def test_the_sign_of_the_objective_changes_in_one_place():
    problem = cm.Problem(SPACE, maximize="accuracy")
    assert problem.objective.sign == -1
    assert cm.Problem(SPACE, minimize="error").objective.sign == 1


def test_known_functions_need_no_task():
    problem = cm.Problem(
        SPACE, minimize="error", constraints=["weight <= 3"], known={"weight": weight}
    )
    assert problem.measured == ("error",)
    (task,) = problem.tasks.values()
    assert task.measures == ("error",)
    assert "weight <= 3.0 (known)" in problem.describe()


def test_a_function_may_be_measured_by_several_tasks():
    problem = two_tasks(
        tasks={
            "all": cm.Task(measures=["error", "latency"], runs_on=["gpu"]),
            "check": cm.Task(measures="latency", runs_on="cpu", cost="learn"),
        }
    )
    assert problem.tasks["check"].measures == ("latency",)
    assert problem.kind is Kind.MIXTURE


def test_tasks_without_runs_on_run_on_any_resource():
    problem = two_tasks(tasks={"a": cm.Task(["error"]), "b": cm.Task(["latency"])})
    assert problem.tasks["a"].runs_on == (("gpu",), ("cpu",))
    assert problem.kind is Kind.COMPETITIVE


def tasks_on(*places):
    return {f"t{i}": cm.Task(f"c{i}", runs_on=place) for i, place in enumerate(places)}


@pytest.mark.parametrize(
    ("tasks", "resources", "kind"),
    [
        ({"t": cm.Task(["c0", "c1"], runs_on="cpu")}, {"cpu": 1}, Kind.COUPLED),
        ({"t": cm.Task(["c0", "c1"], runs_on="cpu")}, {"cpu": 2}, Kind.PARALLEL),
        ({"t": cm.Task(["c0", "c1"], runs_on=["cpu", "gpu"])}, {"cpu": 1, "gpu": 1}, Kind.PARALLEL),
        (
            {"t": cm.Task(["c0", "c1"], runs_on=[["cpu", "gpu"]])},
            {"cpu": 2, "gpu": 1},
            Kind.COUPLED,
        ),
        (
            {"t": cm.Task(["c0", "c1"], runs_on=[["a", "b"], ["a", "c"], ["b", "d"]])},
            {"a": 1, "b": 1, "c": 1, "d": 1},
            Kind.PARALLEL,
        ),
        (tasks_on("cpu", "cpu"), {"cpu": 1}, Kind.COMPETITIVE),
        (tasks_on("cpu", "cpu"), {"cpu": 3}, Kind.COMPETITIVE),
        (tasks_on("cpu", "gpu"), {"cpu": 1, "gpu": 1}, Kind.NON_COMPETITIVE),
        (tasks_on("cpu", "gpu", "lab"), {"cpu": 1, "gpu": 1, "lab": 9}, Kind.NON_COMPETITIVE),
        (tasks_on(["cpu", "gpu"], ["gpu", "cpu"]), {"cpu": 1, "gpu": 1}, Kind.COMPETITIVE),
        (tasks_on("cpu", ["cpu", "gpu"]), {"cpu": 1, "gpu": 1}, Kind.MIXTURE),
        (tasks_on("cpu", "cpu", "gpu"), {"cpu": 1, "gpu": 1}, Kind.MIXTURE),
        (
            {"s": cm.Task(["c0", "c1"], runs_on="cpu"), "t": cm.Task("c2", runs_on="cpu")},
            {"cpu": 1},
            Kind.MIXTURE,
        ),
    ],
)
def test_the_graph_says_what_it_is(tasks, resources, kind):
    functions = sorted({name for task in tasks.values() for name in task.measures})
    problem = cm.Problem(
        SPACE,
        minimize=functions[0],
        constraints=[f"{name} >= 0" for name in functions[1:]],
        tasks=tasks,
        resources=resources,
    )
    assert problem.kind is kind
    headline = {Kind.MIXTURE: "A mixture", Kind.COMPETITIVE: "Competitive decoupled"}.get(
        kind, str(kind).capitalize()
    )
    assert headline in problem.describe()


def test_describe_shows_everything_in_words_and_as_a_diagram():
    problem = cm.Problem(
        space={
            "rate": cm.Real(1e-5, 1e-1, log=True),
            "width": cm.Integer(16, 1024),
            "activation": cm.Choice("relu", "sigmoid"),
        },
        maximize="accuracy",
        constraints=["latency_ms <= 2", "memory_mb <= 64", "converges"],
        tasks={
            "train": cm.Task(measures=["accuracy", "converges"], runs_on=[["gpu", "licence"]]),
            "profile": cm.Task(measures=["latency_ms", "memory_mb"], runs_on=["cpu", "gpu"]),
        },
        resources={"gpu": 1, "cpu": 4, "licence": 2},
    )
    assert problem.describe() == (
        """\
Maximise accuracy over
  rate        real from 1e-05 to 0.1, log scale
  width       whole number from 16 to 1024
  activation  one of 'relu', 'sigmoid'
such that
  latency_ms <= 2.0
  memory_mb <= 64.0
  converges passes at a rate of at least one half (measured as pass or fail)

A mixture of the paper's cases:
  train measures accuracy and converges together (coupled)
  profile measures latency_ms and memory_mb together (coupled)
  train and profile compete for gpu (competitive)
  cpu is for profile alone (non-competitive)
  licence is for train alone (non-competitive)
  train needs gpu and licence at once
  up to 5 jobs of profile run at once (parallel)

  accuracy   ─┬─ train   ─── gpu (1) + licence (2)
  converges  ─┘
  latency_ms ─┬─ profile ─┬─ cpu (4)
  memory_mb  ─┘           └─ gpu (1)"""
    )


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"constraints": ["latncy <= 2"]}, ["'latncy'", "did you mean 'latency'?"]),
        ({"constraints": ["memory <= 2", "latency <= 2"]}, ["'memory'", "task's measures"]),
        ({"constraints": []}, ["'profile'", "measures 'latency'", "neither"]),
        ({"constraints": ["error <= 2"]}, ["'error <= 2'", "limits the objective"]),
        ({"constraints": "latency <= 2"}, ["constraints is 'latency <= 2'", "list"]),
        ({"constraints": {"latency": "<= 2"}}, ["constraints is {'latency': '<= 2'}", "list"]),
        ({"constraints": {"latency <= 2"}}, ["constraints is {'latency <= 2'}", "list"]),
        ({"resources": None}, ["'train' runs on 'gpu'", "resources={'gpu': 1}"]),
        ({"constraints": ["latency", "latency <= 2"]}, ["'latency'", "pass/fail"]),
        ({"constraints": ["latency <= 2", "latency >= 3"]}, ["'latency'", "leave nothing"]),
        ({"minimize": "loss"}, ["'loss'", "no task measures it"]),
        ({"minimize": None}, ["neither of minimize and maximize", "write one"]),
        ({"maximize": "error"}, ["more than one of minimize and maximize"]),
        ({"minimize": "my error"}, ["'my error'", "letters, digits and underscores"]),
        ({"minimize": "nan"}, ["'nan'"]),
        ({"space": {}}, ["space is {}", "at least one parameter"]),
        ({"space": {"x": (0, 1)}}, ["space['x'] is (0, 1)", "cm.Real"]),
        ({"space": {"2x": cm.Real(0, 1)}}, ["'2x'"]),
        ({"space": {"error": cm.Real(0, 1)}}, ["'error' is both a parameter and a function"]),
        ({"resources": {"gpu": 0, "cpu": 1}}, ["resources['gpu'] is 0", "at least 1"]),
        ({"resources": {"gpu": 2**40, "cpu": 1}}, ["resources['gpu']", "at most 2147483647"]),
        ({"resources": {"gpu": 1.5, "cpu": 1}}, ["resources['gpu'] is 1.5"]),
        ({"resources": {"gpuu": 1, "cpu": 1}}, ["runs on 'gpu'", "did you mean 'gpuu'?"]),
        ({"resources": {"gpu": 1, "cpu": 1, "tpu": 1}}, ["'tpu'", "used by no task"]),
        ({"resources": {}}, ["resources is {}"]),
        ({"resources": {"a b": 1}}, ["'a b'"]),
        ({"tasks": {}}, ["tasks is {}", "at least one"]),
        ({"tasks": {"train": ["error"]}}, ["tasks['train'] is ['error']", "cm.Task"]),
        ({"tasks": {"train it": cm.Task("error")}}, ["'train it'"]),
        ({"known": {"wieght": weight}}, ["known has 'wieght'", "neither"]),
        ({"known": {"latency": weight}}, ["'profile' measures 'latency'", "in known"]),
        ({"known": {"latency": 3}}, ["known['latency'] is 3"]),
        ({"known": {"latency": weight, "error": weight}}, ["known has all functions"]),
        ({"known": [weight]}, ["known is ["]),
    ],
)
def test_every_mistake_gets_one_sentence(changes, words):
    with pytest.raises(cm.ProblemError) as error:
        two_tasks(**changes)
    assert "\n" not in str(error.value)
    for word in words:
        assert word in str(error.value)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: cm.Task(measures=[]), ["measures is empty", "at least one"]),
        (lambda: cm.Task(measures=3), ["measures is 3"]),
        (lambda: cm.Task(["e", "e"]), ["measures contains 'e' twice"]),
        (lambda: cm.Task(["a b"]), ["'a b'"]),
        (lambda: cm.Task("e", runs_on=[]), ["runs_on is []"]),
        (lambda: cm.Task("e", runs_on=["a", "a"]), ["runs_on contains", "twice"]),
        (lambda: cm.Task("e", runs_on=[["a", "a"]]), ["twice"]),
        (lambda: cm.Task({"e"}), ["measures is {'e'}", "list"]),
        (lambda: cm.Task("e", runs_on=b"gpu"), ["runs_on is b'gpu'"]),
        (lambda: cm.Task("e", cost=10**400), ["cost is 1000"]),
        (lambda: cm.Task("e", cost=0), ["cost is 0", "positive number"]),
        (lambda: cm.Task("e", cost=math.inf), ["cost is inf"]),
        (lambda: cm.Task("e", cost="lern"), ["cost is 'lern'", "'learn'"]),
        (lambda: cm.Task("e", command="python a.py"), ["command is 'python a.py'", "list"]),
    ],
)
def test_bad_tasks_get_one_sentence(make, words):
    with pytest.raises(cm.ProblemError) as error:
        make()
    for word in words:
        assert word in str(error.value)
