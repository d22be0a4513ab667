"""What the limits cost: the objective against each constraint, and which limits bind."""

import math
from dataclasses import replace
from typing import Any

from calamint.show.plots.plot import Plot
from calamint.show.plots.source import Source, plot, status_of
from calamint.show.plots.style import (
    BLUE,
    MARKS,
    NOTHING,
    drawn_of,
    empty,
    figure,
    hover,
    label,
    limit_lines,
    params_in_words,
    plotly,
    scale,
    thinned,
)

# A limit that nothing reaches, in the units of the model.
_FAR = 1e6


@plot
def trade_off(source: Source) -> Plot:
    """The objective against each constraint, with the limits: what meeting them costs.

    Each mark is an input at which both were measured.
    """
    graph, problem = plotly(), source.problem
    name = problem.objective.name
    title = f"Trade-off: {label(name)} against the limits"
    limits = problem.constraints
    if not limits:
        return Plot("trade_off", title, "", empty("The problem has no limits."), [])
    joined = [each for each in source.measured if name in each.values]
    rows = [
        {
            **each.params,
            **each.values,
            "input status": status_of(problem, each),
        }
        for each in joined
    ]
    if not any(limit.name in each.values for each in joined for limit in limits):
        sentence = f"No input has both {name} and a constraint measured."
        return Plot("trade_off", title, "", empty(sentence), rows)
    shown = thinned(list(zip(joined, rows, strict=True)))
    made = figure(len(limits), [280.0] * len(limits))
    told: set[str] = set()
    for index, limit in enumerate(limits, start=1):
        for status, mark in MARKS.items():
            own = [
                each
                for each, row in shown
                if limit.name in each.values and row["input status"] == status
            ]
            if own:
                made.add_trace(
                    graph.Scatter(
                        x=[each.values[name] for each in own],
                        y=[each.values[limit.name] for each in own],
                        mode="markers",
                        marker=mark,
                        name=status,
                        legendgroup=status,
                        showlegend=status not in told,
                        text=[
                            hover({**each.values, **params_in_words(each.params)}) for each in own
                        ],
                        hoverinfo="text",
                    ),
                    row=index,
                    col=1,
                )
                told.add(status)
        if limit.binary:
            made.update_yaxes(
                tickvals=[0, 1], ticktext=["fail", "pass"], range=[-0.3, 1.3], row=index, col=1
            )
        else:
            log = limit.name in source.smallest_on_log_scale
            limit_lines(made, limit.low, limit.high, index, log)
            made.update_yaxes(scale(log), row=index, col=1)
        made.update_yaxes(title_text=label(limit.name), row=index, col=1)
        log = name in source.smallest_on_log_scale
        made.update_xaxes({"title_text": label(name), **scale(log)}, row=index, col=1)
    better = "right" if problem.objective.maximize else "left"
    caption = (
        f"Inputs at which {label(name)} and a constraint were measured, with its limits; better is"
        f" to the {better}." + drawn_of(len(shown), len(rows), "inputs")
    )
    return Plot("trade_off", title, caption, made, rows)


@plot
def limits(source: Source) -> Plot:
    """Which limits bind: how much better the recommendation would be without each of them."""
    graph, problem = plotly(), source.problem
    name, title = problem.objective.name, "Which limits bind"
    if not problem.constraints:
        return Plot("limits", title, "", empty("The problem has no limits."), [])
    if source.history_is_empty:
        return Plot("limits", title, NOTHING, empty(NOTHING), [])
    best = source.recommendation
    prediction = source.query.predict(best.params)
    rows: list[dict[str, Any]] = []
    for limit in problem.constraints:
        without = _without_limit(source, limit.name)
        here = prediction[limit.name]
        rows.append(
            {
                "limit": str(limit),
                f"{limit.name} at the recommended input": here.median,
                "from": here.interval[0],
                "to": here.interval[1],
                "probability of meeting it": here.probability,
                f"{name} with it": best.objective,
                f"{name} without it": without,
                "improvement": problem.objective.sign * (best.objective - without),
            }
        )
    made = figure(1, [30.0 + 44 * len(rows)], legend=False)
    gains = [row["improvement"] if source.matters(row["improvement"]) else 0.0 for row in rows]
    made.add_trace(
        graph.Bar(
            y=[label(row["limit"]) for row in rows],
            x=gains,
            orientation="h",
            marker={"color": BLUE},
            text=[f"{gain:.3g}" for gain in gains],
            textposition="auto",
            hovertext=[hover(row) for row in rows],
            hoverinfo="text",
        )
    )
    made.update_xaxes(title_text=f"improvement of {label(name, 20)}", rangemode="tozero")
    made.update_yaxes(autorange="reversed")
    caption = (
        f"How much better the {label(name)} of the recommendation would be expected to be if a"
        " limit were dropped and the others kept. A limit without a bar does not bind."
    )
    return Plot("limits", title, caption, made, rows)


def _without_limit(source: Source, name: str) -> float:
    query = source.query
    function = query.surrogate.functions[name]
    low = -_FAR if math.isfinite(function.low) else function.low
    high = _FAR if math.isfinite(function.high) else function.high
    free = replace(function, low=low, high=high)
    surrogate = replace(query.surrogate, functions={**query.surrogate.functions, name: free})
    freed = replace(query, surrogate=surrogate)
    return freed.recommend(source.optimizer.settings.delta, "believed").objective
