"""Commands that ask the model: recommend, gains."""

from dataclasses import asdict
from typing import Annotated, Literal

import typer

from calamint import run
from calamint.decide import Recommendation
from calamint.errors import ProblemError, StorageError
from calamint.show.cli.app import DEFAULT, As, Name, Storage, Trust, app, open_study, read_study
from calamint.show.cli.arguments import read_params
from calamint.show.cli.output import Format, show_answer, show_rows


@app.command(epilog="Example: calamint recommend --delta 0.01 --format json")
def recommend(
    storage: Storage = DEFAULT,
    name: Name = None,
    trust: Trust = False,
    delta: Annotated[
        float | None, typer.Option(help="Accepted probability of being infeasible.")
    ] = None,
    observed: Annotated[
        bool, typer.Option(help="Consider only inputs that were measured.")
    ] = False,
    format: As = Format.table,  # noqa: A002
) -> None:
    """Print the recommended input and its probability of being feasible."""
    kind: Literal["observed", "believed"] = "observed" if observed else "believed"
    try:
        best = _answer(open_study(storage, name, trust), delta, kind)
    except StorageError:  # it can only be read, so the answer is not stored
        best = _answer(read_study(storage, name, trust), delta, kind)
    row = {
        "params": best.params,
        "objective": best.objective,
        "probability": best.probability,
        "confident": best.confident,
        "interval": best.interval,
        "confirmed": best.confirmed,
    }
    show_answer(best, row, format)


def _answer(
    study: run.StudyView, delta: float | None, kind: Literal["observed", "believed"]
) -> Recommendation:
    if not study.history:
        raise ProblemError("nothing has been measured yet: ask for a job, and tell its result.")
    return study.recommend(delta, kind)


@app.command(epilog="Example: calamint predict learning_rate=0.01 width=64")
def predict(
    params: Annotated[list[str], typer.Argument(help="Parameters as name=value, one for each.")],
    storage: Storage = DEFAULT,
    name: Name = None,
    trust: Trust = False,
    format: As = Format.table,  # noqa: A002
) -> None:
    """Print what is believed about each function at an input."""
    study = read_study(storage, name, trust)
    found = study.predict(read_params(study, params))
    functions = {name: asdict(function) for name, function in found.functions.items()}
    show_answer(found, {"functions": functions, "probability": found.probability}, format)


@app.command(epilog="Example: calamint gains learning_rate=0.01 width=64")
def gains(
    params: Annotated[list[str], typer.Argument(help="Parameters as name=value, one for each.")],
    storage: Storage = DEFAULT,
    name: Name = None,
    trust: Trust = False,
    format: As = Format.table,  # noqa: A002
) -> None:
    """Print the bits that measuring each function at an input would yield."""
    study = read_study(storage, name, trust)
    found = study.gains([read_params(study, params)])
    show_rows([{"function": key, "bits": float(value[0])} for key, value in found.items()], format)
