"""Plots show what is stored and believed: the right points with the right marks."""

import base64
import json
import math
import re
import shutil
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from tests.show import studies
from tests.show.studies import HOSTILE, decoupled, mixed, problem, truth

import calamint as cm
from calamint.acquire import ACQUISITIONS
from calamint.show.plots.source import read_source
from calamint.show.plots.style import MARKS, MOST

ONE_PARAMETER = ("explain", "compare")
OF_JOBS = ("decisions", "time", "timeline")


def named(figure, name):
    return [trace for trace in figure.data if trace.name == name]


def line_at(figure, value):
    """How many straight lines lie at a value of y."""
    return sum(shape.y0 == shape.y1 == value for shape in figure.layout.shapes)


# -- progress and limits --------------------------------------------------------------------------


def test_progress_marks_every_evaluation_by_what_is_known_of_its_input():
    study = decoupled()
    plot = study.plots.progress()
    rows = plot.data()
    source = read_source(study)
    counted = Counter(row["status"] for row in rows if row["objective"] is not None)
    assert counted["infeasible"] > 0
    assert counted["feasible"] > 0
    for status in ("feasible", "infeasible", "unconfirmed"):
        marks = named(plot.figure, status)
        assert sum(len(trace.x) for trace in marks) == counted[status]
        for trace in marks:
            assert trace.marker.symbol == MARKS[status]["symbol"]
            assert trace.marker.color == MARKS[status]["color"]
    # Shapes differ, so that colour is not needed.
    assert len({mark["symbol"] for mark in MARKS.values()}) == len(MARKS)
    failed = [each for each in source.evaluations if each.status == "failed"]
    (marks,) = named(plot.figure, "failed")
    assert len(marks.x) == len(failed) > 0
    for each, row in zip(source.evaluations, rows, strict=True):
        values = truth(each.params)
        if row["objective"] is not None:
            assert row["objective"] == values["f"]


def test_the_best_confirmed_input_is_the_best_with_everything_measured():
    study = decoupled()
    rows = study.plots.progress().data()
    best = [row["best confirmed"] for row in rows if row["best confirmed"] is not None]
    assert best == sorted(best, reverse=True)
    joined = {}
    for record in study.history:
        joined.setdefault(tuple(record.params.values()), {}).update(record.values)
    works = [v["f"] for v in joined.values() if len(v) == 3 and v["c"] >= 0.3 and v["d"] <= 5]
    assert best[-1] == min(works)


def test_the_last_recommendation_of_progress_is_that_of_the_study():
    study = decoupled()
    rows = study.plots.progress().data()
    last = study.recommend()
    assert rows[-1]["recommended"] == pytest.approx(last.objective)
    assert rows[-1]["probability of feasibility"] == pytest.approx(last.probability)
    assert (rows[-1]["from"], rows[-1]["to"]) == pytest.approx(last.interval)
    known = [row for row in rows if row["recommended"] is not None]
    assert len(known) >= 10


def test_progress_over_time_and_cost():
    study = decoupled()
    plots = {over: cm.plots.progress(study, over=over) for over in ("evaluations", "time", "cost")}
    rows = plots["time"].data()
    assert [row["seconds"] for row in rows] == sorted(row["seconds"] for row in rows)
    costs = {"price": 2.0, "weigh": 1.0, None: 0.0}
    assert rows[-1]["cost"] == sum(costs[row["task"]] for row in rows)
    ends = {over: max(plot.figure.data[1].x) for over, plot in plots.items()}
    assert ends["evaluations"] == len(rows)
    assert ends["cost"] == rows[-1]["cost"]
    assert ends["time"] == pytest.approx(rows[-1]["seconds"] / 60)  # minutes
    assert plots["time"].figure.layout.xaxis2.title.text == "minutes"
    with pytest.raises(cm.ProblemError, match="over is 'years'"):
        cm.plots.progress(study, over="years")
    with pytest.raises(cm.ProblemError, match="write one of 'evaluations'"):
        cm.plots.progress(mixed(), over="time")


def test_pending_jobs_are_marked_where_they_are_expected():
    optimizer = mixed()
    (pending,) = optimizer.pending
    (marks,) = named(cm.plots.progress(optimizer).figure, "pending (expected)")
    assert marks.marker.symbol == "triangle-up-open"
    assert list(marks.y) == [optimizer.predict(pending.params)["score"].median]


def test_a_trade_off_has_the_measured_pairs_and_the_limits():
    study = decoupled()
    plot = study.plots.trade_off()
    assert line_at(plot.figure, 0.3) == 1
    assert line_at(plot.figure, 5.0) == 1
    drawn = {
        (x, y)
        for trace in plot.figure.data
        if trace.yaxis in (None, "y")
        for x, y in zip(trace.x, trace.y, strict=True)
    }
    rows = plot.data()
    assert drawn == {(row["f"], row["c"]) for row in rows if "c" in row}
    for row in rows:
        met = row.get("c", 1.0) >= 0.3
        assert (row["input status"] == "infeasible") == (not met)
    assert "left" in plot.caption  # smaller is better


def test_only_the_limit_that_binds_has_a_bar():
    rows = {row["limit"]: row for row in decoupled().plots.limits().data()}
    assert rows["d <= 5.0"]["improvement"] == pytest.approx(0.0, abs=1e-6)
    # With its limit the optimum is 0.02, at x + y = 1.1; without it 0, where weighing may fail.
    binding = rows["c >= 0.3"]
    assert binding["f with it"] == pytest.approx(0.02, abs=1e-3)
    assert 0.005 < binding["improvement"] < 0.021
    assert binding["f without it"] == binding["f with it"] - binding["improvement"]


# -- what is believed -----------------------------------------------------------------------------


@pytest.mark.parametrize("source", [decoupled, mixed])
def test_slices_are_predictions_and_gains_along_a_parameter(source):
    study = source()
    best = study.recommend().params
    first = next(iter(best))
    plot = cm.plots.slices(study, parameters=list(best))
    rows = plot.data()
    assert len(rows) >= 25
    for row in rows[::9]:
        params = {**best, first: row[first]}
        prediction = study.predict(params)
        gains = study.gains([params])
        for name, function in prediction.functions.items():
            assert row[name] == pytest.approx(function.median, rel=1e-6, abs=1e-9)
            assert row[f"{name} from"] == pytest.approx(function.interval[0], rel=1e-6, abs=1e-9)
        probability = row["probability of feasibility"]
        assert probability == pytest.approx(prediction.probability, rel=1e-6, abs=1e-12)
        for name, bits in gains.items():
            assert row[f"bits from {name}"] == pytest.approx(bits[0], rel=1e-4, abs=1e-6)


def test_sliders_and_drop_downs_show_other_slices():
    study = decoupled()
    plot = study.plots.slices()
    along, other, at = plot.controls
    assert list(along.options) == ["x", "y"]
    assert list(other.options)[1:] == ["x", "y"]
    best = study.recommend().params
    for index, shown in enumerate(at.options[2]):  # y moves, along x
        view = plot.views[(0, 2, index)]
        line = next(each for each in view.traces if each.get("mode") == "lines")
        expected = study.predict({"x": line["x"][20], "y": float(shown)})["f"].median
        assert line["y"][20] == pytest.approx(expected, rel=1e-5)
    # A parameter cannot be moved along itself.
    assert plot.views[(0, 1, 3)] is plot.views[(0, 0, 0)]
    assert plot.figure.data[1].y[3] == plot.views[(0, 0, 0)].traces[1]["y"][3]
    given = cm.plots.slices(study, at={"x": 0.1, "y": 0.2})
    assert "x = 0.1, y = 0.2" in given.caption
    assert best  # the default


def test_slices_have_limits_and_measurements():
    study = decoupled()
    figure = study.plots.slices().figure
    assert line_at(figure, 0.3) == 1
    assert line_at(figure, 5.0) == 1
    marks = [trace for trace in figure.data if trace.mode == "markers" and trace.yaxis == "y2"]
    drawn = sorted(value for trace in marks for value in trace.y)
    assert drawn == sorted(r.values["c"] for r in study.history if "c" in r.values)


def test_axes_have_the_users_scales():
    figure = cm.plots.slices(mixed(), parameters=["rate", "layers", "kind"]).figure
    assert figure.layout.xaxis.type == "log"
    assert figure.layout.xaxis.range[0] == pytest.approx(-4, abs=0.1)
    assert figure.layout.xaxis.range[1] == pytest.approx(0, abs=0.1)
    kinds = cm.plots.slices(mixed(), parameters=["kind"])
    assert list(kinds.figure.layout.xaxis.categoryarray) == ["relu", "tanh", "True"]
    assert [row["kind"] for row in kinds.data()] == ["relu", "tanh", True]
    layers = cm.plots.slices(mixed(), parameters=["layers"])
    assert [row["layers"] for row in layers.data()] == [1, 2, 3, 4]


@pytest.mark.parametrize("lowest", [1e-3, 1.0])
def test_axes_are_logarithmic_only_where_everything_on_them_is_positive(lowest):
    """What is measured may be, while what is believed between is not."""
    optimizer = cm.Optimizer(
        cm.Problem({"x": cm.Real(0, 1)}, minimize="f"),
        model=cm.Model(hyperparameters="map", transform="none" if lowest < 1 else "log"),
    )
    for x, value in ((0.0, 40.0), (0.3, lowest), (0.5, 5.0), (0.8, 30.0), (1.0, 50.0)):
        optimizer.add({"x": x}, {"f": value})
    plot = cm.plots.slices(optimizer)
    reaches_zero = min(row["f from"] for row in plot.data()) <= 0
    assert reaches_zero == (lowest < 1)
    assert plot.figure.layout.yaxis.type == ("linear" if reaches_zero else "log")
    band = plot.figure.data[0]
    assert (min(band.y) <= 0) == reaches_zero
    trusted = cm.plots.trust(optimizer)
    zero = min(row["from"] for row in trusted.data()) <= 0
    assert trusted.figure.layout.yaxis.type == ("linear" if zero else "log")


def test_what_cannot_be_negative_is_not_drawn_so(monkeypatch):
    from calamint.decide import Query

    given = Query.gains
    monkeypatch.setattr(
        Query, "gains", lambda *args: {k: v - 0.01 for k, v in given(*args).items()}
    )
    study = decoupled()
    assert min(study.plots.slices().figure.data[-1].y) >= 0
    bits = [
        view.traces[0]["z"]
        for (surface, *_), view in study.plots.contours().views.items()
        if surface > 3
    ]
    assert min(np.min(each) for each in bits) == 0
    for trace in study.plots.importance().figure.data:
        assert 0 <= min(trace.x) <= max(trace.x) <= 1


def test_limits_that_make_no_difference_but_rounding_have_no_bars():
    plot = decoupled().plots.limits()
    bars = dict(zip(plot.figure.data[0].y, plot.figure.data[0].x, strict=True))
    assert bars["d &lt;= 5.0"] == 0
    assert bars["c &gt;= 0.3"] > 0


def test_contours_are_predictions_over_two_parameters():
    study = decoupled()
    plot = study.plots.contours()
    show, axes = plot.controls
    assert list(show.options)[:3] == ["f", "c", "d"]
    assert "probability of feasibility" in show.options
    assert "bits from c" in show.options
    rows = plot.data()
    for row in rows[::150]:
        prediction = study.predict({"x": row["x"], "y": row["y"]})
        assert row["c"] == pytest.approx(prediction["c"].median, rel=1e-5, abs=1e-9)
        shown = row["probability of feasibility"]
        assert shown == pytest.approx(prediction.probability, rel=1e-5, abs=1e-9)
    surface = plot.views[(1, 0)].traces
    shown = [view.traces[0] for view in plot.views.values()]
    assert {str(each["colorscale"])[:9] for each in shown} == {"Viridis", "Cividis", "[[0.0, '#"}
    limit = next(trace for trace in surface if trace.get("name") == "limit")
    assert limit["contours"]["start"] == 0.3
    x, y = plot.figure.layout.xaxis.title.text, plot.figure.layout.yaxis.title.text
    assert list(axes.options) == [f"{y} over {x}"]


def test_contours_of_many_parameters_move_the_most_important_others():
    optimizer = mixed()
    plot = cm.plots.contours(optimizer)
    assert [control.label for control in plot.controls] == ["show", "axes", "other parameter", "at"]
    assert len(plot.views) == len(plot.controls[0].options) * 3 * 4 * 5
    heat = plot.views[(0, 1, 0, 0)].traces[0]
    assert heat["type"] == "heatmap"  # options have no between
    with pytest.raises(cm.ProblemError, match="'laiers': did you mean 'layers'"):
        cm.plots.contours(optimizer, parameters=["laiers"])


def test_importance_finds_what_matters():
    optimizer = cm.Optimizer(
        cm.Problem({"a": cm.Real(0, 1), "b": cm.Real(0, 1)}, minimize="f", constraints=["c <= 1"]),
        model=cm.Model(hyperparameters="map"),
    )
    rng = np.random.default_rng(0)
    for a, b in rng.random((25, 2)):
        # Additive: of the variance of f, 1/12 and 4/12 are of a and b.
        optimizer.add({"a": a, "b": b}, {"f": a + 2 * b, "c": math.sin(4 * b)})
    rows = {row["parameter name"]: row for row in cm.plots.importance(optimizer).data()}
    # 256 pairs estimate a share with a standard error below 0.05.
    assert rows["a"]["f"] == pytest.approx(0.2, abs=0.1)
    assert rows["b"]["f"] == pytest.approx(0.8, abs=0.2)
    assert rows["a"]["c"] < 0.02
    assert rows["b"]["c"] == pytest.approx(1.0, abs=0.2)
    assert next(iter(rows)) == "b"


def test_parallel_coordinates_have_a_line_for_each_input():
    optimizer = mixed()
    plot = cm.plots.parallel_coordinates(optimizer)
    rows = plot.data()
    assert len(rows) == len(optimizer.history)
    lines = sum(sum(x is None for x in trace.x) for trace in plot.figure.data)
    assert lines == len(rows)
    names = list(plot.figure.layout.xaxis.ticktext)
    assert names == ["rate", "layers", "kind", "score", "fits"]
    heights = [y for trace in plot.figure.data for y in trace.y if y is not None]
    assert min(heights) >= 0
    assert max(heights) <= 1


# -- decisions ------------------------------------------------------------------------------------


def test_decisions_have_the_bits_of_the_jobs_and_what_they_competed_with():
    study = decoupled()
    plot = study.plots.decisions()
    assert plot.title == "Expected bits by job"
    assert plot.caption.startswith("Expected information about the constrained optimum, by job;")
    assert all(min(trace.y) >= 0 for trace in plot.figure.data)
    rows = plot.data()
    jobs = {job.number: job for job in study.jobs}
    for row in rows:
        job = jobs[row["job"]]
        assert row["bits"] == (sum(job.bits.values()) if job.bits else None)
        for task, score in job.scores.items():
            assert row[f"score of {task}"] == score
    marked = {
        number: trace.marker.symbol
        for trace in plot.figure.data
        if trace.mode == "markers"
        for number in trace.x
    }
    assert set(marked) == {job.number for job in jobs.values() if job.bits}
    for number, symbol in marked.items():
        assert symbol.endswith("-open") == (jobs[number].update == "partial")
    assert any(symbol.endswith("-open") for symbol in marked.values())
    offered = named(plot.figure, "weigh, offered")[0]
    assert dict(zip(offered.x, offered.y, strict=True)) == {
        number: job.scores["weigh"]
        for number, job in jobs.items()
        if job.bits and "weigh" in job.scores
    }


def test_evaluations_count_the_jobs_of_each_task():
    study = decoupled()
    rows = study.plots.evaluations().data()
    expected = study.summary().evaluations
    assert {task: rows[-1][f"of {task}"] for task in expected} == expected


def test_time_is_that_of_decisions_and_attempts():
    study = decoupled()
    rows = {row["what"]: row for row in study.plots.time().data()}
    # Decisions take their real time on the clock of this study.
    priced = rows["running price"]
    assert priced["seconds"] == pytest.approx(30.0 * priced["times"], rel=0.1)
    deciding = sum(row["seconds"] for what, row in rows.items() if what.startswith("deciding"))
    assert deciding == pytest.approx(study.summary().decision_seconds)
    assert sum(row["share"] for row in rows.values()) == pytest.approx(1.0)
    (bars,) = study.plots.time().figure.data
    assert bars.textposition == "outside"


def test_the_timeline_has_every_attempt_on_a_lane_of_its_own():
    study = decoupled()
    plot = study.plots.timeline()
    assert len(plot.data()) == len(study.attempts(running=False))
    lanes = {}
    for trace in plot.figure.data:
        for start, length, lane in zip(trace.base, trace.x, trace.y, strict=True):
            lanes.setdefault(lane, []).append((start, start + length))
    assert set(lanes) == {"office 1", "office 2"}  # its capacity
    for spans in lanes.values():
        spans.sort()
        for (_, ended), (started, _) in pairwise(spans):
            assert started >= ended - 1e-9
    patterns = Counter(p for trace in plot.figure.data for p in trace.marker.pattern.shape)
    assert patterns["x"] == sum(job.state == "failed" for job in study.jobs) > 0
    assert any("bits" in text for trace in plot.figure.data for text in trace.hovertext)


# -- trust ----------------------------------------------------------------------------------------


def test_trust_compares_measurements_with_predictions_from_the_others():
    study = decoupled()
    plot = study.plots.trust()
    rows = [row for row in plot.data() if row["function"] == "f"]
    assert sorted(row["measured"] for row in rows) == sorted(
        record.values["f"] for record in study.history if "f" in record.values
    )
    inside = sum(row["from"] <= row["measured"] <= row["to"] for row in rows)
    assert f"f: {inside} of {len(rows)} within" in plot.caption
    marks = [trace.name for trace in plot.figure.data if trace.name is not None]
    explained = [trace.name for trace in plot.figure.data if trace.name and trace.showlegend]
    assert sorted(explained) == sorted(set(marks))  # each once, whichever panel has it first
    limited = [row for row in plot.data() if row["function"] == "c"]
    for row in limited:
        assert row["met"] == (row["measured"] >= 0.3)
        assert 0 <= row["probability of meeting the limit"] <= 1
    assert any(row["function"] == "weigh_works" for row in plot.data())


def test_trust_says_which_scale_was_chosen():
    optimizer = cm.Optimizer(
        cm.Problem({"x": cm.Real(0, 1)}, minimize="f"),
        model=cm.Model(hyperparameters="map", transform="log"),
    )
    for x in np.linspace(0, 1, 9):
        optimizer.add({"x": x}, {"f": math.exp(6 * x)})
    assert "scale logarithmic" in cm.plots.trust(optimizer).caption


# -- explanations ---------------------------------------------------------------------------------


def line(**changes):
    stated = {"space": {"x": cm.Real(2, 4)}, "maximize": "f", "constraints": ["-1 <= c <= 1"]}
    made = cm.Optimizer(
        cm.Problem(**{**stated, **changes}), model=cm.Model(hyperparameters="map"), seed=0
    )
    for x in (2.2, 2.9, 3.3, 3.8):
        made.add({"x": x}, {"f": 10 + np.sin(3 * x), "c": np.cos(2 * x)})
    return made


def test_ten_panels_in_the_users_units():
    figure = cm.plots.explain(line()).figure
    titles = [annotation.text for annotation in figure.layout.annotations]
    assert [title[0] for title in titles] == list("ABCDEFGHIJ")
    paths = [trace for trace in figure.data if trace.x is not None and len(trace.x) == 300]
    assert len(paths) == 10
    assert min(paths[0].x) == 2
    assert max(paths[0].x) == 4
    # The surrogate about f is drawn around its own values, and not with the sign turned.
    assert 8 < np.mean(paths[1].y) < 12
    measured = [trace for trace in figure.data if trace.mode == "markers"]
    assert len(measured) == 6
    assert sorted(measured[0].x) == [2.2, 2.9, 3.3, 3.8]
    assert np.all(np.isfinite(np.concatenate([np.asarray(trace.y, float) for trace in paths])))


def test_bits_are_those_of_gains():
    made = line()
    plot = cm.plots.explain(made)
    averaged = [trace for trace in plot.figure.data if len(trace.x) == 300][4]
    gains = made.gains([{"x": x} for x in averaged.x])
    assert np.allclose(averaged.y, gains["f"], rtol=1e-6, atol=1e-9)
    assert np.allclose([row["bits from f"] for row in plot.data()], gains["f"], atol=1e-9)


def test_two_parameters_are_explained_with_the_drawn_solutions():
    study = decoupled()
    plot = study.plots.explain()
    drawn = study.optimizer.information().solutions
    (marks, *_) = named(plot.figure, "drawn x*")
    assert list(marks.x) == pytest.approx(list(drawn[:, 0]))
    assert list(marks.y) == pytest.approx(list(drawn[:, 1]))
    rows = plot.data()
    bits = [key for key in rows[0] if key.startswith("bits from")]
    total = [sum(row[key] for key in bits) for row in rows]
    best = rows[int(np.argmax(total))]
    (star, *_) = named(plot.figure, "most bits in all")
    assert (star.x[0], star.y[0]) == (best["x"], best["y"])
    gains = study.gains([{"x": row["x"], "y": row["y"]} for row in rows])
    assert total == pytest.approx(list(sum(gains.values())), rel=1e-9)


def test_every_method_is_drawn_on_the_same_surrogate():
    plot = cm.plots.compare(line(), points=60)
    titles = [annotation.text for annotation in plot.figure.layout.annotations]
    assert titles[:3] == ["f", "c", "pesc"]
    assert set(titles[2:]) == set(ACQUISITIONS) - {"random", "eicd"}
    for method in set(titles[2:]) - {"thompson"}:
        shares = [row[f"score of {method}"] for row in plot.data()]
        assert np.all(np.isfinite(shares))
        assert np.max(shares) == pytest.approx(1.0)
    drawn = next(trace.x for trace in plot.figure.data if trace.type == "histogram")
    assert len(drawn) == 200
    assert 2 <= min(drawn) <= max(drawn) <= 4


# -- any study ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in cm.plots.PLOTS if name not in ONE_PARAMETER])
def test_nothing_measured_yet(name):
    study = cm.Study(problem())
    plot = getattr(study.plots, name)()
    json.dumps(plot.figure.to_plotly_json(), default=str)
    optimizer = cm.Optimizer(problem())
    if name in OF_JOBS:
        with pytest.raises(cm.ProblemError, match=f"{name} needs a study"):
            cm.plots.PLOTS[name](optimizer)
    else:
        assert cm.plots.PLOTS[name](optimizer).title == plot.title


@pytest.mark.parametrize("name", [name for name in cm.plots.PLOTS if name not in ONE_PARAMETER])
def test_one_measurement_of_one_function(name):
    study = cm.Study(problem(), seed=0)
    job = study.ask(task="price")
    study.tell(job, {"f": 1.0})
    assert cm.plots.PLOTS[name](study).title


def test_hostile_words_are_only_words(tmp_path):
    study = studies.hostile()
    for name, make in cm.plots.PLOTS.items():
        if name == "compare":
            continue
        plot = make(study)
        page = plot.save(tmp_path / f"{name}.html").read_text()
        body = page[: page.index("plotly.js v")]
        assert "<script>alert" not in body
        assert body.count("<script") == body.count("</script>") + 1 == 2
        assert "&lt;script&gt;alert" in body or "alert" not in body
        # What Plotly is given is escaped, too: it reads some markup.
        for text in words_of(plot.figure.to_plotly_json()):
            assert "<script" not in text
            assert len(text) < 2000
    assert HOSTILE["entity"] in {row["option"] for row in cm.plots.trade_off(study).data()}


def words_of(content):
    """Every text of a figure."""
    if isinstance(content, str):
        yield content
    elif isinstance(content, dict):
        for key, each in content.items():
            yield from words_of(each) if key != "bdata" else ()
    elif isinstance(content, list | tuple):
        for each in content:
            yield from words_of(each)


def test_thousands_of_jobs_are_thinned_and_that_is_said():
    stated = cm.Problem({"x": cm.Real(0, 1)}, minimize="f", constraints=["c <= 1"])
    clock = cm.VirtualClock()
    study = cm.Study(stated, seed=0, acquisition="random", clock=clock)
    count = 5000
    xs = np.random.default_rng(0).random(count)
    study.add_all([({"x": x}, {"f": x, "c": 2 * x}) for x in xs])
    source = read_source(study)
    source.__dict__["recommendation"] = cm.Recommendation({"x": 0.5}, 0.5, 1.0, True)
    for name in ("trade_off", "parallel_coordinates"):
        plot = cm.plots.PLOTS[name](source)
        assert len(plot.data()) == count
        drawn = sum(len(trace.x) for trace in plot.figure.data)
        assert drawn <= 2 * MOST
        assert "of 5,000 inputs are drawn" in plot.caption


def fill(study, values, count):
    """Ask for so many jobs, and tell each of them."""
    for _ in range(count):
        job = study.ask()
        found = values(job.params)
        study.tell(job, {name: found[name] for name in study.problem.tasks[job.task].measures})


def simple(**changes):
    stated = {"space": {"x": cm.Real(0, 1)}, "minimize": "f", **changes}
    return cm.Study(cm.Problem(**stated), seed=0, model=cm.Model(hyperparameters="map"))


def test_a_job_that_measured_only_a_part_has_failed():
    """Where it fails, the recommendation of an earlier moment must not be, either."""
    tasks = {"t": cm.Task(["f", "g"], failures="model")}
    study = simple(constraints=["g <= 1"], tasks=tasks)
    fill(study, lambda p: {"f": p["x"], "g": 0.5 if p["x"] > 0.5 else math.nan}, 20)
    source = read_source(study)
    assert any(each.failed and each.values for each in source.evaluations)
    rows = cm.plots.progress(source).data()
    late = [row["recommended"] for row in rows[10:] if row["recommended"] is not None]
    assert min(late) > 0.3


def test_jobs_of_a_task_that_was_renamed_are_counted_once():
    tasks = {"t": cm.Task(["f"]), "u": cm.Task(["g"])}
    study = simple(constraints=["g <= 1"], tasks=tasks)
    fill(study, lambda p: {"f": p["x"], "g": p["x"]}, 6)
    study.change(study.problem.changed(tasks={"train": cm.Task(["f"]), "u": cm.Task(["g"])}))
    rows = study.plots.progress().data()
    assert [row["job"] for row in rows] == list(range(6))
    assert {row["task"] for row in rows} == {"t", "u"}
    assert sum(row["objective"] is not None for row in rows) == 3


@pytest.mark.parametrize(
    "then",
    [
        lambda study: study.add({"x": 0.77}, {"f": -50.0}),
        lambda study: study.amend(2, {"f": -50.0}, reason="mistyped"),
    ],
)
def test_the_last_recommendation_knows_what_happened_since_it_was_stored(then):
    study = simple()
    fill(study, lambda p: {"f": p["x"]}, 5)
    study.recommend()
    then(study)
    expected = study.optimizer.recommend().objective
    assert study.plots.progress().data()[-1]["recommended"] == pytest.approx(expected)


@pytest.mark.parametrize("name", ["cost", "seconds", "status", "evaluation", "job"])
def test_functions_named_as_columns_are(name):
    study = simple(minimize=name)
    fill(study, lambda p: {name: 10 + p["x"]}, 4)
    plot = cm.plots.progress(study, over="cost")
    rows = plot.data()
    assert [row["cost"] for row in rows] == [1.0, 2.0, 3.0, 4.0]
    assert [row["evaluation"] for row in rows] == [1, 2, 3, 4]
    assert all(row["objective"] >= 10 for row in rows)


def test_an_input_stays_confirmed_when_it_is_measured_again():
    study = simple()
    for x, f in ((0.9, 5.0), (0.1, 1.0), (0.5, 2.0), (0.6, 2.1), (0.1, 1.0)):
        study.add({"x": x}, {"f": f})
    best = [row["best confirmed"] for row in study.plots.progress().data()]
    assert best == [5.0, 1.0, 1.0, 1.0, 1.0]


def test_small_differences_of_large_values_reach_the_page(tmp_path):
    study = simple()
    fill(study, lambda p: {"f": 1e9 + p["x"]}, 6)
    plot = study.plots.slices()
    page = plot.save(tmp_path / "a.html").read_text()
    content = json.loads(re.search(r'<script type="application/json">(.*?)</script>', page)[1])
    line = next(each for each in content["traces"] if each.get("name") == "median")["y"]
    drawn = np.frombuffer(base64.b64decode(line["bdata"]), "<" + line["dtype"])
    assert drawn == pytest.approx([row["f"] for row in plot.data()], abs=1e-3)


def test_seconds_that_were_told_are_those_of_the_job():
    study = simple()
    job = study.ask()
    study.tell(job, {"f": 1.0}, seconds=5000.0)
    rows = {row["what"]: row["seconds"] for row in study.plots.time().data()}
    assert rows[f"running {job.task}"] == 5000.0


def test_jobs_that_start_while_a_report_is_made_are_left_out():
    study = simple()
    fill(study, lambda p: {"f": p["x"]}, 2)
    source = read_source(study)
    fill(study, lambda p: {"f": p["x"]}, 1)
    study.ask()
    for name in OF_JOBS:
        cm.plots.PLOTS[name](source)
    assert len(cm.plots.timeline(source).data()) == 2


def test_jobs_that_run_have_lanes_of_their_own():
    tasks = {"t": cm.Task(["f"], runs_on="gpu")}
    study = simple(tasks=tasks, resources={"gpu": 12})
    study.ask(n=12)
    figure = study.plots.timeline().figure
    assert sorted(lane for trace in figure.data for lane in trace.y) == sorted(
        f"gpu {number}" for number in range(1, 13)
    )
    assert list(figure.layout.yaxis.categoryarray)[::-1][9] == "gpu 10"  # not as text


def test_pending_jobs_beyond_the_bounds_are_not_expected():
    study = simple()
    fill(study, lambda p: {"f": p["x"]}, 4)
    task = next(iter(study.problem.tasks))
    study.enqueue(task, {"x": 0.9})
    study.change(study.problem.changed(space={"x": cm.Real(0, 0.5)}))
    assert named(study.plots.progress().figure, "pending (expected)") == []


def test_options_that_look_alike_are_apart():
    path = "/data/sets/of/the/year/before/the/last/one/"
    options = [path + "a", path + "b", "1", 1, True]
    study = simple(space={"kind": cm.Choice(*options)})
    for value, option in enumerate(options):
        study.add({"kind": option}, {"f": float(value)})
    figure = study.plots.slices().figure
    assert len(set(figure.layout.xaxis.categoryarray)) == len(options)
    heights = {
        y for trace in study.plots.parallel_coordinates().figure.data for y in trace.y[::3]
    } - {None}
    assert heights == {0.0, 0.25, 0.5, 0.75, 1.0}


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda s: cm.plots.slices(s, parameters=[]), "parameters is \\[\\]: write a list"),
        (lambda s: cm.plots.slices(s, parameters="x"), "parameters is 'x': write a list"),
        (lambda s: cm.plots.contours(s, parameters=3), "parameters is 3"),
        (lambda s: cm.plots.explain(s, solution="a"), "solution is 'a'"),
        (lambda s: cm.plots.compare(s, points=0), "points is 0"),
    ],
)
def test_wrong_arguments_get_a_sentence(call, words):
    study = simple()
    fill(study, lambda p: {"f": p["x"]}, 4)
    with pytest.raises(cm.ProblemError, match=words):
        call(study)


def test_a_constant_has_no_important_parameter():
    study = simple(space={"x": cm.Real(0, 1), "y": cm.Real(0, 1)})
    fill(study, lambda p: {"f": 3.0}, 5)
    assert [row["f"] for row in study.plots.importance().data()] == [0.0, 0.0]


def test_huge_values_are_drawn(tmp_path):
    study = simple()
    fill(study, lambda p: {"f": 1e300 * (2 * p["x"] - 1)}, 6)
    study.report(tmp_path / "a.html")


def test_a_binary_constraint_is_explained_by_its_probability():
    study = simple(constraints=[cm.Constraint("ok", binary=True)])
    fill(study, lambda p: {"f": p["x"], "ok": p["x"] < 0.5}, 8)
    figure = study.plots.explain().figure
    drawn = [t for t in figure.data if t.yaxis in ("y6", "y7", "y8") and len(t.x) >= 300]
    assert drawn
    assert min(min(t.y) for t in drawn) >= 0
    assert max(max(t.y) for t in drawn) <= 1


def test_what_is_no_study_gets_a_sentence():
    with pytest.raises(cm.ProblemError, match="write a Study or an Optimizer"):
        cm.plots.progress(42)
    with pytest.raises(AttributeError, match="there is no plot 'progres'"):
        decoupled().plots.progres  # noqa: B018
    assert "progress" in dir(decoupled().plots)
    with pytest.raises(cm.ProblemError, match="one parameter that is real, or with two"):
        cm.plots.explain(mixed())
    with pytest.raises(cm.ProblemError, match="solution is 99"):
        cm.plots.explain(line(), solution=99)


def test_files_are_written_or_the_remedy_is_named(tmp_path):
    plot = cm.plots.explain(line())
    page = plot.save(tmp_path / "explain.html").read_text()
    assert "plotly.js" in page
    assert '<details id="explain-data"><summary>Data</summary>' in page
    with pytest.raises(cm.ProblemError, match=r"\.html, \.png or \.svg"):
        plot.save(tmp_path / "explain.jpeg2000")
    with pytest.raises(cm.StorageError, match="cannot be written"):
        plot.save(tmp_path / "nowhere" / "explain.html")
    browsers = ("chromium", "chromium-browser", "google-chrome", "chrome")
    if any(shutil.which(browser) for browser in browsers):
        assert plot.save(tmp_path / "explain.png").stat().st_size > 10_000
        assert plot.save(tmp_path / "explain.svg").read_text().startswith("<svg")
    else:
        with pytest.raises(cm.ProblemError, match="Chromium"):
            plot.save(tmp_path / "explain.png")


def test_notebooks_show_the_figure():
    import plotly.io

    before = plotly.io.renderers.default
    plotly.io.renderers.default = "plotly_mimetype"
    try:
        bundle = cm.plots.evaluations(decoupled())._repr_mimebundle_()
    finally:
        plotly.io.renderers.default = before
    (shown,) = bundle.values()
    assert {trace["name"] for trace in shown["data"]} == {"price", "weigh"}
