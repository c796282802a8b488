"""Helm as tests use it: the charts rendered, and what is wrong with values."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml

from kuberay_op_local import binaries, versions

ROOT: Final = Path(__file__).parents[2]
CHARTS: Final = ROOT / "charts"
RELEASE: Final = "ray"
NAMESPACE: Final = "charts"

#: Seconds for one command; hooks of a release may take a while on a loaded machine.
TIMEOUT: Final = 240

#: That in C is many times as fast, and not on every system.
Loader: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

Json = dict[str, Any]


@cache
def program() -> str:
    """The helm program of ``kuberay-op local``."""
    found = binaries.resolve(["helm"], kubernetes=versions.KUBERNETES, folder=None, say=lambda _: None)
    return str(found["helm"])


def helm(*arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run helm, whatever comes of it."""
    return subprocess.run(
        [program(), *arguments], capture_output=True, text=True, check=False, input=stdin, timeout=TIMEOUT
    )


def template(
    chart: str | Path, values: Mapping[str, Any], *arguments: str
) -> subprocess.CompletedProcess[str]:
    """``helm template`` with these values. A relative path is a chart of ours."""
    command = ("template", RELEASE, str(CHARTS / chart), "--namespace", NAMESPACE, "--values", "-")
    return helm(*command, *arguments, stdin=json.dumps(dict(values)))


def rendered(chart: str | Path, values: Mapping[str, Any], *arguments: str) -> list[Json]:
    """The objects that a chart makes of these values."""
    done = template(chart, values, *arguments)
    assert done.returncode == 0, done.stderr
    return [document for document in yaml.load_all(done.stdout, Loader=Loader) if document]


def refusal(chart: str | Path, values: Mapping[str, Any]) -> str:
    """What helm says about values that it does not take."""
    done = template(chart, values)
    assert done.returncode != 0, "helm takes these values"
    return done.stderr


def of_kind(objects: list[Json], kind: str, name: str = "") -> Json:
    """The only object of a kind, or the one of this name."""
    (found,) = [each for each in objects if each["kind"] == kind and name in ("", each["metadata"]["name"])]
    return found


def container(objects: list[Json]) -> Json:
    """The operator's container."""
    found: Json = of_kind(objects, "Deployment")["spec"]["template"]["spec"]["containers"][0]
    return found
