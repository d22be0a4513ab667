"""The gap harness: repetitions, resuming, torn files, medians and intervals."""

import numpy as np
import pytest

import harness
from calamint.testbed import toy
from rows import append


class Guess:
    """Uniform guesses; recommends the best feasible one."""

    def __init__(self, solved, seed):
        self.solved, self.rng = solved, np.random.default_rng(seed)
        self.best = None

    def ask(self):
        return "evaluate", self.solved.problem.space.decode(self.rng.random(2))

    def tell(self, task, params, values):
        assert task == "evaluate"
        met = all(limit.met(values[limit.name]) for limit in self.solved.problem.constraints)
        if met and (self.best is None or values["f"] < self.best[0]):
            self.best = values["f"], params

    def recommend(self):
        return self.best and self.best[1]


class Broken(Guess):
    def ask(self):
        if self.rng.bit_generator.seed_seq.entropy == 1:
            raise RuntimeError("no idea")
        return super().ask()


def coupled_toy(seed):
    return toy().coupled()


ENTRY = harness.Entry("toy", "guess", coupled_toy, Guess, evaluations=12)


def test_a_run_is_recorded_resumed_and_reproduced(tmp_path):
    path = tmp_path / "gaps.csv"
    said = []
    first = harness.run([ENTRY], range(2), path, processes=2, say=said.append)
    assert len(first) == 24
    assert "0 repetitions are there, 2 to run" in said[0]
    text = path.read_text()

    again = harness.run([ENTRY], range(2), path, processes=2, say=said.append)
    assert path.read_text() == text
    assert again == first
    assert "2 repetitions are there, 0 to run" in said[-1]

    more = harness.run([ENTRY], range(3), path, processes=2, say=said.append)
    assert path.read_text().startswith(text)
    assert {row.seed for row in more} == {0, 1, 2}

    fresh = harness.repetition(ENTRY, 1)
    kept = [row for row in first if row.seed == 1]
    assert [row.params for row in fresh] == [row.params for row in kept]
    assert [row.gap for row in fresh] == [row.gap for row in kept]


def test_a_file_torn_anywhere_keeps_whole_rows_and_what_comes_after(tmp_path):
    path = tmp_path / "gaps.csv"
    rows = harness.repetition(ENTRY, 0)[:3]
    append(path, rows)
    text = path.read_text()
    others = harness.repetition(ENTRY, 1)[:2]
    for cut in range(len(text)):
        path.write_text(text[:cut])
        kept = harness.read(path)
        assert kept == rows[: len(kept)]
        assert len(kept) == max(0, text[:cut].count("\n") - 1)
        append(path, others)
        assert harness.read(path) == kept + others


def test_a_torn_file_is_completed(tmp_path):
    path = tmp_path / "gaps.csv"
    whole = harness.repetition(ENTRY, 0)
    append(path, whole)
    path.write_text(path.read_text()[:-40])  # the last row is cut in the middle
    assert len(harness.read(path)) == 11
    rows = harness.run([ENTRY], [0], path, processes=1, say=lambda _: None)
    assert sorted(row.evaluation for row in rows) == list(range(1, 13))
    assert [row.gap for row in sorted(rows, key=lambda r: r.evaluation)] == [
        row.gap for row in whole
    ]


def test_one_failing_repetition_does_not_stop_the_others(tmp_path):
    said = []
    entry = harness.Entry("toy", "broken", coupled_toy, Broken, evaluations=3)
    rows = harness.run([entry], range(3), tmp_path / "gaps.csv", processes=2, say=said.append)
    assert {row.seed for row in rows} == {0, 2}
    assert any("FAILED" in line and "no idea" in line for line in said)


def row(seed, gap, evaluation=5, **changes):
    stated = {
        "problem": "toy",
        "method": "guess",
        "seed": seed,
        "evaluation": evaluation,
        "measurements": 3 * evaluation,
        "task": "evaluate",
        "params": "{}",
        "values": "{}",
        "recommended": "{}",
        "feasible": gap < 1,
        "gap": gap,
        "seconds": 0.5,
    }
    return harness.Row(**{**stated, **changes})


def test_summaries_are_medians_with_intervals():
    gaps = np.random.default_rng(0).exponential(size=101)
    rows = [row(seed, gap) for seed, gap in enumerate(gaps)]
    (summary,) = harness.summarise(rows, at=[5, 7])
    assert summary.median == np.median(gaps)
    assert summary.repetitions == 101
    assert summary.infeasible == pytest.approx(np.mean(gaps >= 1))
    # The order statistics that bound a median at 95 % (normal approximation of the binomial).
    ordered = np.sort(gaps)
    margin = 1.96 * np.sqrt(101) / 2
    assert ordered[int(50 - margin - 4)] <= summary.low <= ordered[int(50 - margin + 4)]
    assert ordered[int(50 + margin - 4)] <= summary.high <= ordered[int(50 + margin + 4)]
    assert "| toy | guess | 5 | 101 |" in harness.table([summary])


def test_groups_are_kept_apart():
    rows = [row(0, 1.0), row(0, 2.0, evaluation=6), row(0, 3.0, method="other")]
    summaries = harness.summarise(rows, at=[5, 6])
    assert [(s.method, s.evaluation, s.median) for s in summaries] == [
        ("guess", 5, 1.0),
        ("guess", 6, 2.0),
        ("other", 5, 3.0),
    ]
