"""A report of a study: a page in words, then every plot, each with its table, in one HTML file."""

import re
import time
from collections import Counter
from collections.abc import Callable, Mapping
from html import escape
from pathlib import Path

from calamint.decide import Recommendation, short
from calamint.errors import CalamintError, ProblemError
from calamint.problem import Real
from calamint.run import StudyView
from calamint.show.plots import PLOTS, Plot
from calamint.show.plots.page import plot_section, write_page
from calamint.show.plots.source import Source, read_source

# Drawn only where they can be.
_ONE_OR_TWO_PARAMETERS = ("explain", "compare")


def write_report(
    study: StudyView, path: str | Path, say: Callable[[str], None] = lambda _: None
) -> Path:
    """Write a report of a study.

    Args:
        study: The study.
        path: A file that ends in .html.
        say: Told what is being made, a plot at a time.

    Returns:
        The path.
    """
    path = Path(path)
    if path.suffix != ".html":
        raise ProblemError(f"path is {str(path)!r}: write a name that ends in .html.")
    if not isinstance(study, StudyView):
        raise ProblemError(f"study is {study!r}: write a Study.")
    source = read_source(study)
    made: dict[str, Plot] = {}
    sections = []
    for name, make in PLOTS.items():
        if name in _ONE_OR_TWO_PARAMETERS and not _can_explain(source, name):
            continue
        say(name)
        try:
            made[name] = make(source)
        except CalamintError as error:
            sections.append(
                f"<section><h2>{escape(name)}</h2><p>{escape(str(error))}</p></section>"
            )
            continue
        sections.append(plot_section(made[name]))
    contents = "".join(
        f'<li><a href="#{each.name}">{each.title}</a></li>' for each in made.values()
    )
    lead = f'{_in_words(source, made)}<nav aria-label="Plots"><ul>{contents}</ul></nav>'
    return write_page(path, f"Study {escape(study.name)}", sections, lead)


def _can_explain(source: Source, name: str) -> bool:
    parameters = list(source.problem.space.parameters.values())
    if source.history_is_empty or len(parameters) > 2:
        return False
    return isinstance(parameters[0], Real) if len(parameters) == 1 else name == "explain"


def _in_words(source: Source, made: Mapping[str, Plot]) -> str:
    """What was asked, what was found, what it cost, what mattered, and what to do next."""
    assert source.study is not None
    written = time.strftime("%Y-%m-%d %H:%M", time.localtime())
    parts = [
        f'<p class="quiet">{escape(source.study.database.where)}, {written}</p>',
        "<h2>What was found</h2>",
        _found(source),
        "<h2>What was asked</h2>",
        f"<pre class='scroll'>{escape(source.problem.describe())}</pre>",
        "<h2>What it cost</h2>",
        _cost(source),
        "<h2>What mattered</h2>",
        _mattered(source, made),
        "<h2>What to do next</h2>",
        _steps(source),
    ]
    return "".join(parts)


def recommendation_section(source: Source) -> str:
    """What was found, and what to do next, as HTML."""
    return f"{_found(source)}<h3>What to do next</h3>{_steps(source)}"


def _steps(source: Source) -> str:
    return f"<ul>{''.join(f'<li>{_with_code(each)}</li>' for each in next_steps(source))}</ul>"


def _with_code(sentence: str) -> str:
    """HTML of a sentence with code between backticks."""
    return re.sub(r"`(.*?)`", r"<code>\1</code>", escape(sentence))


def _found(source: Source) -> str:
    if source.history_is_empty:
        return "<p>Nothing has been measured yet.</p>"
    best, instead = source.recommendation, _confirmed_instead(source)
    shown = best if instead is None else instead
    prediction = source.query.predict(shown.params)
    rows = {
        name: str(function)
        for name, function in prediction.functions.items()
        if name != source.problem.objective.name
    }
    if instead is None:
        words = f"<p>{escape(_verdict(source, best))}</p>"
        words += "" if best.confirmed else _best_confirmed(source)
    else:
        words = f"<p>{escape(_use(source, best, instead))}</p>"
    inputs = _facts({name: short(value) for name, value in shown.params.items()})
    parts = [f"<div><h3>Recommended input</h3>{inputs}</div>"]
    if rows:
        heading = "What is expected of the other functions there"
        parts.append(f"<div><h3>{heading}</h3>{_facts(rows)}</div>")
    return f'<div class="answer">{words}</div><div class="beside">{"".join(parts)}</div>'


def _observed(source: Source) -> Recommendation | None:
    """The best input that was seen to work, if there is one."""
    if not any(each.confirmed(source.problem) for each in source.measured):
        return None
    best = source.query.recommend(source.optimizer.settings.delta, "observed")
    return best if best.confirmed else None


def _confirmed_instead(source: Source) -> Recommendation | None:
    """The best confirmed input, if the recommended one cannot be told to be better."""
    best = source.recommendation
    observed = None if best.confirmed or best.interval is None else _observed(source)
    if observed is None:
        return None
    sign = source.problem.objective.sign
    worst = max(sign * end for end in best.interval or ())
    return observed if sign * observed.objective <= worst else None


def _use(source: Source, best: Recommendation, instead: Recommendation) -> str:
    """What to use, as it was measured, and what the model makes of another input."""
    met = " and every limit was met" if source.problem.constraints else ""
    used, other = _inputs(instead), _inputs(best)
    value = f"{source.problem.objective.name} = {short(instead.objective)}"
    sentence = f"Use {used}: every function was measured there{met}; {value}."
    if other != used:
        sentence += f" By the model, {other} is no better than can be told from the data."
    return sentence


def _inputs(answer: Recommendation) -> str:
    return ", ".join(f"{name} = {short(value)}" for name, value in answer.params.items())


def _best_confirmed(source: Source) -> str:
    """The best input that was seen to work, in words."""
    if not any(each.confirmed(source.problem) for each in source.measured):
        return "<p>No input is confirmed yet.</p>"
    best = _observed(source)
    if best is None:
        return ""
    value = f"{source.problem.objective.name} = {short(best.objective)}"
    return f"<p>{escape(f'The best confirmed input is {_inputs(best)}, with {value}.')}</p>"


def _verdict(source: Source, best: Recommendation) -> str:
    """The recommendation in a sentence or two."""
    name = source.problem.objective.name
    value = f"{name} = {short(best.objective)}"
    if best.interval is not None and best.interval[0] != best.interval[1]:
        value += f" (95 %: {short(best.interval[0])} to {short(best.interval[1])})"
    if not source.problem.constraints:
        sure = ""
    elif best.confident:
        sure = f" All limits are met there with a probability of {best.probability:.3g}."
    else:
        sure = (
            f" All limits are met there with a probability of only {best.probability:.3g}, less"
            f" than the {1 - source.optimizer.settings.delta:g} that was asked for."
        )
    if best.confirmed:
        seen = " It is confirmed: every function was measured there, and every limit was met."
    elif _is_by_chance(source, best):
        seen = (
            " It is not confirmed: every limit was met when it was measured there, but the model"
            " takes that for chance."
        )
    else:
        missed = ", or a limit was missed" if source.problem.constraints else ""
        seen = f" It is not confirmed: some functions have not been measured there{missed}."
    return f"The recommended input is expected to have {value}.{sure}{seen}"


def _is_by_chance(source: Source, best: Recommendation) -> bool:
    """Whether limits were met there, but are not expected to be."""
    here = [each for each in source.measured if each.params == best.params]
    return any(each.confirmed(source.problem) for each in here)


def _facts(rows: Mapping[str, str]) -> str:
    cells = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{escape(value)}</td></tr>'
        for name, value in rows.items()
    )
    return f'<div class="scroll"><table class="facts">{cells}</table></div>'


def _cost(source: Source) -> str:
    ended = [each for each in source.evaluations if each.task is not None]
    by_task = Counter(each.task for each in ended)
    failed = Counter(each.task for each in ended if each.failed)
    rows: dict[str, str] = {}
    for task, count in by_task.items():
        broken = f", {failed[task]} of them failed" if failed[task] else ""
        rows[f"evaluations by {task}"] = f"{count}{broken}"
    added = sum(each.task is None for each in source.evaluations)
    if added:
        rows["added measurements"] = str(added)
    if source.pending:
        rows["running, waiting or held"] = str(len(source.pending))
    spent = [each.cost for each in ended if each.cost]
    if spent:
        rows["expected cost of all evaluations"] = short(float(spent[-1]))
    passed = max((each.ended or 0.0 for each in source.evaluations), default=0.0)
    rows["from the first job to the last result"] = _duration(passed)
    deciding = sum(job.stage_seconds.get("total", 0.0) for job in source.jobs)
    rows["spent on decisions"] = _duration(deciding)
    return _facts(rows)


def _duration(seconds: float) -> str:
    for length, unit in ((86400.0, "days"), (3600.0, "hours"), (60.0, "minutes")):
        if seconds >= 2 * length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.1f} seconds"


def _mattered(source: Source, made: Mapping[str, Plot]) -> str:
    sentences = []
    binding = made["limits"].data() if "limits" in made else []
    for row in sorted(binding, key=lambda row: -row["improvement"]):
        if source.matters(row["improvement"]):
            sentences.append(
                f"{row['limit']} binds: without it, {source.problem.objective.name} would be"
                f" expected to be better by {short(float(row['improvement']))}."
            )
        else:
            sentences.append(f"{row['limit']} does not bind.")
    bits: dict[str, float] = {}
    for job in source.jobs:
        if job.bits and job.state == "done":
            bits[job.task] = bits.get(job.task, 0.0) + sum(job.bits.values())
    if len(bits) > 1:
        ranked = sorted(bits.items(), key=lambda pair: -pair[1])
        shares = ", ".join(f"{task} {value:.3g}" for task, value in ranked)
        sentences.append(f"Expected bits of all jobs that were chosen by them, by task: {shares}.")
    ranked_parameters = made["importance"].data() if "importance" in made else []
    if ranked_parameters and max(
        value for key, value in ranked_parameters[0].items() if key != "parameter name"
    ):
        first = ranked_parameters[0]
        sentences.append(f"The parameter that matters most is {first['parameter name']}.")
    if not sentences:
        sentences.append("Too little was measured to say.")
    return f"<ul>{''.join(f'<li>{escape(each)}</li>' for each in sentences)}</ul>"


def next_steps(source: Source) -> list[str]:
    """What people who run the study would want to do now."""
    steps = []
    held = [job for job in source.jobs if job.state == "held"]
    if held:
        numbers = ", ".join(str(job.number) for job in held[:10])
        steps.append(f"Look at what is held (job {numbers}): `calamint release` or cancel it.")
    running = sum(job.state == "running" for job in source.jobs)
    waiting = sum(job.state == "waiting" for job in source.jobs)
    if running:
        steps.append(
            f"{running} jobs are running. If you run them by hand, report their results when they"
            " end."
            if running > 1
            else "One job is running. If you run it by hand, report its results when it ends."
        )
    if waiting:
        steps.append(f"Waiting for a free resource, or to be tried again: {waiting}.")
    if source.history_is_empty:
        return [*steps, "Ask for jobs, run them, and tell their results."]
    best = source.recommendation
    if not best.confirmed and _confirmed_instead(source) is None:
        steps.append(
            "Confirm the recommendation before you rely on it: `study.ask(confirm=True)`, or a run"
            " with `confirm=1`, measures there what was not measured yet."
        )
    if source.problem.constraints and not best.confident:
        steps.append(
            "No input is feasible with the probability that was asked for: measure more, or look at"
            " which limits can be met at all."
        )
    steps += _more_or_stop(source)
    warned = [job for job in source.jobs if job.warnings]
    if warned:
        count = "One decision" if len(warned) == 1 else f"{len(warned)} decisions"
        steps.append(
            f"{count} had warnings; the last: {warned[-1].warnings[-1]} (job {warned[-1].number})."
        )
    return steps or ["Nothing needs to be done."]


def _more_or_stop(source: Source) -> list[str]:
    """Whether the bits that are expected are worth going on."""
    chosen = [(job.task, sum(job.bits.values())) for job in source.jobs if job.bits]
    if len(chosen) < 10:
        return []
    first = max(bits for _, bits in chosen[:10])
    last = max(dict(chosen).values())  # of the last job of each task
    if last < 0.05 * first:
        return [
            f"The last jobs were expected to yield at most {last:.2g} bits, the first ones"
            f" {first:.2g}: little is left to be learnt, and stopping is reasonable."
        ]
    return [
        f"The last jobs were still expected to yield up to {last:.2g} bits: more evaluations are"
        " likely to improve the recommendation."
    ]
