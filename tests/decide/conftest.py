"""What several tests of deciding share."""

import calamint as cm


def two_parameters(**changes):
    """Minimise f subject to c <= 1, both of x and y."""
    given = {
        "space": {"x": cm.Real(0, 1), "y": cm.Real(0, 1)},
        "minimize": "f",
        "constraints": ["c <= 1"],
    }
    return cm.Problem(**{**given, **changes})
