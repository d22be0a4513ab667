"""What a study answers without changing anything that is asked next."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from calamint.decide import Optimizer, Prediction, Recommendation, Record
from calamint.problem import Problem, ProblemError
from calamint.problem.parameters import Array
from calamint.run.jobs import JobRecord
from calamint.run.ledger import Ledger
from calamint.run.mirror import Mirror
from calamint.run.tables import columns_of, rows_of, write_csv


class Views(ABC):
    """Answers from what is stored."""

    _ledger: Ledger
    _mirror: Mirror
    _lock: threading.RLock

    @property
    @abstractmethod
    def problem(self) -> Problem: ...

    @abstractmethod
    def _sync(self) -> None:
        """See what has happened."""

    def recommend(
        self, delta: float | None = None, kind: Literal["believed", "observed"] = "believed"
    ) -> Recommendation:
        """The best input, as `Optimizer.recommend`; it is stored, too."""
        with self._lock:
            found = self.optimizer.recommend(delta, kind)
        self._ledger.recommended(found, kind, self._mirror.sequence)
        return found

    def predict(self, params: Mapping[str, Any]) -> Prediction:
        """Mean, deviation and probability of meeting the limits at one input."""
        with self._lock:
            return self.optimizer.predict(params)

    def gains(self, points: Any) -> dict[str, Array]:
        """What measuring each function at each point would tell about the optimum, in bits."""
        with self._lock:
            return self.optimizer.gains(points)

    def attempts(self) -> Sequence[Any]:
        """Attempts that have resources: `job`, `number`, `owner`, `started`, `lease_until`."""
        return self._ledger.open_attempts()

    def reap(self) -> int:
        """Give back the jobs of attempts whose lease has run out, or whose owner is dead; asking
        does that by itself. Returns how many there were."""
        return self._ledger.reap()

    def look(self) -> Mirror:
        """What is known of the study in this process, up to date."""
        self._sync()
        return self._mirror

    @property
    def optimizer(self) -> Optimizer:
        """What decides, with all that was measured: to look at, not to tell."""
        self._sync()
        return self._mirror.optimizer

    @property
    def history(self) -> list[Record]:
        """What was measured, in the order in which it was told."""
        return self.optimizer.history

    @property
    def jobs(self) -> list[JobRecord]:
        """All jobs, with their states and what they measured."""
        return self._ledger.records()

    def to_csv(self, path: str | Path) -> None:
        """Write what was measured, a row for each finished job; `add_table` reads it."""
        rows = self.table()
        try:
            with Path(path).open("w", newline="", encoding="utf-8") as file:
                write_csv(rows, columns_of(self.problem, rows), file)
        except (OSError, TypeError) as error:
            raise ProblemError(f"the table cannot be written to {path!r}: {error}.") from error

    def to_pandas(self) -> Any:
        """What was measured as a DataFrame, a row for each finished job."""
        try:
            import pandas
        except ImportError:
            raise ProblemError("to_pandas needs pandas: pip install pandas.") from None
        rows = self.table()
        return pandas.DataFrame(rows, columns=columns_of(self.problem, rows))

    def table(self) -> list[dict[str, Any]]:
        """What was measured, a row for each finished job."""
        return rows_of(self.problem, self.history)
