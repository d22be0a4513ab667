"""A plot: a Plotly figure with the numbers that are in it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from calamint.errors import ProblemError
from calamint.show.plots.page import plot_section, write_page
from calamint.show.plots.style import plotly

Rows = Sequence[Mapping[str, Any]]


# As Plotly has it: its type, its data and its look.
Trace = dict[str, Any]


@final
@dataclass(frozen=True)
class View:
    """A figure as plain values, which are quicker to make by the hundred.

    Attributes:
        traces: Those that views share are written to a page once.
        layout: As `Figure.to_plotly_json` gives it; likewise.
    """

    traces: Sequence[Trace]
    layout: dict[str, Any]

    @staticmethod
    def of(figure: Any) -> "View":
        content = figure.to_plotly_json()
        return View(content["data"], content["layout"])

    def as_figure(self) -> Any:
        return plotly().Figure({"data": list(self.traces), "layout": self.layout})


def panel(row: int) -> dict[str, str]:
    """The axes of a panel, counted from above."""
    number = "" if row == 1 else str(row)
    return {"xaxis": f"x{number}", "yaxis": f"y{number}"}


@final
@dataclass(frozen=True)
class Control:
    """A drop-down or a slider of a page, which chooses between views of a plot.

    Attributes:
        label: What it chooses.
        options: What there is to choose from; if these depend on an earlier control, a list for
            each of that one's options.
        slider: Whether it is a slider.
        by: The index of the control that the options depend on.
    """

    label: str
    options: Sequence[str] | Sequence[Sequence[str]]
    slider: bool = False
    by: int | None = None


@final
@dataclass(frozen=True)
class Plot:
    """A Plotly figure, what it shows in words, and its numbers as a table.

    Attributes:
        name: Such as "progress".
        title: Its heading.
        caption: What is seen, and what was left out.
        figure: The `plotly.graph_objects.Figure`.
        rows: The numbers.
        controls: Drop-downs and sliders of a page.
        views: What is shown for each choice: the option of every control, by its index.
        chosen: The choice that is the figure.
        min_width: Pixels below which a page scrolls sideways.
    """

    name: str
    title: str
    caption: str
    figure: Any
    rows: Rows
    controls: Sequence[Control] = ()
    views: Mapping[tuple[int, ...], View] | None = None
    chosen: tuple[int, ...] | None = None
    min_width: int = 0

    def data(self) -> list[dict[str, Any]]:
        """The numbers of the figure, a dict for each row."""
        return [dict(row) for row in self.rows]

    def show(self) -> None:
        """Show it in a notebook or a browser."""
        self.figure.show()

    def save(self, path: str | Path) -> Path:
        """Write the plot to a file.

        Args:
            path: .html is a page with the table and works without a network; .png, .svg and .pdf
                need a Chrome or Chromium.
        """
        path = Path(path)
        if path.suffix == ".html":
            return write_page(path, self.title, [plot_section(self, heading=False)])
        if path.suffix not in (".png", ".svg", ".pdf"):
            raise ProblemError(
                f"path is {str(path)!r}: write a name that ends in .html, .png or .svg."
            )
        try:
            self.figure.write_image(
                path, width=self.figure.layout.width or max(900, self.min_width)
            )
        except Exception as error:
            raise ProblemError(
                f"{path.name} could not be drawn ({type(error).__name__}): install kaleido and"
                " Chrome or Chromium, or save as .html, which needs neither."
            ) from None
        return path

    def _repr_mimebundle_(self, *args: Any, **kwargs: Any) -> Any:
        return self.figure._repr_mimebundle_(*args, **kwargs)


def select_views(make: Callable[..., View], sizes: Sequence[int]) -> dict[tuple[int, ...], View]:
    """make(i, j, ...) for every choice of options."""
    keys: list[tuple[int, ...]] = [()]
    for size in sizes:
        keys = [(*key, option) for key in keys for option in range(size)]
    return {key: make(*key) for key in keys}
