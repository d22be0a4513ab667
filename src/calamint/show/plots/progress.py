"""How far a search has come: what would have been recommended, and what is confirmed."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from calamint.decide import Observations, Optimizer, Recommendation, input_key
from calamint.errors import CalamintError, ProblemError
from calamint.show.plots.plot import Control, Plot, View
from calamint.show.plots.source import Evaluation, Source, plot
from calamint.show.plots.style import (
    BAND,
    BLUE,
    GREEN,
    GREY,
    MARKS,
    MOST,
    NOTHING,
    Status,
    drawn_of,
    empty,
    figure,
    hover,
    label,
    params_in_words,
    plotly,
    thinned,
    time_unit,
)

Over = Literal["evaluations", "time", "cost"]
# How often the recommendation of an earlier moment is computed: each takes a fit of the model.
_MOMENTS = 16


@plot
def progress(source: Source, over: Over = "evaluations") -> Plot:
    """What is recommended after each evaluation, and the best input that is confirmed.

    Earlier recommendations are computed at some moments from what had been measured by then, with
    the most probable hyper-parameters.

    Args:
        over: "evaluations", "time" or "cost"; an optimiser knows only evaluations.
    """
    name = source.problem.objective.name
    allowed: list[Over] = (
        ["evaluations"] if source.study is None else ["evaluations", "time", "cost"]
    )
    if over not in allowed:
        raise ProblemError(f"over is {over!r}: write one of {', '.join(map(repr, allowed))}.")
    title = f"Progress: {label(name)}"
    if source.history_is_empty and not source.evaluations:
        return Plot("progress", title, NOTHING, empty(NOTHING), [])
    rows = _progress_rows(source)
    figures = [_progress_figure(source, rows, each) for each in allowed]
    feasible = (
        ", and below it the probability that all limits are met"
        if source.problem.constraints
        else ""
    )
    caption = (
        f"What would be recommended after each evaluation: the expected {label(name)} with its 95 %"
        f" interval{feasible}. The line of confirmed inputs is the best at which everything was"
        " measured and every limit met." + drawn_of(min(len(rows), MOST), len(rows), "evaluations")
    )
    chosen = allowed.index(over)
    controls = [Control("over", allowed)] if len(allowed) > 1 else []
    views: dict[tuple[int, ...], View] = {(i,): View.of(each) for i, each in enumerate(figures)}
    return Plot(
        "progress",
        title,
        caption,
        figures[chosen],
        rows,
        controls,
        views if controls else None,
        (chosen,) if controls else None,
    )


def _progress_rows(source: Source) -> list[dict[str, Any]]:
    problem = source.problem
    name, sign = problem.objective.name, problem.objective.sign
    answers, confirmed = _recommendations(source), _confirmed_objectives(source)
    rows: list[dict[str, Any]] = []
    best: float | None = None
    for index, each in enumerate(source.evaluations, start=1):
        value = confirmed[index - 1]
        if value is not None and (best is None or sign * value < sign * best):
            best = value
        answer = answers.get(index)
        interval = (None, None) if answer is None or answer.interval is None else answer.interval
        known = problem.known.get(name)
        rows.append(
            {
                "evaluation": index,
                "job": each.number,
                "task": each.task,
                "status": each.status,
                "seconds": each.ended,
                "cost": each.cost,
                "objective": each.values.get(name) if known is None else float(known(each.params)),
                "best confirmed": best,
                "recommended": None if answer is None else answer.objective,
                "from": interval[0],
                "to": interval[1],
                "probability of feasibility": None if answer is None else answer.probability,
            }
        )
    return rows


def _confirmed_objectives(source: Source) -> list[float | None]:
    """For each evaluation the objective of its input, if that is confirmed by then."""
    problem = source.problem
    known: dict[Any, dict[str, list[float]]] = {}
    found: list[float | None] = []
    for each in source.evaluations:
        values = known.setdefault(input_key(each.params), {})
        for name, value in each.values.items():
            values.setdefault(name, []).append(value)
        means = {name: sum(several) / len(several) for name, several in values.items()}
        means |= {name: float(f(each.params)) for name, f in problem.known.items()}
        complete = each.values and all(name in means for name in problem.functions)
        met = complete and all(limit.met(means[limit.name]) for limit in problem.constraints)
        found.append(means[problem.objective.name] if met else None)
    return found


def _recommendations(source: Source) -> dict[int, Recommendation]:
    """After some numbers of evaluations, what would have been recommended; and what is now."""
    if source.history_is_empty:
        return {}
    count = len(source.evaluations)
    often = _MOMENTS // 2 if source.is_large else _MOMENTS
    moments = sorted({round(count * (index + 1) / often) for index in range(often)} - {0, count})
    answers = {moment: _recommended_after(source, moment) for moment in moments}
    found = {moment: answer for moment, answer in answers.items() if answer is not None}
    return {**found, count: source.recommendation}


def _recommended_after(source: Source, count: int) -> Recommendation | None:
    optimizer = source.optimizer
    earlier = Optimizer.with_settings(
        optimizer.problem,
        replace(optimizer.settings, model=replace(optimizer.settings.model, hyperparameters="map")),
        optimizer.clock,
    )
    seen = Observations.none(optimizer.problem)
    outcomes = dict(seen.outcomes)
    try:
        for each in source.evaluations[:count]:
            point = optimizer.problem.space.encode(each.params, outside=True)
            if each.values:
                measured = {
                    name: (value, each.sem.get(name, math.nan) ** 2)
                    for name, value in each.values.items()
                }
                seen = seen.add(each.params, point, measured, {})
            if each.task in outcomes:
                outcomes[each.task] = outcomes[each.task].append(point, float(not each.failed))
        if not seen.history:
            return None
        earlier.observations = replace(seen, outcomes=outcomes)
        return earlier.recommend()
    except CalamintError:
        return None


def _progress_figure(source: Source, rows: Sequence[dict[str, Any]], over: Over) -> Any:
    graph = plotly()
    name = source.problem.objective.name
    has_limits = bool(source.problem.constraints)
    made = figure(2, [330, 130], shared_xaxes=True, gap=30.0) if has_limits else figure(1, [360])
    scale, unit = time_unit([row["seconds"] for row in rows])

    def where(row: dict[str, Any]) -> Any:
        if over == "time":
            return None if row["seconds"] is None else row["seconds"] / scale
        return row["evaluation" if over == "evaluations" else "cost"]

    top: dict[str, Any] = {"row": 1, "col": 1}
    answered = [row for row in rows if row["recommended"] is not None]
    at = [where(row) for row in answered]
    if answered:
        spans = [row for row in answered if row["from"] is not None]
        across = [where(row) for row in spans]
        made.add_trace(
            graph.Scatter(
                x=[*across, *across[::-1]],
                y=[row["from"] for row in spans] + [row["to"] for row in spans[::-1]],
                mode="lines",
                fill="toself",
                fillcolor=BAND,
                line={"width": 0},
                hoverinfo="skip",
                name="95 % interval",
            ),
            **top,
        )
        made.add_trace(
            graph.Scatter(
                x=at,
                y=[row["recommended"] for row in answered],
                mode="lines",
                line={"color": BLUE, "width": 2},
                name="recommended",
            ),
            **top,
        )
    confirmed = [row for row in rows if row["best confirmed"] is not None]
    made.add_trace(
        graph.Scatter(
            x=[where(row) for row in confirmed],
            y=[row["best confirmed"] for row in confirmed],
            mode="lines",
            line={"color": GREEN, "width": 2, "shape": "hv", "dash": "dash"},
            name="best confirmed",
        ),
        **top,
    )
    _add_marks(source, made, rows, where, top)
    made.update_yaxes(title_text=label(name), range=_robust_range(rows), **top)
    if has_limits:
        made.add_trace(
            graph.Scatter(
                x=at,
                y=[row["probability of feasibility"] for row in answered],
                mode="lines",
                line={"color": BLUE, "width": 2},
                showlegend=False,
                name="probability",
            ),
            row=2,
            col=1,
        )
        wanted = 1 - source.optimizer.settings.delta
        made.add_hline(y=wanted, line={"color": GREY, "dash": "dot", "width": 1}, row=2, col=1)
        made.update_yaxes(
            title_text="feasible with<br>probability", range=[-0.03, 1.05], row=2, col=1
        )
    titles = {"evaluations": "evaluations", "time": unit, "cost": "cost"}
    made.update_xaxes(title_text=titles[over], row=2 if has_limits else 1, col=1)
    return made


def _add_marks(
    source: Source, made: Any, rows: Sequence[dict[str, Any]], where: Any, place: dict[str, Any]
) -> None:
    """A mark for each evaluation that measured the objective, and for those that failed."""
    graph, name = plotly(), source.problem.objective.name
    by_status: dict[Status, list[tuple[dict[str, Any], Evaluation]]] = {}
    pairs = list(zip(rows, source.evaluations, strict=True))
    for row, each in thinned(pairs):
        by_status.setdefault(each.status, []).append((row, each))
    low, high = _robust_range(rows) or (0.0, 1.0)
    for status, mark in MARKS.items():
        own = [
            (row, each)
            for row, each in by_status.get(status, ())
            if row["objective"] is not None or status == "failed"
        ]
        if own:
            # A failure has no value: it is marked at the lower end.
            floor = low + 0.02 * (high - low)
            made.add_trace(
                graph.Scatter(
                    x=[where(row) for row, _ in own],
                    y=[floor if status == "failed" else row["objective"] for row, _ in own],
                    mode="markers",
                    marker=mark,
                    name=status,
                    text=[_hover_text(each) for _, each in own],
                    hoverinfo="text",
                ),
                **place,
            )
    waiting = [each for each in source.pending if _is_expected(source, each, name)]
    if waiting and not source.history_is_empty:
        last = where(rows[-1]) if rows else 0
        expected = [float(source.query.predict(each.params)[name].median) for each in waiting[:50]]
        made.add_trace(
            graph.Scatter(
                x=[last] * len(expected),
                y=expected,
                mode="markers",
                marker=MARKS["pending"],
                name="pending (expected)",
                text=[_hover_text(each) for each in waiting[:50]],
                hoverinfo="text",
            ),
            **place,
        )


def _is_expected(source: Source, each: Evaluation, name: str) -> bool:
    """Whether a job will measure a function, at an input that is still in the space."""
    task = source.problem.tasks.get(each.task or "")
    try:
        source.problem.space.validate(each.params)
    except ProblemError:
        return False
    return task is not None and name in task.measures


def _hover_text(each: Evaluation) -> str:
    """What is said of an evaluation when pointing at it."""
    reason = {"why it failed": each.reason} if each.failed and each.reason else {}
    return hover({**each.values, **params_in_words(each.params), **reason}, each.title)


def _robust_range(rows: Sequence[dict[str, Any]]) -> list[float] | None:
    """Of the axis: one wild value must not hide the rest; None if all of it can be seen."""
    columns = ("objective", "best confirmed", "recommended")
    values = np.array([row[key] for row in rows for key in columns if row[key] is not None])
    values = values[np.isfinite(values)]
    if len(values) == 0:
        return None
    low, high = (
        np.quantile(values, [0.02, 0.9]) if len(values) >= 20 else (values.min(), values.max())
    )
    spread = (high - low) or max(abs(high), 1.0)
    low, high = max(values.min(), low - 2 * spread), min(values.max(), high + 2 * spread)
    pad = 0.06 * ((high - low) or max(abs(high), 1.0))
    return [float(low - pad), float(high + pad)]
