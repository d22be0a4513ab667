"""Objects that a spec or a command line names as "module:name" or "file.py:name"."""

import importlib
import importlib.util
import sys
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any

_SOURCE = "__calamint_source__"


def name_of(function: Any) -> str:
    """What `imported` would find it by."""
    module = getattr(function, "__module__", "")
    source = getattr(sys.modules.get(module), _SOURCE, module)
    return f"{source}:{getattr(function, '__qualname__', '')}"


def imported(module: str, name: str) -> Any:
    """What a module, or a file that ends in .py, has under a name, which may have dots."""
    found: Any = _from_file(Path(module)) if module.endswith(".py") else _module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found


def _module(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name == name and Path(f"{name}.py").is_file():
            raise ModuleNotFoundError(
                f"{error}; the working directory is not searched: write '{name}.py:...'",
                name=name,
            ) from error
        raise


def _from_file(path: Path) -> ModuleType:
    """The module in a file; its functions are pickled with their code, as no other process could
    import it by its name."""
    import cloudpickle

    written, path = path, path.resolve()
    name = f"{path.stem}_{sha256(str(path).encode()).hexdigest()[:8]}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise ModuleNotFoundError(f"there is no file {str(path)!r}")
    module = importlib.util.module_from_spec(spec)
    module.__dict__[_SOURCE] = str(written)
    sys.modules[name] = module
    # Modules beside it are part of it.
    sys.path.append(str(path.parent))
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    cloudpickle.register_pickle_by_value(module)
    return module
