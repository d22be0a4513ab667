"""Whether the model can be trusted: measurements that it did not know, and what it said of them."""

from typing import Any

import numpy as np
from scipy.special import ndtr

from calamint.arrays import Array
from calamint.decide import short
from calamint.model import FunctionSurrogate, GPPosterior, mixture_quantiles
from calamint.show.plots.plot import Plot
from calamint.show.plots.source import Source, plot
from calamint.show.plots.style import (
    BLUE,
    GREY,
    NOTHING,
    ORANGE,
    drawn_of,
    empty,
    figure,
    label,
    plotly,
    scale,
    thinned,
)

_LEVELS = np.array([0.025, 0.5, 0.975])
_BINS = np.linspace(0, 1, 6)
# What most functions need, and what can be said of them.
_SCALES = {
    None: "as measured",
    "none": "as measured",
    "log": "logarithmic",
    "reflected": "logarithmic from above",
    "logit": "logit",
    "asinh": "asinh",
}


@plot
def trust(source: Source) -> Plot:
    """Leave-one-out predictions: each measurement against what the model says from all others,
    and how often limits are met that the model expects to be met."""
    graph, title = plotly(), "Can the model be trusted?"
    if source.history_is_empty:
        return Plot("trust", title, NOTHING, empty(NOTHING), [])
    functions = source.query.surrogate.functions
    rows: list[dict[str, Any]] = []
    continuous: dict[str, list[dict[str, Any]]] = {}
    said: list[tuple[float, bool]] = []
    sentences = []
    for name, function in functions.items():
        posterior = function.posterior
        if not isinstance(posterior, GPPosterior) or len(posterior.inputs) < 3:
            continue
        own = _left_out(source, name, function, posterior)
        rows += own
        said += [
            (row["probability of meeting the limit"], row["met"])
            for row in own
            if row["met"] is not None
        ]
        if function.binary:
            continue
        continuous[name] = own
        inside = sum(row["from"] <= row["measured"] <= row["to"] for row in own)
        kind = _SCALES.get(function.transform.warp.kind, function.transform.warp.kind)
        sentences.append(
            f"{label(name)}: {inside} of {len(own)} within their 95 % intervals; scale {kind}."
        )
    if not rows:
        sentence = "There are fewer than three measurements of every function."
        return Plot("trust", title, sentence, empty(sentence), rows)
    panels = len(continuous) + bool(said)
    titles = [label(name) for name in continuous] + (["feasibility"] if said else [])
    made = figure(panels, [280.0] * panels, subplot_titles=titles, gap=80.0)
    drawn = 0
    told: set[bool] = set()
    for index, (name, own) in enumerate(continuous.items(), start=1):
        shown = thinned(own, 400)
        drawn = max(drawn, len(own) - len(shown))
        for inside, color, symbol in ((True, BLUE, "circle"), (False, ORANGE, "x")):
            part = [row for row in shown if (row["from"] <= row["measured"] <= row["to"]) == inside]
            if part:
                middle = np.array([row["predicted"] for row in part])
                made.add_trace(
                    graph.Scatter(
                        x=[row["measured"] for row in part],
                        y=middle,
                        error_y={
                            "type": "data",
                            "symmetric": False,
                            "array": np.array([row["to"] for row in part]) - middle,
                            "arrayminus": middle - np.array([row["from"] for row in part]),
                            "thickness": 1,
                            "width": 0,
                        },
                        mode="markers",
                        marker={"color": color, "symbol": symbol, "size": 6},
                        name="within its interval" if inside else "outside",
                        legendgroup=str(inside),
                        showlegend=inside not in told,
                    ),
                    row=index,
                    col=1,
                )
                told.add(inside)
        ends = [min(row["measured"] for row in shown), max(row["measured"] for row in shown)]
        _add_diagonal(made, ends, index)
        log = name in source.smallest_on_log_scale and all(row["from"] > 0 for row in shown)
        made.update_xaxes({"title_text": "measured", **scale(log)}, row=index, col=1)
        predicted = {"title_text": "predicted", "range": _range(shown, log), **scale(log)}
        made.update_yaxes(predicted, row=index, col=1)
    if said:
        _add_reliability(made, said, len(continuous) + 1)
    caption = (
        "Each measurement against what the model predicts from all others, with 95 % intervals."
        f" {' '.join(sentences)}"
        + (
            " Points on the diagonal are well calibrated: limits predicted to be met with"
            " probability p are met in a share p of cases."
            if said
            else ""
        )
        + (drawn_of(400, 400 + drawn, "measurements of a function") if drawn else "")
    )
    return Plot("trust", title, caption, made, rows)


def _range(rows: list[dict[str, Any]], log: bool) -> list[float]:
    """Of the axis of predictions: wide intervals must not hide the rest."""
    values = np.array([row[key] for row in rows for key in ("measured", "predicted")])
    if log:
        values = np.log10(values[values > 0])
    low, high = float(values.min()), float(values.max())
    pad = 0.15 * ((high - low) or max(abs(high), 1.0))
    return [low - pad, high + pad]


def _left_out(
    source: Source, name: str, function: FunctionSurrogate, posterior: GPPosterior
) -> list[dict[str, Any]]:
    """What is predicted of each measurement without it, in the user's units."""
    mean, variance = posterior.leave_one_out()
    low, high = source.problem.limits_of(name) if name in source.problem.functions else (0.5, 1.0)
    if function.binary:
        passing = ndtr(mean / np.sqrt(1 + variance)).mean(0)
        outcomes = _outcomes(source, name, posterior)
        return [
            {
                "function": name,
                "measured": float(outcome),
                "predicted": float(share),
                "from": None,
                "to": None,
                "probability of meeting the limit": float(share),
                "met": bool(outcome),
            }
            for share, outcome in zip(passing, outcomes, strict=True)
        ]
    values = source.query.modelled.data[name].values
    noisy = variance + posterior.data_noise
    spread = np.sqrt(noisy)
    levels = _LEVELS if function.transform.scale > 0 else 1 - _LEVELS
    quantiles = function.transform.to_user(mixture_quantiles(mean, spread, levels))
    ends = [function.low, function.high]
    within = (ndtr((ends[1] - mean) / spread) - ndtr((ends[0] - mean) / spread)).mean(0)
    limited = np.isfinite(low) or np.isfinite(high)
    return [
        {
            "function": name,
            "measured": float(value),
            "predicted": float(quantiles[i, 1]),
            "from": float(quantiles[i, 0]),
            "to": float(quantiles[i, 2]),
            "probability of meeting the limit": float(within[i]) if limited else None,
            "met": bool(low <= value <= high) if limited else None,
        }
        for i, value in enumerate(values)
    ]


def _outcomes(source: Source, name: str, posterior: GPPosterior) -> Array:
    """The outcomes that a binary posterior was made of, in its order; not all, if many."""
    data = source.query.modelled.data[name]
    known: dict[bytes, list[float]] = {point.tobytes(): [] for point in data.inputs}
    for point, value in zip(data.inputs, data.values, strict=True):
        known[point.tobytes()].append(float(value))
    return np.array([known[point.tobytes()].pop(0) for point in posterior.inputs])


def _add_reliability(made: Any, said: list[tuple[float, bool]], row: int) -> None:
    graph = plotly()
    probability = np.array([share for share, _ in said])
    met = np.array([outcome for _, outcome in said], dtype=float)
    bins = np.clip(np.digitize(probability, _BINS) - 1, 0, len(_BINS) - 2)
    x, y, error_low, error_high, text = [], [], [], [], []
    for each in range(len(_BINS) - 1):
        inside = bins == each
        count = int(inside.sum())
        if count:
            share = float(met[inside].mean())
            low, high = _wilson(share, count)
            x.append(float(probability[inside].mean()))
            y.append(share)
            error_low.append(share - low)
            error_high.append(high - share)
            text.append(f"{count} measurements, {short(share)} met")
    _add_diagonal(made, [0.0, 1.0], row)
    made.add_trace(
        graph.Scatter(
            x=x,
            y=y,
            error_y={
                "type": "data",
                "symmetric": False,
                "array": error_high,
                "arrayminus": error_low,
                "thickness": 1.5,
            },
            mode="lines+markers",
            marker={"color": BLUE, "size": 8},
            line={"color": BLUE, "width": 1},
            text=text,
            hoverinfo="text",
            showlegend=False,
        ),
        row=row,
        col=1,
    )
    made.update_xaxes(
        title_text="predicted probability of meeting a limit", range=[-0.03, 1.03], row=row, col=1
    )
    made.update_yaxes(title_text="share that met it", range=[-0.03, 1.03], row=row, col=1)


def _add_diagonal(made: Any, ends: list[float], row: int) -> None:
    """Where predictions would be right."""
    line = {"color": GREY, "dash": "dot", "width": 1}
    trace = plotly().Scatter(
        x=ends, y=ends, mode="lines", line=line, hoverinfo="skip", showlegend=False
    )
    made.add_trace(trace, row=row, col=1)


def _wilson(share: float, count: int, z: float = 1.96) -> tuple[float, float]:
    """A 95 % interval of a share."""
    centre = (share + z * z / (2 * count)) / (1 + z * z / count)
    half = z / (1 + z * z / count) * np.sqrt(share * (1 - share) / count + z * z / (4 * count**2))
    return max(0.0, centre - float(half)), min(1.0, centre + float(half))
