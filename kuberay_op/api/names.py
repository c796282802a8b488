"""Names of the objects we make. They must be the ones the reference would use, so that what it left is found.

Two ways of shortening exist and are not alike: :func:`check_name` and :func:`check_label` keep the *end* of a
text, :func:`pod_name` and :func:`route_name` its *beginning*. Two long names can therefore become one. Before
touching an object found under such a name ask :func:`is_ours`; one that is not is left alone.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Literal

from kuberay_op.api import labels

if TYPE_CHECKING:  # both are handed in; importing them would cost every command milliseconds
    import random
    from datetime import datetime

#: Longest name of each kind: leaves room for what we append to it.
MAX_NAME: Final[Mapping[str, int]] = {"RayCluster": 53, "RayJob": 47, "RayService": 47, "RayCronJob": 36}

#: Longest result of :func:`check_name`, and of the prefix of :func:`pod_name`.
MAX_OBJECT_NAME: Final = 50
#: Longest label value, and so the longest result of :func:`check_label`.
MAX_LABEL: Final = 63

#: Letters and digits of random suffixes: no vowels, so no words.
SUFFIX_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
#: Length of random suffixes.
SUFFIX_LENGTH: Final = 5

#: Name in managedBy that stands for this operator.
CONTROLLER: Final = "ray.io/kuberay-operator"
#: Position of the Ray container in every Pod template; it is never looked up by name.
RAY_CONTAINER: Final = 0
#: Container that submits a RayJob.
SUBMITTER_CONTAINER: Final = "ray-job-submitter"
#: Sidecar that collects logs and events.
COLLECTOR_CONTAINER: Final = "ray-history-collector"
#: Application name in a Serve configuration that names none.
DEFAULT_SERVE_APP: Final = "default"
#: DNS suffix of the Kubernetes cluster unless CLUSTER_DOMAIN says otherwise.
DEFAULT_CLUSTER_DOMAIN: Final = "cluster.local"
#: Namespace of an object that names none.
DEFAULT_NAMESPACE: Final = "default"

#: Kinds a RayCluster can have been made for.
OriginKind = Literal["RayCluster", "RayJob", "RayService"]


# --- shortening


def _punctuation(char: str) -> bool:
    return unicodedata.category(char).startswith("P")


def check_name(text: str) -> str:
    """``text`` as an object name: its last 50 characters, a leading digit or punctuation made ``r``."""
    text = text[-MAX_OBJECT_NAME:]
    if text and (text[0].isdecimal() or _punctuation(text[0])):
        return "r" + text[1:]
    return text


def check_label(text: str) -> str:
    """``text`` as a label value or Job name: its last 63 characters, leading punctuation made ``r``."""
    text = text[-MAX_LABEL:]
    if text and _punctuation(text[0]):
        return "r" + text[1:]
    return text


def pod_name(prefix: str, node_type: str, *, generate: bool) -> str:
    """Name of a Pod, or its generateName (with a dash at the end) when the API server is to complete it."""
    name = f"{prefix[:MAX_OBJECT_NAME]}-{node_type}".lower()
    return f"{name}-" if generate else name


def route_name(cluster: str, namespace: str) -> str:
    """Name of the OpenShift Route. Its host is ``{name}-{namespace}``, so a long namespace leaves less room.

    From a namespace of 51 characters on nothing would be left (the reference stops there); we keep one.
    """
    return check_name(f"{cluster}-head-route"[: max(1, 51 - len(namespace))])


# --- random names


def random_suffix(rng: random.Random) -> str:
    """Five characters that make a name unlikely to be taken."""
    return "".join(rng.choices(SUFFIX_ALPHABET, k=SUFFIX_LENGTH))


def with_suffix(name: str, rng: random.Random) -> str:
    """``{name}-{5 random characters}``: for RayClusters of other kinds, job ids and multi-host replicas."""
    return f"{name}-{random_suffix(rng)}"


# --- objects of a cluster


def head_pod(cluster: str, *, generate: bool = True) -> str:
    """Name (or generateName) of the head Pod."""
    return pod_name(cluster, labels.HEAD, generate=generate)


def worker_pod(cluster: str, group: str) -> str:
    """The generateName of a worker Pod."""
    return pod_name(f"{cluster}-{group}", labels.WORKER, generate=True)


def head_service(owner: str) -> str:
    """The head Service of a RayCluster, RayJob or RayService.

    On a RayCluster ``headService.metadata.name`` wins over this; on the other two it never does.
    """
    return f"{owner}-head-svc"


def serve_service(owner: str) -> str:
    """The Service for Serve traffic. Never shortened: the limits of :data:`MAX_NAME` make it fit."""
    return f"{owner}-serve-svc"


def serve_label(owner: str) -> str:
    """Value of ``ray.io/serve`` in that Service's own labels."""
    return f"{owner}-serve"


def headless_service(cluster: str) -> str:
    """The Service through which the hosts of a replica find each other."""
    return f"{cluster}-headless"


def ingress(cluster: str) -> str:
    """The Ingress to the dashboard."""
    return check_name(f"{cluster}-head-ingress")


def auth_secret(cluster: str) -> str:
    """The Secret with the token, when the user names none."""
    return check_name(cluster)


def service_account(cluster: str) -> str:
    """The autoscaler's ServiceAccount; its Role and RoleBinding have the same name."""
    return check_name(cluster)


def gcs_claim(cluster: str) -> str:
    """The volume claim of embedded storage, when the user names none."""
    return f"{cluster}-gcs-pvc"


def redis_cleanup_job(cluster: str) -> str:
    """The Job that empties Redis."""
    return check_label(f"{cluster}-redis-cleanup")


def identifier(cluster: str, node_type: str) -> str:
    """Value of the label ``ray.io/identifier``."""
    return check_label(f"{cluster}-{node_type}")


def child_rayjob(cronjob: str, tick: datetime) -> str:
    """The RayJob a RayCronJob creates for ``tick``: unique per minute, so a repeated tick finds its job."""
    return f"{cronjob}-{int(tick.timestamp()) // 60}"


# --- mTLS objects (cert-manager)


def selfsigned_issuer(cluster: str) -> str:
    """Issuer that signs the cluster's own authority."""
    return f"ray-selfsigned-issuer-{cluster}"


def ca_certificate(cluster: str) -> str:
    """Certificate of that authority."""
    return f"ray-ca-certificate-{cluster}"


def ca_issuer(cluster: str) -> str:
    """Issuer that signs with that authority."""
    return f"ray-ca-issuer-{cluster}"


def ca_secret(cluster: str, uid: str) -> str:
    """Secret of that authority; part of the uid keeps a cluster made anew from using the old one."""
    return f"{cluster}-ca-secret-{uid[:8]}"


def certificate(cluster: str, node_type: str) -> str:
    """Certificate of the head or, for any other role, of the workers."""
    return f"ray-{_tls_role(node_type)}-cert-{cluster}"


def tls_secret(cluster: str, node_type: str) -> str:
    """Secret with that certificate and its key."""
    return f"ray-{_tls_role(node_type)}-secret-{cluster}"


def _tls_role(node_type: str) -> str:
    return labels.HEAD if node_type == labels.HEAD else labels.WORKER


# --- addresses


def fqdn(service: str, namespace: str, domain: str = DEFAULT_CLUSTER_DOMAIN) -> str:
    """Full DNS name of a Service."""
    return f"{service}.{namespace or DEFAULT_NAMESPACE}.svc.{domain or DEFAULT_CLUSTER_DOMAIN}"


def short_host(full_name: str) -> str:
    """The older RAY_IP: the full name up to its first dot."""
    return full_name.partition(".")[0]


# --- whose is it


def origin_kind(label: str | None) -> OriginKind:
    """Kind in the label ``ray.io/originated-from-crd``; anything unknown counts as a RayCluster."""
    if label == "RayJob":
        return "RayJob"
    if label == "RayService":
        return "RayService"
    return "RayCluster"


def is_ours(obj: Mapping[str, Any], owner_uid: str) -> bool:
    """Whether ``obj`` is controlled by the object with that uid.

    Ask before adopting, changing or deleting what was found under a shortened name: it may belong to another
    cluster whose name became the same.
    """
    references = obj.get("metadata", {}).get("ownerReferences") or ()
    return any(ref.get("controller") is True and ref.get("uid") == owner_uid for ref in references)
