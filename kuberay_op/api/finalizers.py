"""Finalizers we put on custom resources. Part of the wire contract: never rename one."""

from __future__ import annotations

from typing import Final

#: On a RayCluster with Redis fault tolerance: holds it until the clean-up Job has emptied Redis.
REDIS_CLEANUP: Final = "ray.io/gcs-ft-redis-cleanup-finalizer"
#: On a RayJob: holds it until the Ray job has been asked to stop.
RAYJOB: Final = "ray.io/rayjob-finalizer"
#: On a RayService: holds it until its clusters have been handled.
RAYSERVICE: Final = "ray.io/rayservice-finalizer"

#: Finalizers of this domain are ours: one that no enabled plugin claims is released, so nothing gets stuck.
OURS: Final = "ray.io/"
