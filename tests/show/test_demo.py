"""`make run` prints what it promises, and goes on when it is run again."""

import pytest

from calamint.show import demo


def test_the_demo_runs_a_study_and_resumes_it(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    demo.main(["--evaluations", "20"])
    shown = capsys.readouterr().out
    assert "entropy search with constraints" in shown
    assert "20/20" in shown
    assert "bits were expected" in shown
    for word in (
        "objective",
        "confirmed",
        "probability of being feasible",
        "true answer",
        "0.599788",
    ):
        assert word in shown
    assert "sqlite:///runs/toy.db" in shown
    assert (tmp_path / "runs" / "toy.db").exists()
    demo.main(["--evaluations", "22"])
    shown = capsys.readouterr().out
    assert "goes on after 20 evaluations" in shown
    assert "22/22" in shown
    assert "20/22" not in shown


@pytest.mark.parametrize("count", ["0", "-3"])
def test_bad_counts_are_refused(count, capsys):
    with pytest.raises(SystemExit):
        demo.main(["--evaluations", count])
    assert "at least 1" in capsys.readouterr().err
