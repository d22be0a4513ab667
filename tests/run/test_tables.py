"""Measurements as tables: CSV, JSON, pandas, and what is wrong with them."""

import json

import pytest
from tests.run.cases import decoupled, quick, values_of

import calamint as cm

ONE = cm.Problem({"x": cm.Real(0, 1)}, minimize="cost")


def test_tables_come_back_as_they_were(tmp_path):
    problem = cm.Problem(
        {
            "n": cm.Integer(2**53, 2**53 + 10),
            "kind": cm.Choice("a, b", 'say "x"', 3, True),
            "x": cm.Real(0, 1),
        },
        maximize="seconds",
        constraints=["load <= 1", "load_sem <= 3", "works"],
    )
    study = quick(problem)
    rows = [
        ({"n": 2**53 + 1, "kind": "a, b", "x": 0.1}, {"seconds": (1.5, 0.25), "works": True}),
        ({"n": 2**53 + 3, "kind": 3, "x": 1 / 3}, {"load": 0.5, "load_sem": 2.0, "works": False}),
        ({"n": 2**53 + 5, "kind": True, "x": 1e-17}, {"seconds": 123.0}),
    ]
    study.add_all(rows)
    study.to_csv(tmp_path / "m.csv")
    (tmp_path / "m.json").write_text(json.dumps(study.table()))
    for source in (tmp_path / "m.csv", tmp_path / "m.json", study.table()):
        again = quick(problem)
        assert again.add_table(source) == 3
        assert [(r.params, r.values, r.sem) for r in again.history] == [
            (r.params, r.values, r.sem) for r in study.history
        ]
    assert study.history[0].sem == {"seconds": 0.25}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x,cost\n0.5,zz\n0.6,1\n", "row 1: .*'zz'"),
        ("x,cots\n0.5,1\n", "did you mean 'cost'"),
        ("cost\n1\n", "row 1 of the table has no 'x'"),
        ("x,cost\n7,1\n", "x is 7"),
    ],
)
def test_tables_that_are_wrong_change_nothing(tmp_path, text, words):
    (tmp_path / "t.csv").write_text(text)
    study = quick(ONE)
    with pytest.raises(cm.ProblemError, match=words):
        study.add_table(tmp_path / "t.csv")
    assert study.history == []


def test_a_latin_1_table_and_a_byte_order_mark(tmp_path):
    study = quick(ONE)
    (tmp_path / "a.csv").write_bytes("x,cost,ä\n".encode("latin-1"))
    with pytest.raises(cm.ProblemError, match="cannot be read"):
        study.add_table(tmp_path / "a.csv")
    (tmp_path / "b.csv").write_bytes(b"\xef\xbb\xbfx,cost\n0.5,1\n")
    assert study.add_table(str(tmp_path / "b.csv")) == 1


def test_pandas_in_and_out():
    pandas = pytest.importorskip("pandas")
    study = quick()
    for _ in range(3):
        asked = study.ask()
        study.tell(asked, values_of(asked.task, asked.params))
    frame = study.to_pandas()
    assert list(frame.columns) == ["task", "x", "y", "f", "c", "seconds"]
    assert isinstance(frame, pandas.DataFrame)
    again = cm.Study(decoupled(), acquisition="random")
    assert again.add_table(frame) == 3
    assert [r.values for r in again.history] == [r.values for r in study.history]
    assert len(study.gains(frame[["x", "y"]])["f"]) == 3
