"""The shape of the source: files that fit in the head, no base class for one class, no import that
hides a cycle."""

import ast
import importlib
from collections import Counter
from pathlib import Path

import calamint

ROOT = Path(calamint.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
TREES = {path.relative_to(ROOT).as_posix(): ast.parse(path.read_text()) for path in FILES}


def test_no_file_has_more_than_400_lines():
    long = {path.name: len(path.read_text().splitlines()) for path in FILES}
    assert {name: count for name, count in long.items() if count > 400} == {}


def test_no_base_class_has_one_subclass():
    """But for classes that are used themselves, and roots of what users may extend."""
    used_themselves = {
        "Clock",
        "AccessError",
        "CalamintError",
        "ProblemError",
        "StorageError",
        "StudyEditor",
        "StudyView",
        "Watcher",
    }
    classes = [node for tree in TREES.values() for node in ast.walk(tree)]
    classes = [node for node in classes if isinstance(node, ast.ClassDef)]
    own = {node.name for node in classes}
    bases = Counter(ast.unparse(base) for node in classes for base in node.bases)
    alone = {name for name, count in bases.items() if count == 1 and name in own}
    assert alone - used_themselves == set()


def test_nothing_asks_what_kind_of_process_it_has():
    kinds = {"Posterior", "KnownFunction", "Paths", "KnownPaths", "PosteriorJoint", "KnownJoint"}
    for name, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance":
                words = {each.id for each in ast.walk(node.args[1]) if isinstance(each, ast.Name)}
                assert not words & kinds, name


def test_no_import_inside_a_function_breaks_a_cycle():
    """What is loaded late, for its cost, is of others; but for specs, which load pydantic."""
    late = set()
    for name, tree in TREES.items():
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
        for node in (node for function in functions for node in ast.walk(function)):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("calamint"):
                late.add((name, ast.unparse(node)))
    assert late == {("problem/problem.py", "from calamint.problem import spec")}


def test_no_room_exports_a_name_that_is_also_a_file():
    """A file that is imported takes the place of what the room exports lazily."""
    for room in ("problem", "model", "acquire", "decide", "run", "show"):
        files = {path.stem for path in (ROOT / room).iterdir()}
        exported = set(importlib.import_module(f"calamint.{room}").__all__)
        assert exported & files <= {"feasibility", "plots"}  # modules that are exported themselves
