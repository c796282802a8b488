"""Label keys and values on the objects we read and write. Part of the wire contract: never rename one."""

from __future__ import annotations

from typing import Final

# --- whose object this is

#: Name of the RayCluster; on its Pods, Services, Secrets and volume claims. Also the clusterSelector key.
CLUSTER: Final = "ray.io/cluster"
#: ``head``, ``worker`` or ``redis-cleanup``: the role of a Pod.
NODE_TYPE: Final = "ray.io/node-type"
#: Name of the group a Pod belongs to.
GROUP: Final = "ray.io/group"
#: ``yes`` on every Pod that runs Ray.
IS_RAY_NODE: Final = "ray.io/is-ray-node"
#: ``CheckLabel({cluster}-{node type})``: selects one role of one cluster.
IDENTIFIER: Final = "ray.io/identifier"
#: ``true`` on Pods that may receive Serve traffic, ``false`` on those that may not.
SERVE: Final = "ray.io/serve"
#: Name of the RayCluster, on its headless worker Service.
HEADLESS_WORKER_SERVICE: Final = "ray.io/headless-worker-svc"

# --- where it came from

#: Name of the object a user created, on everything made for it.
ORIGINATED_FROM_NAME: Final = "ray.io/originated-from-cr-name"
#: Kind of that object: ``RayCluster``, ``RayJob`` or ``RayService``.
ORIGINATED_FROM_KIND: Final = "ray.io/originated-from-crd"
#: The RayJob's submissionMode, on the RayCluster made for it.
JOB_SUBMISSION_MODE: Final = "ray.io/job-submission-mode"
#: Name of the RayCronJob, on each RayJob it creates.
CRONJOB_NAME: Final = "ray.io/cronjob-name"

# --- multi-host replicas

#: Name of the replica a worker Pod is a host of.
REPLICA_NAME: Final = "ray.io/worker-group-replica-name"
#: Index of that replica within its group.
REPLICA_INDEX: Final = "ray.io/worker-group-replica-index"
#: Index of the Pod within its replica.
HOST_INDEX: Final = "ray.io/replica-host-index"

# --- batch scheduling, set by users on the custom resource

#: Priority class for the gang.
PRIORITY_CLASS: Final = "ray.io/priority-class-name"
#: Ask the batch scheduler for all Pods or none.
GANG_SCHEDULING: Final = "ray.io/gang-scheduling-enabled"

# --- the labels Kubernetes recommends

#: Always ``kuberay``.
APP_NAME: Final = "app.kubernetes.io/name"
#: Always ``kuberay-operator``; the Job cache is filtered by it.
CREATED_BY: Final = "app.kubernetes.io/created-by"

# --- values

#: Value of ``app.kubernetes.io/name``.
APPLICATION: Final = "kuberay"
#: Value of ``app.kubernetes.io/created-by``.
COMPONENT: Final = "kuberay-operator"
#: Node type of the head Pod.
HEAD: Final = "head"
#: Node type of worker Pods.
WORKER: Final = "worker"
#: Node type of the Pod that empties Redis after a cluster is gone.
REDIS_CLEANUP: Final = "redis-cleanup"
#: Group name of the head Pod.
HEAD_GROUP: Final = "headgroup"
#: Group name of a RayJob's submitter Pod.
SUBMITTER_GROUP: Final = "submittergroup"
#: Value of ``ray.io/is-ray-node``.
YES: Final = "yes"
#: Value of ``ray.io/serve`` on Pods in the serve Service.
TRUE: Final = "true"
#: Value of ``ray.io/serve`` on Pods kept out of the serve Service.
FALSE: Final = "false"

# --- plugins

#: On objects that a plugin asked for: its name. What nobody asks for any more is found by it and removed.
PLUGIN: Final = "kuberay-op/plugin"
#: On objects that a plugin waits for: they stay as long as their owner.
WAITED_FOR: Final = "kuberay-op/waited-for"
