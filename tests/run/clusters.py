"""A real Dask cluster for tests: a scheduler and workers, each a process that can be killed."""

import os
import signal
import socket
import subprocess
import sys
import time


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


class Cluster:
    """Processes on this machine; `workers` are those that were started, in order."""

    def __init__(self, folder, **options):
        folder.mkdir(exist_ok=True)
        self.folder, self.options = folder, options
        self.port = free_port()
        self.address = f"tcp://127.0.0.1:{self.port}"
        self.environment = {
            **os.environ,
            "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "5s",
            "DASK_DISTRIBUTED__SCHEDULER__DASHBOARD__ENABLED": "False",
            "OMP_NUM_THREADS": "1",
        }
        self.workers = []
        self.start_scheduler()

    def start_scheduler(self):
        words = ["--host", "127.0.0.1", "--port", str(self.port), "--no-dashboard"]
        self.scheduler = self._start("scheduler", "scheduler", *words)
        until = time.monotonic() + 30
        while time.monotonic() < until:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            except OSError:
                time.sleep(0.05)
        raise TimeoutError("the scheduler does not start")

    def start_worker(self, resources="", threads=1, *more):
        """One that offers, such as "gpu=1 cpu=2"; with a nanny, it is there again if killed."""
        words = ["--nthreads", str(threads), "--no-dashboard", "--memory-limit", "0", *more]
        if resources:
            words += ["--resources", resources]
        if "--nanny" not in more:
            words += ["--no-nanny"]
        words += ["--local-directory", str(self.folder / "scratch")]
        self.workers.append(
            self._start(f"worker{len(self.workers)}", "worker", self.address, *words)
        )
        return self.workers[-1]

    def wait_for_workers(self, count):
        from distributed import Client

        with Client(self.address, timeout=30, set_as_default=False) as client:
            client.wait_for_workers(count, timeout=30)

    def _start(self, name, kind, *words):
        log = (self.folder / f"{name}.log").open("ab")
        with log:
            return subprocess.Popen(
                [sys.executable, "-m", f"distributed.cli.dask_{kind}", *words],
                stdout=log,
                stderr=log,
                env=self.environment,
                start_new_session=True,
            )

    def kill(self, process):
        """At once, and no more than this process: a nanny starts another worker."""
        process.send_signal(signal.SIGKILL)
        process.wait()

    def close(self):
        for process in (*self.workers, self.scheduler):
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
