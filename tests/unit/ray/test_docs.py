"""The pages about Ray say what the code does, and their example runs."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Any

from kuberay_op.ray import errors
from kuberay_op.ray.poller import Pace, PollState, next_interval
from kuberay_op.testing.fake_ray.__main__ import main
from kuberay_op.testing.fake_ray.http import KINDS

DOCS = Path(__file__).parents[3] / "docs"
EXPLANATION = (DOCS / "explanation/talking-to-ray.md").read_text()
REFERENCE = (DOCS / "reference/fake-ray.md").read_text()
HOWTO = (DOCS / "howto/test-against-a-fake-ray.md").read_text()


async def test_the_example_runs() -> None:
    block = re.search(r"```python\n(.*?)```", HOWTO, re.DOTALL)
    assert block is not None
    names: dict[str, Any] = {}

    exec(textwrap.dedent(block[1]), names)  # noqa: S102 - our own page
    await names["test_the_end_of_a_job_is_seen"]()


def test_every_error_is_explained() -> None:
    def leaves(kind: type[errors.RayError]) -> list[str]:
        below = kind.__subclasses__()
        return [name for child in below for name in leaves(child)] if below else [kind.__name__]

    assert re.findall(r"^\| `(\w+)` \|", EXPLANATION, re.MULTILINE) == leaves(errors.RayError)


def test_the_intervals_are_those_of_the_table() -> None:
    pace = Pace()

    assert [next_interval(PollState(age), pace) for age in (20, 60, 300)] == [1, 3, 15]
    assert [next_interval(PollState(0, count), pace) for count in (1, 2, 3, 9)] == [1, 2, 4, 30]


def test_every_fault_and_option_is_listed() -> None:
    assert all(f"| `{kind}" in REFERENCE for kind in KINDS)
    assert all(f"`{option}`" in REFERENCE for parameter in main.params for option in parameter.opts)
