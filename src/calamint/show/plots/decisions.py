"""Why jobs were chosen, where the time went, and what ran when."""

import heapq
import math
from collections.abc import Sequence
from typing import Any

from calamint.decide import REASONS
from calamint.run import AttemptRecord, JobRecord
from calamint.show.plots.plot import Plot
from calamint.show.plots.source import Source, plot
from calamint.show.plots.style import (
    DASHES,
    GREY,
    SERIES,
    SYMBOLS,
    distinct_labels,
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

_NO_JOBS = "No job has been decided yet."


@plot
def decisions(source: Source) -> Plot:
    """The bits that every job was expected to yield, by task, and what the tasks that competed with
    it offered for their cost."""
    source.needs_study("decisions")
    graph, title = plotly(), "Expected bits by job"
    tasks = list(dict.fromkeys([*source.problem.tasks, *(job.task for job in source.jobs)]))
    rows = [
        {
            "job": job.number,
            "task": job.task,
            "update": job.update,
            "bits": sum(job.bits.values()) if job.bits else None,
            **{f"bits from {name}": bits for name, bits in job.bits.items()},
            "cost": job.predicted_cost,
            **{f"score of {task}": score for task, score in job.scores.items()},
            "decision seconds": job.stage_seconds.get("total"),
        }
        for job in source.jobs
    ]
    scored = [job for job in source.jobs if job.bits]
    if not scored:
        sentence = "No job has been chosen by expected bits yet." if source.jobs else _NO_JOBS
        return Plot("decisions", title, sentence, empty(sentence), rows)
    shown = thinned(scored)
    competing = any(len(job.scores) > 1 for job in scored)
    made = figure(1 + competing, [280.0, 220.0][: 1 + competing], shared_xaxes=True, gap=30.0)
    for index, task in enumerate(tasks):
        color, symbol = SERIES[index % len(SERIES)], SYMBOLS[index % len(SYMBOLS)]
        for update in ("full", "partial"):
            own = [
                job
                for job in shown
                if job.task == task and (job.update == "partial") == (update == "partial")
            ]
            if own:
                made.add_trace(
                    graph.Scatter(
                        x=[job.number for job in own],
                        y=[max(0.0, sum(job.bits.values())) for job in own],
                        mode="markers",
                        marker={
                            "color": color,
                            "symbol": symbol if update == "full" else f"{symbol}-open",
                            "size": 8,
                            "line": {"width": 1.5, "color": color} if update == "partial" else {},
                        },
                        name=label(task) if update == "full" else f"{label(task)}, partial update",
                        text=[hover(_reason(job), f"job {job.number}: {job.task}") for job in own],
                        hoverinfo="text",
                    ),
                    row=1,
                    col=1,
                )
        offers = [(job.number, job.scores[task]) for job in shown if task in job.scores]
        if competing and offers:
            made.add_trace(
                graph.Scatter(
                    x=[number for number, _ in offers],
                    y=[max(0.0, score) for _, score in offers],
                    mode="lines",
                    line={"color": color, "width": 1.5, "dash": DASHES[index % len(DASHES)]},
                    name=f"{label(task)}, offered",
                    showlegend=False,
                ),
                row=2,
                col=1,
            )
    made.update_yaxes(title_text="expected bits", rangemode="tozero", row=1, col=1)
    if competing:
        made.update_yaxes(title_text="bits per cost", rangemode="tozero", row=2, col=1)
    made.update_xaxes(title_text="job", row=1 + competing, col=1)
    caption = (
        "Expected information about the constrained optimum, by job; open marks: partial updates."
        + (
            " Below, what each task offered for its cost: the highest was chosen."
            if competing
            else ""
        )
        + f" {len(source.jobs) - len(scored)} of {len(source.jobs)} jobs were chosen without bits,"
        " such as the initial design." + drawn_of(len(shown), len(scored), "decisions")
    )
    return Plot("decisions", title, caption, made, rows)


def _reason(job: JobRecord) -> dict[str, object]:
    """Why a job was chosen, in words."""
    why: dict[str, object] = {}
    if job.bits:
        why["bits"] = ", ".join(f"{bits:.3g} from {name}" for name, bits in job.bits.items())
    elif job.update in REASONS:
        why["chosen"] = REASONS[job.update]
    if job.predicted_cost not in (None, 1.0):
        why["cost"] = job.predicted_cost
    others = {task: score for task, score in job.scores.items() if task != job.task}
    if others:
        best = sorted(others.items(), key=lambda pair: -pair[1])
        why["next best"] = ", ".join(f"{task} {score:.3g}" for task, score in best[:3])
    return {**why, "update": job.update, **params_in_words(job.params)}


@plot
def evaluations(source: Source) -> Plot:
    """How often each task has run, over all evaluations."""
    graph = plotly()
    title = "Evaluations by task"
    tasks = list(
        dict.fromkeys([*source.problem.tasks, *(e.task for e in source.evaluations if e.task)])
    )
    counts, rows = dict.fromkeys(tasks, 0), []
    for index, each in enumerate(source.evaluations, start=1):
        if each.task is not None:
            counts[each.task] += 1
        rows.append({"evaluation": index, **{f"of {task}": n for task, n in counts.items()}})
    if not any(counts.values()):
        sentence = "No job has ended yet."
        return Plot("evaluations", title, sentence, empty(sentence), rows)
    made = figure(1, [320])
    shown = thinned(rows)
    for index, task in enumerate(tasks):
        made.add_trace(
            graph.Scatter(
                x=[row["evaluation"] for row in shown],
                y=[row[f"of {task}"] for row in shown],
                mode="lines",
                line={
                    "color": SERIES[index % len(SERIES)],
                    "width": 2,
                    "dash": DASHES[index % len(DASHES)],
                    "shape": "hv",
                },
                name=label(task),
            )
        )
    made.update_xaxes(title_text="evaluations")
    made.update_yaxes(title_text="of this task", rangemode="tozero")
    caption = "How many of the evaluations so far were of each task; failed ones are counted."
    return Plot(
        "evaluations", title, caption + drawn_of(len(shown), len(rows), "evaluations"), made, rows
    )


@plot
def time(source: Source) -> Plot:
    """Where the time went: decisions by kind, and the jobs of each task (the paper's Table 1)."""
    source.needs_study("time")
    graph, title = plotly(), "Where the time went"
    spent: dict[str, float] = {
        "deciding, full updates": 0.0,
        "deciding, partial updates": 0.0,
        "deciding, other": 0.0,
    }
    counts = dict.fromkeys(spent, 0)
    for job in source.jobs:
        kind = job.update if job.update in ("full", "partial") else "other"
        key = f"deciding, {kind} updates" if kind != "other" else "deciding, other"
        spent[key] += job.stage_seconds.get("total", 0.0)
        counts[key] += 1
    for task in dict.fromkeys([*source.problem.tasks, *(job.task for job in source.jobs)]):
        spent[f"running {task}"], counts[f"running {task}"] = 0.0, 0
    jobs = {job.number: job for job in source.jobs}
    for attempt in source.attempts:
        job = jobs[attempt.job]
        if attempt.ended is not None:
            # What was told of the last attempt is better known than when it was told.
            told = job.seconds if attempt.number == job.attempts else None
            took = attempt.ended - attempt.started if told is None else told
            spent[f"running {job.task}"] += max(0.0, took)
            counts[f"running {job.task}"] += 1
    total = sum(spent.values())
    rows: list[dict[str, Any]] = [
        {
            "what": what,
            "times": counts[what],
            "seconds": seconds,
            "share": seconds / total if total else 0.0,
        }
        for what, seconds in spent.items()
    ]
    if not any(spent.values()):
        sentence = "Nothing has taken any time yet."
        return Plot("time", title, sentence, empty(sentence), rows)
    scale, unit = time_unit(list(spent.values()))
    made = figure(1, [20.0 + 40 * len(rows)], legend=False)
    made.add_trace(
        graph.Bar(
            y=[label(row["what"], 28) for row in rows],
            x=[float(row["seconds"]) / scale for row in rows],
            orientation="h",
            marker={
                "color": [
                    SERIES[1] if str(row["what"]).startswith("deciding") else SERIES[0]
                    for row in rows
                ],
                "pattern": {
                    "shape": [
                        "/" if str(row["what"]).startswith("deciding") else "" for row in rows
                    ]
                },
            },
            text=[f"{row['share']:.1%}" for row in rows],
            textposition="outside",
            hovertext=[hover(row) for row in rows],
            hoverinfo="text",
        )
    )
    longest = max(spent.values()) / scale
    made.update_xaxes(title_text=unit, range=[0.0, 1.12 * longest])
    made.update_yaxes(autorange="reversed")
    deciding = sum(seconds for what, seconds in spent.items() if what.startswith("deciding"))
    running = total - deciding
    ratio = f"; deciding took {deciding / running:.1%} of what running took" if running > 0 else ""
    caption = (
        "What decisions and jobs took; jobs on different resources run at the same time, so the"
        f" sum can exceed the time that passed{ratio}."
    )
    return Plot("time", title, caption, made, rows)


@plot
def timeline(source: Source) -> Plot:
    """What ran on which resource, and when; pointing at a job says why it was chosen."""
    source.needs_study("timeline")
    graph, title = plotly(), "Timeline"
    jobs = {job.number: job for job in source.jobs}
    if not source.attempts:
        return Plot("timeline", title, "", empty("No job has been started yet."), [])
    # One that runs ends now, as far as is known.
    now = max(source.needs_study("timeline").now(), *(each.started for each in source.attempts))
    rows: list[dict[str, Any]] = []
    for attempt in source.attempts:
        job = jobs[attempt.job]
        ended = attempt.ended if attempt.ended is not None else now
        rows.append(
            {
                "job": attempt.job,
                "attempt": attempt.number,
                "task": job.task,
                "resources": " + ".join(attempt.resources) or "none",
                "started": attempt.started - source.began,
                "ended": ended - source.began,
                "outcome": attempt.outcome or "running",
                "update": job.update,
            }
        )
    lanes, names = _lanes(source.attempts)
    shown = lanes[-2000:]
    scale, unit = time_unit([row["ended"] for row in rows])
    made = figure(1, [80.0 + 30 * min(len(names), 40)])
    tasks = list(dict.fromkeys(job.task for job in source.jobs))
    patterns = {"done": "", "running": "", "failed": "x", "lost": "/", "cancelled": "."}
    for index, task in enumerate(tasks):
        own = [(i, lane) for i, lane in shown if rows[i]["task"] == task]
        if own:
            made.add_trace(
                graph.Bar(
                    base=[float(rows[i]["started"]) / scale for i, _ in own],
                    x=[
                        max(float(rows[i]["ended"]) - float(rows[i]["started"]), 0.0) / scale
                        for i, _ in own
                    ],
                    y=[lane for _, lane in own],
                    orientation="h",
                    name=label(task),
                    marker={
                        "color": SERIES[index % len(SERIES)],
                        "opacity": [
                            0.5 if rows[i]["outcome"] == "running" else 1.0 for i, _ in own
                        ],
                        "pattern": {
                            "shape": [patterns.get(str(rows[i]["outcome"]), "/") for i, _ in own]
                        },
                        "line": {"width": 0.5, "color": GREY},
                    },
                    hovertext=[
                        hover(
                            {"outcome": rows[i]["outcome"], **_reason(jobs[int(rows[i]["job"])])},
                            f"job {rows[i]['job']}: {rows[i]['task']}",
                        )
                        for i, _ in own
                    ],
                    hoverinfo="text",
                )
            )
    made.update_layout(barmode="overlay", bargap=0.15)
    made.update_xaxes(title_text=unit)
    made.update_yaxes(categoryorder="array", categoryarray=names[::-1], type="category")
    caption = (
        "Jobs on their resources; hatched ones failed, were lost or cancelled, faint ones run."
        " Point at a job to read why it was chosen."
        + (
            f" The last {len(shown):,} of {len(lanes):,} bars are drawn."
            if len(shown) < len(lanes)
            else ""
        )
    )
    return Plot("timeline", title, caption, made, rows)


def _lanes(attempts: Sequence[AttemptRecord]) -> tuple[list[tuple[int, str]], list[str]]:
    """For every resource of every attempt, the attempt's index and a lane that is free then; and
    the names of all lanes in order."""
    order = sorted(range(len(attempts)), key=lambda i: attempts[i].started)
    free: dict[str, list[int]] = {}
    busy: dict[str, list[tuple[float, int]]] = {}
    used: dict[str, int] = {}
    found = []
    for i in order:
        attempt = attempts[i]
        for resource in attempt.resources or ("no resource",):
            idle, running = free.setdefault(resource, []), busy.setdefault(resource, [])
            while running and running[0][0] <= attempt.started:
                heapq.heappush(idle, heapq.heappop(running)[1])
            if idle:
                lane = heapq.heappop(idle)
            else:
                lane = used.get(resource, 0) + 1
                used[resource] = lane
            heapq.heappush(running, (math.inf if attempt.ended is None else attempt.ended, lane))
            found.append((i, resource, lane))
    labels = dict(zip(used, distinct_labels(used, 20), strict=True))
    names = {
        (resource, lane): f"{labels[resource]} {lane}" if count > 1 else labels[resource]
        for resource, count in used.items()
        for lane in range(1, count + 1)
    }
    return [(i, names[resource, lane]) for i, resource, lane in found], list(names.values())
