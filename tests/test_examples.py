"""The examples run as they stand, and find what they are to find."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def load(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def test_every_example_is_tested():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {
        "balancing",
        "lab_tests",
        "profit_and_risk",
        "sampler",
        "small_network",
        "track_with_mlflow",
        "track_with_wandb",
        "train_and_profile",
    }


def test_profit_and_risk(capsys):
    example = load("profit_and_risk")
    best = example.main(evaluations=14)
    years = example.shop(best.params, seed=5, years=100)
    # A grid in steps of 6 and 30 finds 67.4 euros a day at best.
    assert years["profit"][0] > 66.4
    assert years["empty_days"][0] < 0.01
    assert "Recommended" in capsys.readouterr().out


def test_train_and_profile(capsys):
    example = load("train_and_profile")
    best = example.main(jobs=20)
    # Times are real, so it is not the same network every time; but one of the fast ones.
    assert example.profile(best.params)["log_time"] < -0.5
    assert 0 <= example.train(best.params)["error"] < 0.6
    assert "run profile on spare" in capsys.readouterr().out


def test_lab_tests(capsys):
    example = load("lab_tests")
    best = example.main(weeks=1.5)
    truth = example.nature(best.params)
    assert truth["efficiency"] > 19
    assert truth["residue"] < 0.12
    assert "days of efficiency" in capsys.readouterr().out


def test_balancing(capsys):
    example = load("balancing")
    best = example.main(trials=22)
    truth = example.trial(best.params)  # does not fall
    # A grid of 14 by 14 finds 16 at best with a cool motor, and 38 at worst around its best tenth.
    assert truth["sway"] < 40
    assert truth["motor_cool"]
    assert "the pole fell" in capsys.readouterr().out


def test_sampler(capsys):
    example = load("sampler")
    best = example.main(runs=16)
    again = [example.run(best.params, seed) for seed in range(100, 105)]  # none diverges
    # Of 60 runs at random inputs, the chains of 22 agree; the best has 427 draws.
    assert np.median([np.exp(found["log_size"]) for found in again]) > 100
    assert np.median([found["r_hat"] for found in again]) < 1.1
    assert "the integrator diverged" in capsys.readouterr().out


def test_small_network(capsys):
    example = load("small_network")
    best = example.main(trainings=14)
    assert example.multiplications(best.params) <= 2000
    assert example.train(best.params)["error"] < 50  # at random 90
    assert "bits are expected" in capsys.readouterr().out


def test_track_with_mlflow(tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow", reason="mlflow is not installed")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(EXAMPLES)  # workers import it
    load("track_with_mlflow").main(evaluations=5)
    runs = mlflow.search_runs(experiment_names=["calamint"])
    assert len(runs) == 5
    assert runs["metrics.load"].notna().all()


def test_track_with_wandb(tmp_path, monkeypatch):
    pytest.importorskip("wandb", reason="wandb is not installed")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.syspath_prepend(EXAMPLES)
    load("track_with_wandb").main(evaluations=5)
    assert list((tmp_path / "wandb").glob("offline-run-*/*.wandb"))
