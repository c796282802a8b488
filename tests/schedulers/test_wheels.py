"""The same suite on wheels, without this checkout; with packages taken away, and with one of a stranger.

Building the environment takes a while, so this is a long form.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from kuberay_op.testing import make
from kuberay_op.testing.controlplane import ControlPlane
from kuberay_op.testing.crds import install_crds
from tests.schedulers.kit import ALL, CRDS

pytestmark = [pytest.mark.slow, pytest.mark.apiserver, pytest.mark.timeout(1800)]

ROOT = Path(__file__).parents[2]
PACKAGES = [
    ROOT,
    ROOT / "local",
    *sorted(path.parent for path in ROOT.glob("batchscheduler/*/pyproject.toml")),
    *sorted(path.parent for path in ROOT.glob("plugins/*/pyproject.toml")),
]

#: A scheduler that nobody here knows, as somebody else would write it.
MANIFEST = """
apiVersion: kuberay-op/v1alpha1
kind: Plugin
name: acme
summary: Hand Ray Pods to the scheduler of Acme.
provides: {batchScheduler: acme}
rbac:
  - {apiGroups: [""], resources: [configmaps], verbs: [create, delete, get, list, patch, watch]}
watches:
  - {apiVersion: v1, kind: ConfigMap, plural: configmaps}
hooks: acme_scheduler.hooks
patches:
  - name: choose the scheduler
    match: {object: [Pod, PodTemplate]}
    merge: {spec: {schedulerName: acme}}
objects:
  - name: the gang
    match: {owner: RayCluster}
    template:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: "${gang.name}-gang"}
      data: {members: "${str(gang.count)}"}
examples:
  - owner: {kind: RayCluster, metadata: {name: demo}}
    object: {kind: Pod}
    gives: {kind: Pod, spec: {schedulerName: acme}}
"""
HOOKS = '''
"""What YAML cannot say: the gang waits until the scheduler knows it."""

from kuberay_op.hooks import Done, Gang, Scope, Verdict, Wait, hookimpl


@hookimpl
async def kuberay_admit_gang(scope: Scope, gang: Gang) -> Verdict:
    """The Pods come after their gang."""
    names = [obj["metadata"]["name"] for obj in scope.children.get("ConfigMap", ())]
    return Done() if f"{gang.name}-gang" in names else Wait("the gang is not known yet", 1)
'''
PYPROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "acme-scheduler"
version = "1.0"
dependencies = ["kuberay-op"]

[project.entry-points."kuberay_op.plugins"]
acme = "acme_scheduler:plugin.yaml"
"""


@dataclass(frozen=True, slots=True)
class Environment:
    """A Python with wheels in it, and a folder that is not this checkout."""

    folder: Path

    @property
    def bin(self) -> Path:
        return self.folder / "venv" / "bin"

    def uv(self, *words: str | Path) -> None:
        command = [sys.executable, "-m", "uv", "pip", *map(str, words)]
        subprocess.run([*command, "--quiet", "--python", str(self.bin / "python")], check=True, timeout=600)

    def call(self, *words: str | Path, check: bool = True) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [str(self.bin / str(words[0])), *map(str, words[1:])],
            cwd=self.folder,
            env={
                "PATH": os.environ["PATH"],
                "HOME": os.environ["HOME"],
                "PYTHONPATH": str(self.folder),
                "KUBERAY_OP_SCHEDULER_CRDS": str(CRDS),
            },
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )
        assert not check or done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        return done


def build(package: Path, out: Path) -> None:
    """A wheel of the package, in this interpreter: nothing is downloaded."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)]
    subprocess.run(command, cwd=package, check=True, capture_output=True, timeout=120)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    found = Environment(tmp_path_factory.mktemp("wheels"))
    wheels = found.folder / "wheels"
    for package in PACKAGES:
        build(package, wheels)
    stranger = found.folder / "stranger"
    (stranger / "acme_scheduler").mkdir(parents=True)
    (stranger / "pyproject.toml").write_text(PYPROJECT)
    (stranger / "acme_scheduler" / "__init__.py").write_text("")
    (stranger / "acme_scheduler" / "plugin.yaml").write_text(MANIFEST)
    (stranger / "acme_scheduler" / "hooks.py").write_text(HOOKS.lstrip())
    build(stranger, wheels)
    subprocess.run([sys.executable, "-m", "venv", str(found.folder / "venv")], check=True, timeout=120)
    found.uv("sync", "--require-hashes", ROOT / "requirements.lock")
    found.uv("install", "--no-deps", *sorted(wheels.glob("*.whl")))
    shutil.copytree(
        ROOT / "tests" / "schedulers",
        found.folder / "tests" / "schedulers",
        ignore=shutil.ignore_patterns("test_wheels.py", "__pycache__"),
    )
    return found


def test_the_suite_passes_on_wheels(environment: Environment) -> None:
    where = environment.call("python", "-c", "import kuberay_op, kuberay_op_volcano as v; print(v.__file__)")
    assert str(environment.folder) in where.stdout
    flags = ["-q", "-c", os.devnull, "-o", "asyncio_mode=auto", "--import-mode=importlib"]
    flags += ["-p", "no:cacheprovider", "--rootdir", str(environment.folder)]
    done = environment.call("python", "-m", "pytest", *flags, environment.folder / "tests" / "schedulers")
    assert " passed" in done.stdout
    assert " failed" not in done.stdout


def test_every_package_can_be_missing(environment: Environment) -> None:
    for scheduler in ALL:
        listed = json.loads(environment.call("kuberay-op", "plugin", "list", "--output", "json").stdout)
        package = next(each["source"].split()[0] for each in listed if each["name"] == scheduler.name)
        environment.uv("uninstall", package)
        try:
            named = scheduler.wanted.batch_scheduler
            words = ("rbac", "--batch-scheduler", named, "--feature-gates", scheduler.gates)
            done = environment.call("kuberay-op", *words, check=False)
            assert done.returncode == 1
            assert f"is not installed; install {package!r}" in done.stderr
            environment.call("kuberay-op", "rbac")
        finally:
            (wheel,) = (environment.folder / "wheels").glob(f"{package.replace('-', '_')}-*.whl")
            environment.uv("install", "--no-deps", wheel)


class Operator:
    """``kuberay-op run`` from the wheels."""

    def __init__(self, environment: Environment, plane: ControlPlane, namespace: str, *flags: str) -> None:
        self.log = environment.folder / f"{namespace}.log"
        command = [str(environment.bin / "kuberay-op"), "run", f"--watch-namespace={namespace}",
                   "--enable-leader-election=false", "--metrics-addr=0", "--health-probe-bind-address=0",
                   *flags]  # fmt: skip
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                command,
                cwd=environment.folder,
                env={"PATH": os.environ["PATH"], "KUBECONFIG": str(plane.kubeconfig)},
                stdout=log,
                stderr=log,
            )

    def said(self, text: str) -> bool:
        return text in self.log.read_text(errors="replace")

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(30)


def wait(question: Any) -> Any:
    deadline = time.monotonic() + 90
    while not (answer := question()):
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.3)
    return answer


@pytest.fixture
def bare(environment: Environment) -> Iterator[Environment]:
    """Without any plugin at all."""
    listed = json.loads(environment.call("kuberay-op", "plugin", "list", "--output", "json").stdout)
    packages = [each["source"].split()[0] for each in listed]
    environment.uv("uninstall", *packages)
    yield environment
    environment.uv("install", "--no-deps", *sorted((environment.folder / "wheels").glob("*.whl")))


def test_the_operator_starts_without_any_plugin_and_says_so(
    bare: Environment, kwok_cluster: ControlPlane, kwok_namespace: str
) -> None:
    install_crds(kwok_cluster)
    operator = Operator(bare, kwok_cluster, kwok_namespace)
    try:
        wait(lambda: operator.said("starting kuberay-op"))
        assert operator.said("missing: not installed; the package is kuberay-op-gcs-ft-redis")
        path = f"/apis/ray.io/v1/namespaces/{kwok_namespace}/rayclusters"
        kwok_cluster.api("POST", path, make.raycluster("a", make.namespace(kwok_namespace)))
        wait(lambda: kwok_cluster.api("GET", f"/api/v1/namespaces/{kwok_namespace}/pods")["items"])
    finally:
        operator.stop()


def test_a_stranger_s_wheel_adds_a_scheduler(
    environment: Environment, kwok_cluster: ControlPlane, kwok_namespace: str
) -> None:
    install_crds(kwok_cluster)
    environment.call("kuberay-op", "plugin", "test", "acme")
    cluster = make.raycluster("a", make.namespace(kwok_namespace), make.workers(2))
    file = environment.folder / "cluster.yaml"
    file.write_text(yaml.safe_dump(cluster))
    plan = environment.call("kuberay-op", "plan", "-f", file, "--plugin", "acme", check=False)
    assert (plan.returncode, "create ConfigMap a-gang" in plan.stdout) == (2, True), textwrap.shorten(
        plan.stderr, 500
    )
    operator = Operator(environment, kwok_cluster, kwok_namespace, "--batch-scheduler=acme")
    try:
        path = f"/apis/ray.io/v1/namespaces/{kwok_namespace}/rayclusters"
        kwok_cluster.api("POST", path, cluster)
        pods = f"/api/v1/namespaces/{kwok_namespace}/pods"
        wait(lambda: len(kwok_cluster.api("GET", pods)["items"]) == 3)
        assert {pod["spec"]["schedulerName"] for pod in kwok_cluster.api("GET", pods)["items"]} == {"acme"}
        gang = kwok_cluster.api("GET", f"/api/v1/namespaces/{kwok_namespace}/configmaps/a-gang")
        assert gang["data"] == {"members": "3"}
        assert operator.said("provides the batch scheduler 'acme'")
    finally:
        operator.stop()

    # Without it, the operator says what it has left, and nothing is held up.
    operator = Operator(environment, kwok_cluster, kwok_namespace)
    try:
        wait(lambda: operator.said("plugin acme is off and has left 1 ConfigMap"))
        kwok_cluster.api("DELETE", f"{path}/a")
        wait(lambda: not kwok_cluster.api("GET", path)["items"])
        wait(lambda: not kwok_cluster.api("GET", pods)["items"])
        gangs = f"/api/v1/namespaces/{kwok_namespace}/configmaps?labelSelector=kuberay-op/plugin"
        wait(lambda: not kwok_cluster.api("GET", gangs)["items"])
    finally:
        operator.stop()
