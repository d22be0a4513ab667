"""Figures have what they promise, and files are written where they can be."""

import shutil

import numpy as np
import pytest

import calamint as cm
from calamint.acquire import ACQUISITIONS


def optimizer(**changes):
    stated = {"space": {"x": cm.Real(2, 4)}, "maximize": "f", "constraints": ["-1 <= c <= 1"]}
    made = cm.Optimizer(
        cm.Problem(**{**stated, **changes}), model=cm.Model(hyperparameters="map"), seed=0
    )
    for x in (2.2, 2.9, 3.3, 3.8):
        made.add({"x": x}, {"f": 10 + np.sin(3 * x), "c": np.cos(2 * x)})
    return made


def test_ten_panels_in_the_users_units():
    figure = cm.plots.explain_1d(optimizer(), points=50)
    titles = [annotation.text for annotation in figure.layout.annotations]
    assert [title[0] for title in titles] == list("ABCDEFGHIJ")
    traces = figure.data
    paths = [trace for trace in traces if trace.x is not None and len(trace.x) == 50]
    assert len(paths) == 10
    assert min(paths[0].x) == 2
    assert max(paths[0].x) == 4
    # The surrogate about f is drawn around its own values, and not with the sign turned.
    believed = paths[1]
    assert 8 < np.mean(believed.y) < 12
    measured = [trace for trace in traces if trace.mode == "markers"]
    assert len(measured) == 6
    assert sorted(measured[0].x) == [2.2, 2.9, 3.3, 3.8]
    assert np.all(np.isfinite(np.concatenate([np.asarray(trace.y, float) for trace in paths])))


def test_bits_are_those_of_gains():
    made = optimizer()
    figure = cm.plots.explain_1d(made, points=50)
    averaged = [trace for trace in figure.data if len(trace.x) == 50][4]
    gains = made.gains([{"x": x} for x in averaged.x])
    assert np.allclose(averaged.y, gains["f"], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: cm.plots.explain_1d(optimizer(), solution=99), ["solution is 99"]),
        (
            lambda: cm.plots.explain_1d(
                cm.Optimizer(cm.Problem({"x": cm.Real(0, 1), "y": cm.Real(0, 1)}, minimize="f"))
            ),
            ["one real parameter", "has 2"],
        ),
    ],
)
def test_what_cannot_be_drawn_gets_a_sentence(make, words):
    with pytest.raises(cm.ProblemError) as error:
        make()
    for word in words:
        assert word in str(error.value)


def test_files_are_written_or_the_remedy_is_named(tmp_path):
    figure = cm.plots.explain_1d(optimizer(), points=30)
    page = cm.plots.save(figure, tmp_path / "explain.html")
    assert "plotly" in page.read_text()[:100_000].lower()
    with pytest.raises(cm.ProblemError, match=r"\.html, \.png or \.svg"):
        cm.plots.save(figure, tmp_path / "explain.jpeg2000")
    browsers = ("chromium", "chromium-browser", "google-chrome", "chrome")
    if any(shutil.which(browser) for browser in browsers):
        assert cm.plots.save(figure, tmp_path / "explain.png").stat().st_size > 10_000
    else:
        with pytest.raises(cm.ProblemError, match="Chromium"):
            cm.plots.save(figure, tmp_path / "explain.png")


def test_every_method_is_drawn_on_the_same_surrogate():
    figure = cm.plots.compare_1d(optimizer(), points=60)
    titles = [annotation.text for annotation in figure.layout.annotations]
    assert titles[:3] == ["f", "c", "pesc"]
    assert set(titles[2:]) == set(ACQUISITIONS) - {"random", "eicd"}
    shares = [t.y for t in figure.data if t.type == "scatter" and t.line.color == "#b3541e"]
    assert len(shares) == len(titles) - 3  # Thompson sampling has a histogram
    for share in shares:
        assert np.all(np.isfinite(share))
        assert np.max(share) == pytest.approx(1.0)
    drawn = next(t.x for t in figure.data if t.type == "histogram")
    assert len(drawn) == 200
    assert 2 <= min(drawn) <= max(drawn) <= 4
