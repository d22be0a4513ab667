"""How long does a decision take? Against Optuna's and BoTorch's, by stage, and as data grow.

    make peers-setup
    .venv/bin/python benchmarks/decision.py

The toy problem, everything measured together, one thread unless said otherwise, one thing at a
time; ten hyper-parameter samples or, with many measurements, fewer; ten x*, or more while they
differ. N − 1 Latin hypercube points are given, the tool decides once and is told the result; its
next decision, the whole of it (models, solutions, maximisation), is timed. Methods take turns, on
the same data, and ratios are medians of those within a repetition.
Written to `results/decision.md`.

    git worktree add ../before HEAD~1
    .venv/bin/python benchmarks/decision.py --against ../before

compares with the decisions of another commit instead: two processes take turns, on the same data.
Written to `results/decision_against.md`.
"""

import json
import math
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

os.environ["OMP_NUM_THREADS"] = "2" if "--two-threads" in sys.argv else "1"
os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"]

from calamint.testbed import CLASSIC
from starts import starting_points

if TYPE_CHECKING:
    from calamint import Optimizer

HERE = Path(__file__).parent
SOLVED = CLASSIC["toy"]().coupled()
COMPARED = (20, 50, 100, 200)
LARGE = (400, 1000)
GROWTH = (20, 50, 100, 200, 400, 1000)
REPETITIONS, FEWER = 15, 5
# A problem, and the numbers of measurements between which decisions are made.
SEARCHES = (("toy", 5, 40), ("welded_beam", 8, 40), ("hartmann6", 8, 60))
STAGES = ("model", "incumbent", "acquisition", "maximise", "total")
PEERS = ("Optuna GPSampler", "BoTorch qLogNEI")
TWO_THREADS = "Optuna GPSampler, two threads"
DEFAULT, ONE_THREAD = "default", "default, one thread"
UNTRANSFORMED = 'default, transform="none"'
# Name: hyper-parameters, how many x* (by default ten, and more while they differ), rationality (0:
# after the first, all are partial).
OURS = {
    "MAP": ("map", None, math.inf),
    DEFAULT: ("sampled", None, math.inf),
    UNTRANSFORMED: ("sampled", None, math.inf),
    "50 x*": ("sampled", 50, math.inf),
    "partial": ("sampled", None, 0.0),
}
# With a thousand measurements the default uses all cores.
OURS_LARGE = (DEFAULT, ONE_THREAD)
PEERS_LARGE = (PEERS[0], TWO_THREADS)


def prepared(name: str, count: int, seed: int) -> "Optimizer":
    """An optimiser that has decided once, and knows N measurements."""
    from calamint import Model, Optimizer
    from calamint.acquire import PESC

    hyperparameters, solutions, rationality = OURS[DEFAULT if name == ONE_THREAD else name]
    model = Model(
        hyperparameters=hyperparameters,  # type: ignore[arg-type]
        transform="none" if name == UNTRANSFORMED else "auto",
    )
    optimizer = Optimizer(
        SOLVED.problem,
        PESC(solutions),
        model,
        seed,
        initial=0,
        rationality=rationality,
        threads=1 if name == ONE_THREAD else None,
    )
    starts = list(starting_points(SOLVED, seed, count - 1))
    for params in [*starts, starts[0]]:  # the same again: then no decision is about noise
        optimizer.add(params, SOLVED.evaluate(params))
    suggestion = optimizer.ask()
    assert suggestion is not None
    optimizer.tell(suggestion, SOLVED.evaluate(suggestion.params))
    return optimizer


def ours(name: str, count: int, seed: int) -> dict[str, float]:
    """Seconds of each stage of one of our decisions."""
    optimizer = prepared(name, count, seed)
    optimizer.ask()
    return dict(optimizer.decisions[-1].stage_seconds)


def peer() -> None:
    """Read [name, N, seed] lines, answer with the seconds of a peer's decision (in its venv)."""
    from peers import BoTorchLogNEI, OptunaGP

    kinds = {**dict(zip(PEERS, (OptunaGP, BoTorchLogNEI), strict=True)), TWO_THREADS: OptunaGP}
    for line in sys.stdin:
        name, count, seed = json.loads(line)
        tool = kinds[name](SOLVED, seed, count - 1)
        seconds = 0.0
        for _ in range(count + 1):
            begin = time.perf_counter()
            task, params = tool.ask()
            seconds = time.perf_counter() - begin
            tool.tell(task, params, SOLVED.evaluate(params))
        print(seconds, flush=True)


def serve() -> None:
    """Read [name, N, seed] lines, answer with the seconds of one of our decisions, as a whole."""
    for line in sys.stdin:
        optimizer = prepared(*json.loads(line))
        begin = time.perf_counter()
        optimizer.ask()
        print(time.perf_counter() - begin, flush=True)


def against(other: Path, repetitions: int = 2 * REPETITIONS) -> list[str]:
    """Whole decisions of this commit as ratios to those of another checkout."""
    servers = []
    for folder in (HERE.parent, other):
        environment = {**os.environ, "PYTHONPATH": str(folder.absolute() / "src")}
        servers.append(
            subprocess.Popen(
                [sys.executable, __file__, "--serve"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=environment,
            )
        )

    def seconds(index: int, name: str, count: int, seed: int) -> float:
        stdin, stdout = servers[index].stdin, servers[index].stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(json.dumps([name, count, seed]) + "\n")
        stdin.flush()
        return float(stdout.readline())

    lines = ["| N | method | here | there | ratio | middle half |", "|---|---|---|---|---|---|"]
    for name in OURS:
        for index in (0, 1):
            seconds(index, name, 10, 99)  # the first decision pays for imports
        for count in COMPARED:
            pairs = []
            for seed in range(repetitions):
                order = (0, 1) if seed % 2 else (1, 0)
                found = {index: seconds(index, name, count, seed) for index in order}
                pairs.append((found[0], found[1]))
            ratios = sorted(here / there for here, there in pairs)
            here, there = (1000 * statistics.median(each) for each in zip(*pairs, strict=True))
            low, middle, high = statistics.quantiles(ratios, n=4)
            lines.append(
                f"| {count} | {name} | {here:.0f} ms | {there:.0f} ms | {middle:.3f}"
                f" | {low:.2f} – {high:.2f} |"
            )
            print(lines[-1], flush=True)
    return lines


def compare() -> list[str]:
    python = HERE.parent / ".venv-peers" / "bin" / "python"
    if not python.exists():
        return ["The peers are not installed: run `make peers-setup` for the comparison."]

    def started(*options: str) -> subprocess.Popen[str]:
        command = [str(python), __file__, "--peer", *options]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    one_thread = started()
    processes = {
        **dict.fromkeys(PEERS, one_thread),
        TWO_THREADS: started("--two-threads"),
    }

    def theirs(name: str, count: int, seed: int) -> float:
        process = processes[name]
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps([name, count, seed]) + "\n")
        process.stdin.flush()
        return float(process.stdout.readline())

    for name in processes:
        theirs(name, 10, 99)  # the first decision pays for imports, here and there
    for name in OURS:
        ours(name, 10, 99)
    lines = [
        "| N | method | median | lowest – highest | ratio to Optuna | ratio to BoTorch |"
        ' ratio to transform="none" |',
        "|---|---|---|---|---|---|---|",
    ]
    for count in (*COMPARED, *LARGE):
        large = count in LARGE
        peers = PEERS_LARGE if large else tuple(processes)
        mine = OURS_LARGE if large else tuple(OURS)
        times: dict[str, list[float]] = {name: [] for name in (*peers, *mine)}
        for seed in range(FEWER if large else REPETITIONS):
            for name in peers:
                times[name].append(theirs(name, count, seed))
            for name in mine:
                times[name].append(ours(name, count, seed)["total"])
        for name, values in times.items():
            # Within a repetition the machine is as fast for all; minutes later it may not be.
            ratios = " | ".join(
                f"{statistics.median(a / b for a, b in zip(values, times[other], strict=True)):.2f}"
                if other in times
                else "–"
                for other in (*PEERS, UNTRANSFORMED)
            )
            lines.append(
                f"| {count} | {name} | {1000 * statistics.median(values):.0f} ms"
                f" | {1000 * min(values):.0f} – {1000 * max(values):.0f} | {ratios} |"
            )
            print(lines[-1], flush=True)
    for process in set(processes.values()):
        process.communicate()
    return lines


def growth() -> list[str]:
    """Every stage in milliseconds, median of three, and the peak memory so far."""
    lines = [
        f"| N | method | {' | '.join(STAGES)} | peak memory |",
        f"|---|---|{'---|' * len(STAGES)}---|",
    ]
    for count in GROWTH:
        for name in OURS:
            runs = [ours(name, count, seed) for seed in range(3)]
            cells = [f"{1000 * statistics.median(run[s] for run in runs):.0f}" for s in STAGES]
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            lines.append(f"| {count} | {name} | {' | '.join(cells)} | {peak:.0f} MB |")
            print(lines[-1], flush=True)
    return lines


def over_a_search() -> list[str]:
    """All decisions of a search, those that choose a scale anew among them, with both settings."""
    from calamint import Model, Optimizer

    lines = ['| problem | measurements | "auto" | "none" | ratio |', "|---|---|---|---|---|"]
    for name, first, last in SEARCHES:
        solved = CLASSIC[name]().coupled()
        optimizers = {
            transform: Optimizer(solved.problem, model=Model(transform=transform), initial=0)
            for transform in ("auto", "none")
        }
        seconds = dict.fromkeys(optimizers, 0.0)
        for count, params in enumerate(starting_points(solved, 0, last), start=1):
            for optimizer in optimizers.values():
                optimizer.add(params, solved.evaluate(params))
            # They take turns in going first.
            for transform in sorted(optimizers, reverse=bool(count % 2)) if count >= first else ():
                begin = time.perf_counter()
                suggestion = optimizers[transform].ask()
                seconds[transform] += time.perf_counter() - begin
                assert suggestion is not None
                optimizers[transform].cancel(suggestion)
        auto, none = (1000 * total / (last - first + 1) for total in seconds.values())
        lines.append(
            f"| {name} | {first} to {last} | {auto:.0f} ms | {none:.0f} ms | {auto / none:.2f} |"
        )
        print(lines[-1], flush=True)
    return lines


def main() -> None:
    grown = growth()  # first, so that peak memory is its own
    compared = compare()
    text = "\n".join(
        [
            "# A decision: speed and growth",
            "",
            str(__doc__),
            f"## Whole decisions, median of {REPETITIONS}, from N = {LARGE[0]} of {FEWER}",
            "",
            *compared,
            "",
            "## Transforms chosen and not, mean over the decisions of a search",
            "",
            *over_a_search(),
            "",
            "## Stages, milliseconds",
            "",
            *grown,
            "",
        ]
    )
    (HERE / "results" / "decision.md").write_text(text)


def main_against(other: str) -> None:
    lines = ["# A decision, against another commit", "", str(__doc__), *against(Path(other)), ""]
    (HERE / "results" / "decision_against.md").write_text("\n".join(lines))


if __name__ == "__main__":
    if "--peer" in sys.argv:
        peer()
    elif "--serve" in sys.argv:
        serve()
    elif "--against" in sys.argv:
        main_against(sys.argv[sys.argv.index("--against") + 1])
    else:
        main()
