"""Objects that a spec or a command line names as "module:name"."""

import importlib
from typing import Any


def imported(module: str, name: str) -> Any:
    """What a module has under a name, which may have dots."""
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found
