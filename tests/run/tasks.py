"""What jobs do in tests; it imports little, because every job imports it anew."""

import os
import signal
import time


def grad_input(params):
    """What happens depends on x."""
    x = params["x"]
    if x < 0.2:
        os._exit(7)
    if x < 0.3:
        os.kill(os.getpid(), signal.SIGKILL)
    if x < 0.4:
        raise ValueError("x is in the middle")
    if x < 0.5:
        print("about to hang", flush=True)
        time.sleep(3600)
    if x < 0.6:
        return {"f": "much"}
    if x < 0.7:
        return {"f": object()}
    if x < 0.8:
        return float("nan")
    if x < 0.9:
        os.fork() or time.sleep(3600)  # a child that is left behind
    return {"f": 1.0}


def first_of_square(params):
    return {"f": params["x"]}
