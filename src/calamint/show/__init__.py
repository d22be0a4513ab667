"""Telling people: displays, plots and reports."""

from typing import TYPE_CHECKING

from calamint.lazy import lazy_exports

if TYPE_CHECKING:
    from calamint.show import plots
    from calamint.show.cli.main import main
    from calamint.show.doctor import examine
    from calamint.show.live import Live
    from calamint.show.report import write_report
    from calamint.show.serve.server import run_server

__all__ = ["Live", "examine", "main", "plots", "run_server", "write_report"]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "live": ("Live",),
        "cli.main": ("main",),
        "doctor": ("examine",),
        "report": ("write_report",),
        "serve.server": ("run_server",),
    },
    whole=("plots",),
)
