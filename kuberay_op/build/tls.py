"""Mutual TLS in the Pods: the certificate as files, and the wait until it names the Pod's address."""

from __future__ import annotations

from typing import Final

from kuberay_op.api import env as names_of
from kuberay_op.api import names
from kuberay_op.api import volumes as fixed
from kuberay_op.api.predicates import tls_enabled
from kuberay_op.api.view import Json
from kuberay_op.build import env
from kuberay_op.build.draft import Draft, items, named, same_resources
from kuberay_op.build.init_container import WAIT_FOR_GCS
from kuberay_op.build.volumes import add_volume, mount, mounts_path
from kuberay_op.frozen import thaw

WAIT_FOR_CERTIFICATE: Final = "wait-for-tls-ip-san"

_CERTIFICATE: Final = f"{fixed.TLS_PATH}/tls.crt"
_VARIABLES: Final = {
    names_of.RAY_USE_TLS: "1",
    names_of.RAY_TLS_SERVER_CERT: _CERTIFICATE,
    names_of.RAY_TLS_SERVER_KEY: f"{fixed.TLS_PATH}/tls.key",
    names_of.RAY_TLS_CA_CERT: f"{fixed.TLS_PATH}/ca.crt",
}

#: A certificate is made for all Pods of a role and renewed with each new address, so a new Pod comes first.
#: openssl itself compares the addresses: text would not do for IPv6, which can be written in many ways.
_SCRIPT: Final = f"""\
address="${{POD_IP:-$(hostname -i)}}"
if ! command -v openssl > /dev/null; then
  echo "openssl is not in this image; mutual TLS needs it"
  exit 1
fi
until openssl x509 -in {_CERTIFICATE} -noout -checkip "$address" | grep -q "does match"; do
  echo "waiting for a certificate that names $address"
  sleep 5
done
"""

#: Copied from the Ray container.
_COPIED: Final = ("image", "imagePullPolicy", "securityContext")


def add_tls(draft: Draft) -> None:
    """Give the Ray container, and the one that waits for the head, the certificate; wait for it first."""
    if not tls_enabled(draft.cluster.spec, draft.gate):
        return
    secret = names.tls_secret(draft.cluster.name, draft.node_type)
    add_volume(draft, {"name": fixed.TLS_VOLUME, "secret": {"secretName": secret}})
    add_certificate(draft.ray)
    waiting = draft.init_container(WAIT_FOR_GCS)
    if waiting is not None:
        add_certificate(waiting)
    items(draft.spec, "initContainers").insert(0, _wait(draft.ray))


def add_certificate(container: Json) -> None:
    """Let one container use the certificate."""
    env.add_absent(container, *(env.variable(name, value) for name, value in _VARIABLES.items()))
    _mount(container)


def _mount(container: Json) -> None:
    taken = named(container.get("volumeMounts"), fixed.TLS_VOLUME) or mounts_path(container, fixed.TLS_PATH)
    if not taken:
        mount(container, fixed.TLS_VOLUME, fixed.TLS_PATH, readOnly=True)


def _wait(ray: Json) -> Json:
    container: Json = {
        "name": WAIT_FOR_CERTIFICATE,
        **{key: thaw(ray[key]) for key in _COPIED if ray.get(key) is not None},
        "command": ["sh", "-c"],
        "args": [_SCRIPT],
        "env": [env.field_variable(names_of.POD_IP, "status.podIP")],
        "resources": same_resources("50m", "64Mi"),
    }
    _mount(container)
    return container
