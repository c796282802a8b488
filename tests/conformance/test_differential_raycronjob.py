"""The RayJobs that the reference makes of a RayCronJob, and those that ours makes: field by field the same.

The jobs are left to another controller (``managedBy``), so that they stay as they were made.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import pytest

from kuberay_op.testing import make
from kuberay_op.testing.controlplane import ControlPlane, namespace_name
from kuberay_op.testing.crds import install_crds
from kuberay_op.testing.go_modules import ModuleUnavailableError
from kuberay_op.testing.reference import BUILD_SECONDS, our_command, reference_program, running
from tests.conformance.differences import compare, stable

Json = dict[str, Any]

CRONS: Final = "/apis/ray.io/v1/namespaces/{}/raycronjobs"
JOBS: Final = "/apis/ray.io/v1/namespaces/{}/rayjobs"
PATIENCE: Final = 60.0

#: A time that comes at once. One RayJob a minute is made of it, since their names carry the minute.
SCHEDULE: Final = "@every 1s"
TICK: Final = "ray.io/cronjob-scheduled-timestamp"


def crons() -> list[Json]:
    """RayCronJobs with what may be in a template."""
    plain = make.raycronjob("plain", make.workers(2))
    full = make.raycronjob("full", make.workers(1))
    full["metadata"] |= {"labels": {"team": "ml"}, "annotations": {"note": "of the cron job"}}
    full["spec"]["jobTemplate"] |= {
        "submissionMode": "HTTPMode",
        "backoffLimit": 2,
        "activeDeadlineSeconds": 60,
        "shutdownAfterJobFinishes": True,
        "ttlSecondsAfterFinished": 10,
        "runtimeEnvYAML": "env_vars: {A: b}",
        "metadata": {"k": "v"},
    }
    longest = make.raycronjob("a" * 36)
    selector = make.raycronjob("selector")
    selector["spec"]["jobTemplate"] = {"entrypoint": "true", "clusterSelector": {"ray.io/cluster": "a"}}
    suspended = make.raycronjob("suspended", make.spec(suspend=True))
    found = [plain, full, longest, selector, suspended]
    for cron in found:
        cron["metadata"].pop("namespace", None)
        cron["spec"]["schedule"] = SCHEDULE
        cron["spec"]["jobTemplate"]["managedBy"] = "kueue.x-k8s.io/multikueue"
    return found


def first_jobs(plane: ControlPlane, namespace: str, wanted: Sequence[str]) -> dict[str, Json]:
    """The first RayJob of each RayCronJob, by the name of the latter, once all are there and are told of."""
    deadline = time.monotonic() + PATIENCE
    while True:
        listed = plane.api("GET", JOBS.format(namespace))["items"]
        found: dict[str, Json] = {}
        for job in sorted(listed, key=lambda each: str(each["metadata"]["name"]), reverse=True):
            found[job["metadata"]["ownerReferences"][0]["name"]] = job
        told = [
            cron["metadata"]["name"]
            for cron in plane.api("GET", CRONS.format(namespace))["items"]
            if (cron.get("status") or {}).get("lastScheduleTime")
        ]
        if set(wanted) <= set(found) and set(wanted) <= set(told):
            return found
        if time.monotonic() > deadline:
            raise AssertionError(f"{namespace}: there are RayJobs of {sorted(found)}, told of {sorted(told)}")
        time.sleep(0.2)


def timeless(job: Json, namespace: str) -> Json:
    """The RayJob without what chance, time and place decide."""
    [owner] = job["metadata"]["ownerReferences"]
    result = stable({"kind": "RayJob", **job}, namespace=namespace, uid=owner["uid"])
    metadata = result["metadata"]
    if TICK in metadata.get("annotations", {}):
        metadata["annotations"][TICK] = re.sub(r"\d", "0", metadata["annotations"][TICK])
    metadata["name"] = re.sub(r"-[a-z0-9]+$", "-RUN", metadata["name"])
    return filled(result)


def filled(value: Json) -> Json:
    """The maps that have something in them: the reference's types also write out those that are empty."""
    found = {key: filled(each) if isinstance(each, dict) else each for key, each in value.items()}
    for each in found.values():
        if isinstance(each, list):
            each[:] = [filled(item) if isinstance(item, dict) else item for item in each]
    return {key: each for key, each in found.items() if each != {}}


def name_says_the_minute(job: Json) -> None:
    """Names are deterministic. Newer than 1.6.2, which gives random names (contract 03 §14.3)."""
    moment = datetime.fromisoformat(job["metadata"]["annotations"][TICK])
    assert job["metadata"]["name"].rpartition("-")[2] == str(int(moment.timestamp()) // 60)


@pytest.mark.apiserver
@pytest.mark.timeout(BUILD_SECONDS + 300)
def test_rayjobs_are_the_same(control_plane: ControlPlane, tmp_path: Path) -> None:
    try:
        reference = reference_program()
    except ModuleUnavailableError as error:
        pytest.skip(f"the reference operator cannot be had here: {error}")
    install_crds(control_plane)
    base = namespace_name("differential")
    sides = {f"{base}-a": [str(reference)], f"{base}-b": our_command()}
    wanted = [cron["metadata"]["name"] for cron in crons() if not cron["spec"].get("suspend")]
    results = []
    with ExitStack() as stack:
        for namespace, command in sides.items():
            control_plane.create_namespace(namespace)
            stack.callback(control_plane.delete_namespace, namespace)
            arguments = (
                f"--watch-namespace={namespace}",
                "--feature-gates=RayCronJob=true",
                "--enable-leader-election=false",
                "--metrics-addr=0",
                "--health-probe-bind-address=0",
            )
            environment = {"KUBECONFIG": str(control_plane.kubeconfig)}
            stack.enter_context(running([*command, *arguments], environment, tmp_path / f"{namespace}.log"))
        for namespace in sides:
            for cron in crons():
                control_plane.api("POST", CRONS.format(namespace), cron)
        for namespace in sides:
            found = first_jobs(control_plane, namespace, wanted)
            results.append(found)
    for job in results[1].values():
        name_says_the_minute(job)
    theirs, ours = (
        {name: timeless(job, namespace) for name, job in found.items()}
        for namespace, found in zip(sides, results, strict=True)
    )
    assert sorted(theirs) == sorted(ours) == sorted(wanted)
    differences = [str(each) for each in compare("raycronjob", theirs, ours)]
    assert not differences, "\n".join(differences)
