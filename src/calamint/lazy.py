"""Packages whose exports are loaded when they are first used: importing one must not cost what only
some of its users need."""

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any


def lazy_exports(
    package: str, modules: Mapping[str, Sequence[str]], whole: Sequence[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a package.

    Args:
        package: Its `__name__`.
        modules: The names that each of its modules gives it.
        whole: Modules that are exported themselves, by the last part of their names.
    """
    homes = {name: module for module, names in modules.items() for name in names}
    exported = {module.rpartition(".")[2]: module for module in whole}

    def get(name: str) -> Any:
        if name in exported:
            return importlib.import_module(f"{package}.{exported[name]}")
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{package}.{homes[name]}"), name)

    return get, lambda: sorted([*homes, *exported])
