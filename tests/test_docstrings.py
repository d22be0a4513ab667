"""Docstrings of what is exported: a summary, and a line for every argument, so that a reference can
be generated."""

import inspect

import pytest

import calamint as cm

CLASSES = [name for name in cm.__all__ if inspect.isclass(getattr(cm, name))]


def documented(docstring, names):
    """Which arguments have no line of their own."""
    return [name for name in names if f"{name}:" not in (docstring or "")]


def arguments(function):
    return [name for name in inspect.signature(function).parameters if name not in ("self", "cls")]


@pytest.mark.parametrize("name", CLASSES)
def test_public_methods_have_a_summary_line(name):
    kind = getattr(cm, name)
    assert kind.__doc__, name
    for member, value in vars(kind).items():
        if not member.startswith("_") and inspect.isfunction(value):
            first = (value.__doc__ or inspect.getdoc(getattr(kind, member)) or "").strip()
            # Overridden methods are documented where they are declared.
            overrides = any(member in vars(base) for base in kind.__mro__[1:])
            assert first or overrides, f"{name}.{member}"


@pytest.mark.parametrize(
    ("kind", "method"),
    [
        (cm.Optimizer, "ask"),
        (cm.Optimizer, "tell"),
        (cm.Optimizer, "fail"),
        (cm.Optimizer, "add"),
        (cm.Optimizer, "predict"),
        (cm.Optimizer, "gains"),
        (cm.Optimizer, "recommend"),
        (cm.Study, "load"),
        (cm.Study, "ask"),
        (cm.Study, "run"),
        (cm.Study, "tell"),
    ],
    ids=lambda each: each if isinstance(each, str) else each.__name__,
)
def test_arguments_are_documented(kind, method):
    function = getattr(kind, method)
    assert documented(function.__doc__, arguments(function)) == []


def test_settings_are_documented_once_and_optimize_in_full():
    assert documented(cm.Settings.__doc__, cm.Settings.__dataclass_fields__) == []
    assert documented(cm.optimize.__doc__, arguments(cm.optimize)) == []
    own = {"problem", "storage", "name", "clock"}
    for kind in (cm.Optimizer, cm.Study):
        rest = set(documented(kind.__doc__, arguments(kind)))
        assert rest <= set(cm.Settings.__dataclass_fields__)
        assert "`Settings`" in kind.__doc__
        assert set(arguments(kind)) - rest <= own
