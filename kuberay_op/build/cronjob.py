"""The RayJob that a RayCronJob makes for one of its times."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from kuberay_op.api import labels, names
from kuberay_op.api.annotations import CRONJOB_SCHEDULED_AT
from kuberay_op.api.raycronjob import RayCronJob
from kuberay_op.build.metadata import owner_reference
from kuberay_op.frozen import thaw


def scheduled_rayjob(cron: RayCronJob, tick: datetime) -> dict[str, Any]:
    """The RayJob for ``tick``. Its name follows from the time, so the same run is never made twice."""
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": {
            "name": names.child_rayjob(cron.name, tick),
            "namespace": cron.namespace,
            "labels": {labels.CRONJOB_NAME: cron.name},
            "annotations": {CRONJOB_SCHEDULED_AT: timestamp(tick)},
            "ownerReferences": [owner_reference(cron.raw)],
        },
        "spec": thaw(cron.spec.job_template.raw),
    }


def timestamp(moment: datetime) -> str:
    """A time as Kubernetes writes it: whole seconds, in UTC."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
