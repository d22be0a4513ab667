"""What takes long, made in a process of its own: plots, and sentences about what is believed."""

import os
import signal
from contextlib import suppress
from dataclasses import dataclass, replace
from html import escape
from multiprocessing.connection import Connection
from typing import Any, final

import numpy as np

from calamint.errors import CalamintError
from calamint.problem import Params
from calamint.run import Database, StudyRecord, StudyView, study_record, study_sequence
from calamint.show.plots import PLOTS
from calamint.show.plots.page import plot_section
from calamint.show.plots.source import Source, read_source
from calamint.show.report import recommendation_section

# Below that of the server, which answers meanwhile.
_NICENESS = 10


@final
@dataclass(frozen=True)
class Drawing:
    """Something that was drawn.

    Attributes:
        html: In which users' words are escaped.
        sequence: How many events the study had.
        seconds: How long it took.
        params: The recommended input, if it is about that.
    """

    html: str
    sequence: int
    seconds: float = 0.0
    params: Params | None = None


def draw_what_is_asked(connection: Connection, url: str, trust: bool) -> None:
    """Answer requests, each a study, what to draw and its options, until nobody asks any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever asks decides when to stop
    with suppress(OSError):
        os.nice(_NICENESS)
    drawer = _Drawer(Database(url, read_only=True), trust)
    with suppress(EOFError, BrokenPipeError):
        while True:
            connection.send(drawer.draw(*connection.recv()))


@final
class _Drawer:
    """Studies that are open, with what is known of them."""

    def __init__(self, database: Database, trust: bool) -> None:
        self._database, self._trust = database, trust
        self._views: dict[str, StudyView] = {}
        self._sources: dict[str, tuple[int, Source]] = {}

    def draw(self, study: int, what: str, options: dict[str, Any]) -> Drawing:
        sequence = -1
        try:
            record = study_record(self._database, study)
            sequence = study_sequence(self._database, study) or 0
            if record is None:
                return Drawing("<p>This study is gone.</p>", sequence)
            html, params = _drawn(self._source(record, sequence), what, options)
            return Drawing(html, sequence, params=params)
        except CalamintError as error:
            return Drawing(f'<p role="alert">{escape(_sentence(str(error)))}</p>', sequence)
        except Exception as error:  # the page says so, and the server goes on
            said = f"{type(error).__name__}: {error}"
            return Drawing(f'<p role="alert">This failed. {escape(said)}</p>', sequence)

    def _source(self, record: StudyRecord, sequence: int) -> Source:
        known = self._sources.get(record.uid)
        if known is None or known[0] != sequence:
            view = self._views.get(record.uid)
            if view is None:
                view = StudyView.of(self._database, record.name, trust=self._trust)
                self._views[record.uid] = view
            known = sequence, read_source(view)
            self._sources[record.uid] = known
        return known[1]


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _drawn(source: Source, what: str, options: dict[str, Any]) -> tuple[str, Params | None]:
    if what == "recommendation":
        best = None if source.history_is_empty else source.recommendation.params
        return recommendation_section(source), best
    if what == "belief":
        return _belief(source, **options), None
    return plot_section(PLOTS[what](source, **options)), None


def _belief(source: Source, at: Params | None, along: list[str]) -> str:
    """What is believed over one or two parameters, and the bits beside it."""
    if len(along) == 1:
        return plot_section(PLOTS["slices"](source, at=at, parameters=along))
    plot = PLOTS["contours"](source, at=at, parameters=along)
    views = plot.views
    assert views is not None
    told = [i for i, shown in enumerate(plot.controls[0].options) if str(shown).startswith("bits")]
    # Of the function that is expected to yield most.
    most = max(told, key=lambda each: float(np.max(views[each, 0].traces[0]["z"])))
    bits = replace(
        plot,
        name="gains",
        title="Expected information gain",
        caption="Bits that a measurement is expected to yield about the constrained optimum, over"
        " the same inputs.",
        figure=views[most, 0].as_figure(),
        chosen=(most, 0),
    )
    return f'<div class="beside">{plot_section(plot)}{plot_section(bits)}</div>'
