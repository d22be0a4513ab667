"""The package as a whole: what it exports, and that importing it loads nothing heavy."""

import subprocess
import sys
from importlib.metadata import version

import pytest

import calamint


def test_exports_are_there():
    for name in calamint.__all__:
        assert getattr(calamint, name).__name__.split(".")[-1] == name
        assert name in dir(calamint)
    assert calamint.__version__ == version("calamint")


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="Probelm"):
        _ = calamint.Probelm


def test_importing_loads_nothing_heavy():
    code = (
        "import sys, calamint; print(*(m for m in ('numpy', 'scipy', 'rich') if m in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_the_status_of_a_study_loads_no_models(tmp_path):
    storage = f"sqlite:///{tmp_path}/study.db"
    problem = calamint.Problem({"x": calamint.Real(0, 1)}, minimize="f")
    calamint.Study(problem, storage).database.close()
    code = (
        "import sys; from calamint.show.cli.app import app; import calamint.show.cli.status;"
        f"app(['status', '--storage', {storage!r}], standalone_mode=False);"
        "print('loaded:', *(m for m in ('scipy', 'calamint.model') if m in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith("loaded:")
