"""Measurements as tables: CSV, JSON, pandas, and what is wrong with them."""

import json

import openpyxl
import pytest
from tests.run.cases import decoupled, quick, values_of

import calamint as cm
from calamint.run import Imported

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
        assert again.add_table(source).added == 3
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
    assert study.add_table(str(tmp_path / "b.csv")).added == 1


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
    assert again.add_table(frame).added == 3
    assert [r.values for r in again.history] == [r.values for r in study.history]
    assert len(study.gains(frame[["x", "y"]])["f"]) == 3


def test_the_same_rows_twice_are_skipped(tmp_path):
    study = quick(cm.Problem({"x": cm.Real(0, 1)}, minimize="cost", constraints=["ok"]))
    (tmp_path / "a.csv").write_text("x,cost,cost_sem,ok\n0.5,1,0.25,yes\n0.6,,,no\n0.6,,,no\n")
    assert study.add_table(tmp_path / "a.csv") == Imported(3, 0)
    assert study.add_table(tmp_path / "a.csv") == Imported(0, 3)
    (tmp_path / "b.csv").write_text("x,cost,cost_sem,ok\n0.5,1,0.25,yes\n0.5,1,0.5,yes\n")
    assert study.add_table(tmp_path / "b.csv") == Imported(1, 1)
    assert study.add_table(tmp_path / "a.csv", again=True) == Imported(3, 0)
    assert len(study.history) == 7


def test_other_columns_are_ignored_or_kept_as_notes(tmp_path):
    (tmp_path / "a.csv").write_text("x,cost,who,when\n0.5,1,Ann,=1+1\n0.6,2,,Monday\n")
    study = quick(ONE)
    with pytest.raises(cm.ProblemError, match="extra='ignore'"):
        study.add_table(tmp_path / "a.csv")
    assert study.add_table(tmp_path / "a.csv", extra="ignore").added == 2
    assert [record.notes for record in study.history] == [{}, {}]
    noted = quick(ONE)
    noted.add_table(tmp_path / "a.csv", extra="notes")
    again = cm.Study.load(noted.database)
    assert [record.notes for record in again.history] == [
        {"who": "Ann", "when": "=1+1"},
        {"when": "Monday"},
    ]
    noted.to_csv(tmp_path / "b.csv")
    text = (tmp_path / "b.csv").read_text().splitlines()
    assert text[0] == "task,x,cost,seconds,when,who"
    assert "'=1+1" in text[1]


@pytest.mark.parametrize("separator", [";", "\t"])
def test_tables_as_europe_writes_them(tmp_path, separator):
    rows = ["x;cost;ok", "0,5;96,3;pass", "6e-1;-1,5e2;Fail", "0.75;3;1", "0,25;;TRUE"]
    (tmp_path / "a.csv").write_text("\n".join(rows).replace(";", separator))
    study = quick(cm.Problem({"x": cm.Real(0, 1)}, minimize="cost", constraints=["ok"]))
    study.add_table(tmp_path / "a.csv")
    assert [(r.params["x"], r.values) for r in study.history] == [
        (0.5, {"cost": 96.3, "ok": True}),
        (0.6, {"cost": -150.0, "ok": False}),
        (0.75, {"cost": 3.0, "ok": True}),
        (0.25, {"ok": True}),
    ]


def test_a_comma_in_a_table_with_commas_is_no_number(tmp_path):
    (tmp_path / "a.csv").write_text('x,cost\n0.5,"96,3"\n')
    with pytest.raises(cm.ResultError, match="'96,3'"):
        quick(ONE).add_table(tmp_path / "a.csv")


def test_excel_files(tmp_path):
    book = openpyxl.Workbook()
    for row in (("x", "cost", None, "kind"), (0.5, 1.5, None, "b"), (None,), (0.25, None, 3, "a")):
        book.active.append(row)
    book.save(tmp_path / "a.xlsx")
    problem = cm.Problem({"x": cm.Real(0, 1), "kind": cm.Choice("a", "b")}, minimize="cost")
    study = quick(problem)
    with pytest.raises(cm.ResultError, match="row 2"):
        study.add_table(tmp_path / "a.xlsx")
    book.active.delete_rows(4)
    book.save(tmp_path / "a.xlsx")
    assert study.add_table(tmp_path / "a.xlsx") == Imported(1, 0)
    assert study.history[0].params == {"x": 0.5, "kind": "b"}
    (tmp_path / "b.xlsx").write_text("no book")
    with pytest.raises(cm.ProblemError, match="cannot be read"):
        study.add_table(tmp_path / "b.xlsx")
