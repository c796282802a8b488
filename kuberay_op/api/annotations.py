"""Annotation keys on the objects we read and write. Part of the wire contract: never rename one."""

from __future__ import annotations

from typing import Final

# --- written by the operator

#: Spec hash of a RayCluster that a RayService made (see ``hashes.py``).
SPEC_HASH: Final = "ray.io/hash-without-replicas-and-workers-to-delete"
#: How many worker groups such a RayCluster had when it was made.
NUM_WORKER_GROUPS: Final = "ray.io/num-worker-groups"
#: Version of the operator that made the object; a hash is only compared with one of the same version.
KUBERAY_VERSION: Final = "ray.io/kuberay-version"
#: Spec hash on Pods, for ``upgradeStrategy: {type: Recreate}``.
RECREATE_HASH: Final = "ray.io/upgrade-strategy-recreate-hash"
#: ``true`` on SidecarMode clusters: once provisioned, a lost head is not made anew.
DISABLE_PROVISIONED_HEAD_RESTART: Final = "ray.io/disable-provisioned-head-restart"
#: The tick (RFC 3339, UTC) a RayCronJob's child RayJob was created for.
CRONJOB_SCHEDULED_AT: Final = "ray.io/cronjob-scheduled-timestamp"

# --- set by users

#: Older switch for GCS fault tolerance (``true``); head Pods carry ``true`` or ``false``.
FT_ENABLED: Final = "ray.io/ft-enabled"
#: Older way to name the Redis namespace of a cluster.
EXTERNAL_STORAGE_NAMESPACE: Final = "ray.io/external-storage-namespace"
#: Seconds until a Redis clean-up that does not end is given up.
GCS_FT_DELETION_TIMEOUT: Final = "ray.io/gcs-ft-deletion-timeout"
#: ``true`` (any case): leave the container command as the user wrote it.
OVERWRITE_CONTAINER_CMD: Final = "ray.io/overwrite-container-cmd"
#: How long a RayService may take to become ready for the first time.
INITIALIZING_TIMEOUT: Final = "ray.io/initializing-timeout"
#: ``true`` on a plain RayCluster: make a serve Service for it.
ENABLE_SERVE_SERVICE: Final = "ray.io/enable-serve-service"

#: Seconds for ``GCS_FT_DELETION_TIMEOUT`` when it is absent or not a positive integer.
DEFAULT_GCS_FT_DELETION_TIMEOUT: Final = 300

# --- plugins

#: On objects that a plugin asked for: the fields it wants, so that what it no longer wants can be told.
FIELDS: Final = "kuberay-op/fields"
