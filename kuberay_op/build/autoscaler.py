"""The Ray autoscaler: a container beside the head, and what it asks of the Pods."""

from __future__ import annotations

from typing import Final

from kuberay_op.api import env as names_of
from kuberay_op.api import names
from kuberay_op.api.predicates import autoscaler_v1, autoscaler_v2, autoscaling_enabled, tls_enabled
from kuberay_op.api.raycluster import RayCluster
from kuberay_op.api.view import Json
from kuberay_op.build import auth, env, tls
from kuberay_op.build.draft import Draft, items, same_resources, shell
from kuberay_op.build.volumes import AUTOSCALER
from kuberay_op.frozen import thaw

_START: Final = (
    f"ray kuberay-autoscaler --cluster-name $({names_of.RAY_CLUSTER_NAME}) "
    f"--cluster-namespace $({names_of.RAY_CLUSTER_NAMESPACE})"
)

#: Fields of autoscalerOptions that replace ours.
_REPLACED: Final = ("image", "imagePullPolicy", "command", "args", "resources", "securityContext")
#: Fields of autoscalerOptions that are added to ours.
_ADDED: Final = ("env", "envFrom", "volumeMounts")


def add_autoscaler(draft: Draft) -> None:
    """Run the autoscaler beside the head, in place of Ray's own monitor."""
    spec = draft.cluster.spec
    if not autoscaling_enabled(spec):
        return
    draft.params["no-monitor"] = "true"
    draft.spec["serviceAccountName"] = service_account(draft.cluster)
    draft.spec["containers"].append(_container(draft))
    if autoscaler_v1(spec) or autoscaler_v2(spec):
        chosen = "true" if autoscaler_v2(spec) else "false"
        env.add(draft.ray, env.variable(names_of.RAY_ENABLE_AUTOSCALER_V2, chosen))


def set_restart_policy(draft: Draft) -> None:
    """Autoscaler v2 replaces Pods itself: one that ends must not start again."""
    if autoscaling_enabled(draft.cluster.spec) and autoscaler_v2(draft.cluster.spec):
        draft.spec["restartPolicy"] = "Never"


def service_account(cluster: RayCluster) -> str:
    """The account the autoscaler works under: the user's, or the one made for the cluster."""
    own = cluster.spec.head_group_spec.template["spec"].get("serviceAccountName")
    return str(own) if own else names.service_account(cluster.name)


def _container(draft: Draft) -> Json:
    options = draft.cluster.spec.autoscaler_options.raw
    container: Json = {
        "name": AUTOSCALER,
        "image": draft.ray.get("image"),
        "imagePullPolicy": "IfNotPresent",
        "command": shell(draft.config),
        "args": [_START],
        "resources": same_resources("500m", "512Mi"),
        "env": [
            *env.identity_variables(),
            env.field_variable("RAY_HEAD_POD_NAME", "metadata.name"),
            env.variable("KUBERAY_CRD_VER", "v1"),
            env.variable(names_of.KUBERAY_GEN_AUTOSCALER_START_CMD, _START),
        ],
    }
    auth.add_token(container, draft.cluster)
    if tls_enabled(draft.cluster.spec, draft.gate):
        tls.add_certificate(container)
    for key in _REPLACED:
        if options.get(key) not in (None, "", []):  # an empty object counts: no resources is a wish, too
            container[key] = thaw(options[key])
    for key in _ADDED:
        if options.get(key):
            items(container, key).extend(thaw(options[key]))
    return container
