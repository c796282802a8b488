"""Every reason of the condition Ready is documented, and nothing else is."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

from kuberay_op.api import conditions
from kuberay_op.controllers import mtls
from kuberay_op.controllers.raycluster import failures, why
from kuberay_op.plan import trouble

PAGE = Path(__file__).parents[4] / "docs" / "reference" / "raycluster-ready.md"
#: Handed on from Kubernetes.
FROM_KUBERNETES = {"Unschedulable", "SchedulingGated"}


def reasons(module: ModuleType) -> set[str]:
    """The public constants of a module that are one word in CamelCase."""
    found = {value for name, value in vars(module).items() if name.isupper() and isinstance(value, str)}
    return {word for word in found if re.fullmatch(r"[A-Z][A-Za-z]+", word)}


def test_the_page_lists_every_reason() -> None:
    table = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| `")]
    documented = {word for line in table for word in re.findall(r"`(\w+)`", line.split("|")[1])}
    plugins = {conditions.PLUGIN_WAITS, conditions.PLUGIN_REFUSES, conditions.PLUGIN_FAILED}
    known = reasons(why) | reasons(failures) | reasons(trouble) | plugins | FROM_KUBERNETES
    known.add(mtls.CERTIFICATES_MISSING)
    assert documented == known
