"""Specs: exact round trips, and a sentence for every mistake in a file."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import calamint as cm
from calamint.checks import check_name

names = st.from_regex(r"[a-z][a-z0-9_]{0,6}", fullmatch=True).filter(
    lambda name: name not in ("inf", "nan", "infinity")
)
finite = st.floats(-1e9, 1e9)


def known_weight(params):
    return float(params["x"])


def train_cost(params):
    return 1.0 + params["x"]


@st.composite
def parameters(draw):
    kind = draw(st.sampled_from(["real", "integer", "choice"]))
    log = draw(st.booleans())
    if kind == "choice":
        options = draw(st.lists(st.text(max_size=4), min_size=2, max_size=4, unique=True))
        return cm.Choice(*options, draw(st.booleans()), 7, 0.5)
    if kind == "integer":
        low = draw(st.integers(1 if log else -1000, 1000))
        return cm.Integer(low, low + draw(st.integers(1, 1000)), log=log)
    low = draw(st.floats(1e-9, 1e3) if log else finite)
    return cm.Real(low, low + draw(st.floats(1e-3, 1e9)), log=log)


@st.composite
def problems(draw):
    words = draw(st.lists(names, min_size=8, max_size=14, unique=True))
    space = {name: draw(parameters()) for name in words[:2]}
    functions = words[2:5]
    limits = []
    for name in functions[1:]:
        low, high = sorted(draw(st.tuples(finite, finite)))
        limits.append(
            draw(
                st.sampled_from(
                    [name, f"{name} <= {high!r}", f"{name} >= {low!r}"]
                    + ([f"{low!r} <= {name} <= {high!r}"] if low < high else [])
                )
            )
        )
    resources = {name: draw(st.integers(1, 9)) for name in words[5:7]}
    places = [[name] for name in resources] + [list(resources)]
    tasks = {"everywhere": cm.Task(functions)}
    for name in words[7:]:
        tasks[name] = cm.Task(
            measures=draw(st.lists(st.sampled_from(functions), min_size=1, unique=True)),
            runs_on=draw(st.lists(st.sampled_from(places), min_size=1, unique_by=tuple)),
            cost=draw(st.one_of(st.just("learn"), st.floats(1e-3, 1e3), st.just(train_cost))),
            command=draw(st.none() | st.lists(st.text(max_size=4), min_size=1, max_size=3)),
        )
    verb = draw(st.sampled_from(["minimize", "maximize"]))
    return cm.Problem(
        space=space, constraints=limits, tasks=tasks, resources=resources, **{verb: functions[0]}
    )


@given(problems())
def test_round_trips_are_exact(problem):
    for back in (
        cm.Problem.from_toml(problem.to_toml()),
        cm.Problem.from_json(problem.to_json()),
    ):
        assert back == problem
        assert list(back.tasks) == list(problem.tasks)
        assert list(back.resources) == list(problem.resources)
        assert list(back.space.parameters) == list(problem.space.parameters)
        assert back.describe() == problem.describe()


def test_known_functions_and_costs_are_written_as_module_and_name():
    problem = cm.Problem(
        {"x": cm.Real(0, 1)},
        minimize="f",
        constraints=["weight <= 1"],
        known={"weight": check_name},
    )
    assert json.loads(problem.to_json())["known"] == {"weight": "calamint.checks:check_name"}
    assert cm.Problem.from_toml(problem.to_toml()) == problem


def test_the_form_that_people_write():
    problem = cm.Problem.from_toml(
        """
        minimize = "error"
        constraints = ["latency_ms <= 2", "converges"]
        [space]
        learning_rate = { real = [1e-5, 1e-1], log = true }
        width = { integer = [16, 1024], log = true }
        activation = { choice = ["relu", "sigmoid"] }
        [tasks.train]
        measures = ["error", "converges"]
        runs_on = ["gpu"]
        command = ["python", "train.py"]
        [tasks.profile]
        measures = ["latency_ms"]
        runs_on = ["cpu", ["gpu", "licence"]]
        cost = 0.1
        [resources]
        gpu = 1
        cpu = 4
        licence = 2
        """
    )
    assert problem == cm.Problem(
        space={
            "learning_rate": cm.Real(1e-5, 1e-1, log=True),
            "width": cm.Integer(16, 1024, log=True),
            "activation": cm.Choice("relu", "sigmoid"),
        },
        minimize="error",
        constraints=["latency_ms <= 2", "converges"],
        tasks={
            "train": cm.Task(["error", "converges"], ["gpu"], command=["python", "train.py"]),
            "profile": cm.Task("latency_ms", ["cpu", ["gpu", "licence"]], cost=0.1),
        },
        resources={"gpu": 1, "cpu": 4, "licence": 2},
    )


HEAD = 'minimize = "e"\n[space]\nx = { real = [0, 1] }\n'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            'minimise = "e"\n[space]\nx = { real = [0, 1] }',
            ["minimise", "did you mean 'minimize'?"],
        ),
        ('minimize = "e"\n[space]\nx = { reel = [0, 1] }', ["space.x.reel", "'real'"]),
        (HEAD + "y = { real = [0, 1], lgo = true }", ["space.y.lgo", "'log'"]),
        (HEAD + '[tasks.t]\nmeasure = ["e"]\n', ["tasks.t.measure ", "'measures'"]),
        (HEAD + "[resource]\ngpu = 1\n", ["resource ", "'resources'"]),
        ('minimize = "e"\n', ["space is missing"]),
        (HEAD + "[tasks.t]\ncost = 2\n", ["tasks.t.measures is missing"]),
        ('minimize = "e"\n[space]\nx = { real = ["0", 1] }', ["space.x.real.0 is '0'", "numbers"]),
        ('minimize = "e"\n[space]\nx = { real = [0] }', ["space.x.real is [0]", "two numbers"]),
        ('minimize = "e"\n[space]\nx = { integer = [0.5, 1] }', ["space.x.integer.0 is 0.5"]),
        ('minimize = "e"\n[space]\nx = { real = [1, 0] }', ["space.x", "(1.0, 0.0) are empty"]),
        ('minimize = "e"\n[space]\nx = { log = true }', ["space.x has no kind"]),
        (
            'minimize = "e"\n[space]\nx = { real = [0, 1], integer = [0, 1] }',
            ["space.x has real and integer"],
        ),
        ('minimize = "e"\n[space]\nx = { choice = ["a", "b"], log = true }', ["space.x.log"]),
        ('minimize = "e"\n[space]\nx = 3', ["space.x is 3", "table"]),
        ("minimize = 3\n[space]\nx = { real = [0, 1] }", ["minimize is 3", "name"]),
        (HEAD + "[resources]\ngpu = 1.5\n", ["resources.gpu is 1.5", "whole"]),
        (HEAD + '[tasks.t]\nmeasures = "e"\n', ["tasks.t.measures is 'e'", "list"]),
        (HEAD + "[tasks.t]\nmeasures = []\n", ["tasks.t.measures is empty"]),
        (HEAD + '[tasks.t]\nmeasures = ["e"]\ncost = true\n', ["tasks.t.cost is True"]),
        (
            HEAD + '[tasks.t]\nmeasures = ["e"]\ncost = "no.module:f"\n',
            ["tasks.t.cost", "no.module"],
        ),
        (HEAD + '[tasks.t]\nmeasures = ["e"]\ncost = "math:pi"\n', ["not a function"]),
        ('known = { e = "weight" }\n' + HEAD, ["known.e is 'weight'", "module:function"]),
        ("minimize = ", ["not TOML"]),
        (HEAD + "x = { real = [0, 2] }", ["not TOML", "twice"]),
    ],
)
def test_mistakes_in_toml_get_a_sentence(text, words):
    with pytest.raises(cm.ProblemError) as error:
        cm.Problem.from_toml(text)
    assert "\n" not in str(error.value)
    for word in words:
        assert word in str(error.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[1]", ["the spec is [1]"]),
        ("{", ["not JSON"]),
        (None, ["the spec is None", "text"]),
        ("problem.json", ["'problem.json'", "read_text"]),
        ("[" * 100_000, ["not JSON"]),
        (
            '{"minimize": "e", "space": {"x": {"real": [0, 1]}, "x": {"real": [0, 2]}}}',
            ["'x' twice"],
        ),
        ('{"minimize": "e", "space": {"x": {"real": [0, NaN]}}}', ["nan", "not a finite number"]),
    ],
)
def test_mistakes_in_json_get_a_sentence(text, words):
    with pytest.raises(cm.ProblemError) as error:
        cm.Problem.from_json(text)
    for word in words:
        assert word in str(error.value)


def test_several_mistakes_get_a_sentence_each():
    with pytest.raises(cm.ProblemError) as error:
        cm.Problem.from_toml('minimise = "e"\n[space]\nx = { reel = [0, 1] }')
    assert len(str(error.value).splitlines()) == 2


def test_functions_that_cannot_be_imported_cannot_be_written():
    problem = cm.Problem(
        {"x": cm.Real(0, 1)},
        minimize="f",
        constraints=["w <= 1"],
        known={"w": lambda params: params["x"]},
    )
    with pytest.raises(cm.ProblemError, match=r"known\.w .* in a module"):
        problem.to_toml()
    # A bound method would be read back without its object.
    bound = cm.Problem(
        {"x": cm.Real(0, 1)},
        minimize="f",
        constraints=["w <= 1"],
        known={"w": cm.Constraint("a", 1).met},
    )
    with pytest.raises(cm.ProblemError, match=r"known\.w"):
        bound.to_json()
