"""The array types that annotations use; shapes are in docstrings."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Index = np.ndarray[Any, np.dtype[np.intp]]
Mask = np.ndarray[Any, np.dtype[np.bool_]]
