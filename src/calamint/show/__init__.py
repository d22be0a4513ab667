"""Telling people: displays, plots and reports.

Loaded when first used: plots need Plotly, and the display needs Rich.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from calamint.show import plots
    from calamint.show.live import Live

__all__ = ["Live", "plots"]


def __getattr__(name: str) -> Any:
    if name == "plots":
        return importlib.import_module("calamint.show.plots")
    if name == "Live":
        return importlib.import_module("calamint.show.live").Live
    raise AttributeError(f"module 'calamint.show' has no attribute {name!r}")
