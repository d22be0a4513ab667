"""`make run` prints what it promises."""

import pytest

from calamint.show import demo


def test_the_demo_shows_evaluations_recommendation_and_truth(capsys):
    demo.main(["--evaluations", "12"])
    shown = capsys.readouterr().out
    assert "predictive entropy search" in shown
    assert "12/12" in shown
    assert "bits (" in shown
    assert "Measured: f " in shown
    for word in ("expected objective", "probability of being feasible", "true answer", "0.599788"):
        assert word in shown


@pytest.mark.parametrize("count", ["0", "-3"])
def test_bad_counts_are_refused(count, capsys):
    with pytest.raises(SystemExit):
        demo.main(["--evaluations", count])
    assert "at least 1" in capsys.readouterr().err
