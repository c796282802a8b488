"""Where our operator spends its time and memory while many RayClusters are made.

The operator runs under Python's own profiler (or ``tracemalloc``), which makes it two or three times slower:
the shares count, not the seconds.
"""

from __future__ import annotations

import asyncio
import io
import pstats
import sys
import tracemalloc
from pathlib import Path
from typing import Final

from kuberay_op_bench import peers
from kuberay_op_bench.field import Field, field

#: Lines of the tables.
LINES: Final = 40
TIME: Final = "time"
MEMORY: Final = "memory"


def run(*, what: str = TIME, count: int = 200, workers: int = 3, order: str = "tottime") -> str:
    """The functions that took most time (by ``order``), or the lines that hold most memory at the end."""
    with field() as ground:
        file = asyncio.run(_one(ground, what, count, workers))
        return _times(file, order) if what == TIME else file.read_text()


async def _one(ground: Field, what: str, count: int, workers: int) -> Path:
    user, kubeconfig = ground.next_user()
    folder = ground.folder / user
    folder.mkdir()
    file = folder / "profile"
    ours = [sys.executable, "-m", __name__, what, str(file)]
    async with ground.plot(f"profile-{user}") as plot:
        with peers.running(
            peers.OURS, kubeconfig=kubeconfig, namespace=plot.namespace, folder=folder, command=ours
        ):
            names = [f"c{number:05}" for number in range(count)]
            ready = asyncio.create_task(plot.ready(names, workers, {}))
            await plot.create(count, workers)
            await ready
    return file


def _times(file: Path, order: str) -> str:
    text = io.StringIO()
    pstats.Stats(str(file), stream=text).sort_stats(order).print_stats(LINES)
    return text.getvalue()


def _operate(what: str, file: Path) -> None:
    """Be the operator under a profiler; what it finds goes to the file when the operator has ended."""
    from kuberay_op.cli import main  # late: its modules are to be profiled too

    try:
        if what == TIME:
            import cProfile

            cProfile.runctx("main()", {"main": main}, {}, filename=str(file))
        else:
            tracemalloc.start()
            main()
    except SystemExit:
        pass
    finally:
        if what == MEMORY:
            lines = tracemalloc.take_snapshot().statistics("lineno")[:LINES]
            file.write_text("\n".join(map(str, lines)) + "\n")


if __name__ == "__main__":
    kind, result, *rest = sys.argv[1:]
    sys.argv = ["kuberay-op", "run", *rest]
    _operate(kind, Path(result))
