"""A report says what was asked, found and spent, and has every plot with its data."""

import json
import re
from html.parser import HTMLParser

import pytest
from tests.show import studies
from tests.show.studies import HOSTILE, decoupled, problem
from typer.testing import CliRunner

import calamint as cm
from calamint.show import write_report
from calamint.show.cli import main as command_line
from calamint.show.plots.source import read_source
from calamint.show.report import next_steps


class Page(HTMLParser):
    """The words of a page outside of scripts, its scripts, and what it refers to."""

    def __init__(self, text):
        super().__init__()
        self.words, self.scripts, self.links, self.sections = [], [], [], []
        self._inside = ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self._inside = tag
        given = dict(attrs)
        self.links += [given[name] for name in ("src", "href") if name in given]
        if tag == "section":
            self.sections.append(given.get("id"))

    def handle_endtag(self, tag):
        self._inside = ""

    def handle_data(self, data):
        (self.scripts if self._inside == "script" else self.words).append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "study.html"
    said = []
    assert write_report(decoupled(), path, said.append) == path
    assert said[:2] == ["progress", "trade_off"]
    return path


def test_a_report_says_it_in_words(report):
    page = Page(report.read_text())
    best, seen = decoupled().recommend(), decoupled().recommend(kind="observed")
    used, other = (
        ", ".join(f"{name} = {value:.6g}" for name, value in each.params.items())
        for each in (seen, best)
    )
    met = "every function was measured there and every limit was met"
    assert f"Use {used}: {met}; f = {seen.objective:.6g}." in page.text
    assert f"By the model, {other} is no better than can be told from the data." in page.text
    assert "Minimise f over" in page.text
    counted = decoupled().summary().evaluations
    assert f"evaluations by price {counted['price']}" in page.text
    assert "of them failed" in page.text
    assert "c >= 0.3 binds" in page.text
    assert "d <= 5.0 does not bind" in page.text
    assert "What to do next" in page.text


def test_a_report_has_every_plot_with_a_table(report):
    page = Page(report.read_text())
    expected = [name for name in cm.plots.PLOTS if name != "compare"]  # needs one parameter
    assert page.sections == expected
    assert re.findall(r'<details id="(\w+)-data">', report.read_text()) == expected
    contents = [json.loads(text) for text in page.scripts if text.startswith('{"views"')]
    assert len(contents) == len(expected)
    for content in contents:
        for traces, layout in content["views"].values():
            assert max(traces, default=0) < len(content["traces"])
            assert layout < len(content["layouts"])
        assert ",".join(map(str, content["chosen"])) in content["views"]


def test_a_report_refers_to_nothing_elsewhere(report):
    page = Page(report.read_text())
    assert all(link.startswith("#") for link in page.links)
    assert "default-src 'none'" in report.read_text()
    assert report.read_text().count("plotly.js v") == 1  # inlined, once


def test_hostile_words_are_shown_as_they_are(tmp_path):
    study = studies.hostile()
    text = write_report(study, tmp_path / "a.html").read_text()
    page = Page(text)
    assert f"Study {HOSTILE['markup']}" in page.text
    assert text.count("<script>") == 2  # Plotly's, and the page's
    assert not re.search(r"<script>alert", text)


def test_a_report_of_nothing(tmp_path):
    study = cm.Study(problem())
    page = Page(write_report(study, tmp_path / "a.html").read_text())
    assert "Nothing has been measured yet." in page.text
    assert "Ask for jobs, run them" in page.text
    with pytest.raises(cm.ProblemError, match=r"ends in \.html"):
        study.report(tmp_path / "a.pdf")
    with pytest.raises(cm.ProblemError, match="write a Study"):
        write_report(cm.Optimizer(problem()), tmp_path / "a.html")


def test_the_next_steps_are_those_that_the_study_needs():
    study = cm.Study(problem(), seed=0, acquisition="random")
    job = study.ask(task="price", lease=1.0)
    by_hand = "One job is running. If you run it by hand, report its results when it ends."
    assert next_steps(read_source(study))[0] == by_hand
    study.tell(job, {"f": 1.0})
    steps = " ".join(next_steps(read_source(study)))
    assert "Confirm the recommendation before you rely on it" in steps
    assert "No input is feasible with the probability" in steps
    confirmed = cm.Study(cm.Problem({"x": cm.Real(0, 1)}, minimize="f"), seed=0)
    for x in (0.0, 0.4, 0.5, 0.6, 1.0):
        confirmed.add({"x": x}, {"f": (x - 0.5) ** 2})
    steps = " ".join(next_steps(read_source(confirmed)))
    assert "feasible" not in steps


def test_plots_and_reports_from_the_command_line(tmp_path):
    url = f"sqlite:///{tmp_path / 'a.db'}"
    study = cm.Study(problem(), url, seed=0, acquisition="random")
    for _ in range(6):
        job = study.ask()
        found = studies.truth(job.params)
        study.tell(job, {name: found[name] for name in study.problem.tasks[job.task].measures})
    runner = CliRunner()

    def call(*words):
        return runner.invoke(command_line.app, [*words, "--storage", url])

    done = call("plot", "trade-off", "-o", str(tmp_path / "t.html"))
    assert done.exit_code == 0, done.output
    assert "t.html: Trade-off: f against the limits" in done.output
    assert "Trade-off" in (tmp_path / "t.html").read_text()
    done = call("report", "-o", str(tmp_path / "r.html"))
    assert done.exit_code == 0, done.output
    assert Page((tmp_path / "r.html").read_text()).sections[0] == "progress"
    wrong = call("plot", "progres")
    assert isinstance(wrong.exception, cm.ProblemError)
    assert "did you mean 'progress'" in str(wrong.exception)


def test_the_command_line_knows_every_plot():
    from calamint.show.cli import plot

    assert tuple(cm.plots.PLOTS) == plot._NAMES


def test_limits_that_were_met_by_chance_are_said_to_be(tmp_path):
    stated = cm.Problem({"kind": cm.Choice("a", "b")}, minimize="f", constraints=["g <= 1"])
    study = cm.Study(stated, seed=0, model=cm.Model(hyperparameters="map"))
    study.add({"kind": "a"}, {"f": 1.0, "g": (0.9, 20.0)})
    study.add({"kind": "b"}, {"f": 2.0, "g": (50.0, 0.1)})
    study.add({"kind": "b"}, {"f": 2.0, "g": (51.0, 0.1)})
    page = Page(study.report(tmp_path / "a.html").read_text())
    assert "the model takes that for chance" in page.text
    assert "The best confirmed input" not in page.text


def noisy(study, far):
    """Confirmed at 0.3; what is better is expected where only the objective was measured."""
    for x in (0.0, 0.3, 0.3, 0.6, 1.0):
        study.add({"x": x}, {"f": (x, 0.2), "g": x})
    for x in (0.24, 0.25, 0.26):
        study.add({"x": x}, {"f": (x - far, 0.2 if far == 0 else 0.001)})
    return study


@pytest.mark.parametrize("far", [0.0, 2.0])
def test_a_confirmed_input_is_recommended_unless_another_is_known_to_be_better(far, tmp_path):
    stated = cm.Problem({"x": cm.Real(0, 1)}, minimize="f", constraints=["g >= 0.2"])
    study = noisy(cm.Study(stated, seed=0, model=cm.Model(hyperparameters="map")), far)
    best = study.recommend()
    assert not best.confirmed
    page = Page(study.report(tmp_path / "a.html").read_text()).text
    is_as_good = far == 0
    used = "Use x = 0.3: every function was measured there and every limit was met; f = "
    assert (used in page) == is_as_good
    assert ("is no better than can be told from the data." in page) == is_as_good
    assert ("Confirm the recommendation" in page) != is_as_good
    why = "some functions have not been measured there, or a limit was missed."
    assert (f"It is not confirmed: {why}" in page) != is_as_good
    assert (f"expected to have f = {best.objective:.6g}" in page) != is_as_good
    assert (f"probability of {best.probability:.3g}" in page) != is_as_good
    assert ("The best confirmed input is x = 0.3" in page) != is_as_good


def test_a_limit_binds_at_any_scale(tmp_path):
    stated = cm.Problem({"x": cm.Real(0, 1)}, minimize="f", constraints=["g >= 0.5"])
    study = cm.Study(stated, seed=0, model=cm.Model(hyperparameters="map"))
    for x in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0):
        study.add({"x": x}, {"f": 1e-12 * x, "g": x})
    page = Page(study.report(tmp_path / "a.html").read_text())
    assert "g >= 0.5 binds" in page.text


def test_parameters_that_cannot_be_explained_have_no_section_for_it(tmp_path):
    stated = cm.Problem({"n": cm.Integer(1, 9)}, minimize="f")
    study = cm.Study(stated, seed=0, model=cm.Model(hyperparameters="map"))
    for n in (1, 4, 9):
        study.add({"n": n}, {"f": float(n)})
    page = Page(study.report(tmp_path / "a.html").read_text())
    assert "explain" not in page.sections
    assert "compare" not in page.sections
