"""`make run` prints what it promises."""

from calamint.show import demo


def test_the_demo_shows_evaluations_recommendation_and_truth(capsys):
    demo.main(["--evaluations", "16"])
    shown = capsys.readouterr().out
    assert "space-filling design" in shown
    assert "16/16" in shown
    for word in ("expected objective", "probability of being feasible", "true answer", "0.5998"):
        assert word in shown
