"""``kuberay-op why raycluster``: gathers the situation of a cluster and asks the engine about it.

The engine (``controllers/raycluster/why.py``) is the operator's own. The operator also knows what it was
refused in its last pass; here that is read from the conditions it has written.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from kuberay_op.api import conditions, finalizers, labels
from kuberay_op.api.names import is_ours
from kuberay_op.api.predicates import externally_managed
from kuberay_op.api.raycluster import RayCluster
from kuberay_op.api.validation import failure
from kuberay_op.commands.why.answer import Answer
from kuberay_op.commands.why.look import Look
from kuberay_op.commands.why.operator import Operator, find_operator, missing_rights
from kuberay_op.controllers.raycluster.failures import REFUSALS, look_further
from kuberay_op.controllers.raycluster.why import INVALID, Obstacle, Situation, mounted_claims, obstacles
from kuberay_op.controllers.resources import RAY_CLUSTERS
from kuberay_op.errors import OperatorError
from kuberay_op.features import Gates
from kuberay_op.kube.errors import Forbidden, NotFound
from kuberay_op.kube.resource import PERSISTENT_VOLUME_CLAIMS, PODS, Object
from kuberay_op.plan.podview import views
from kuberay_op.plan.trouble import trouble

#: What the condition Ready says about the other obstacles, which are all listed here.
_MORE: Final = re.compile(r" \(and \d+ more\)$")


async def examine(look: Look, name: str) -> Answer:
    """What stands between a RayCluster and being ready."""
    cluster = RayCluster(await _owner(look, name))
    listed = await _pods(look, name)
    operator = await find_operator(look)
    told = [*await _about_operator(look, cluster, operator), *reported(cluster)]
    if listed is None:
        found = [*told, *_said(cluster, told)]
    else:
        own = [pod for pod in listed if is_ours(pod, cluster.metadata.uid)]
        warnings, claims = await look.warnings(), await _claims(look, own)
        found = obstacles(Situation(cluster, views(own), told, warnings, claims))
    gone = operator.gone()
    if gone is None or gone in found or externally_managed(cluster.spec):
        return Answer("RayCluster", look.namespace, name, found, unseen=look.unseen)
    if found:  # what only needs time needs an operator, too
        found = sorted([*found, gone], key=lambda each: not each.serious)
        return Answer("RayCluster", look.namespace, name, found, unseen=look.unseen)
    return Answer("RayCluster", look.namespace, name, notes=[gone], unseen=look.unseen)


def reported(cluster: RayCluster) -> list[Obstacle]:
    """What the operator could not do, or was not allowed to, as it says in the conditions."""
    said = _conditions(cluster)
    ready, agree = said.get(conditions.SERVICE_READY, {}), said.get(conditions.PLUGINS_AGREE, {})
    reason, text = str(ready.get("reason")), _MORE.sub("", str(ready.get("message") or ""))
    found = []
    if reason == INVALID:
        broken = failure(cluster.raw, Gates.default().enabled)
        command = f"kubectl get raycluster {cluster.name} -n {cluster.namespace} -o yaml"
        check = f"{command} | kuberay-op validate -f -"
        found.append(Obstacle(INVALID, broken.message if broken else text, check))
    elif reason in REFUSALS:
        found.append(Obstacle(reason, text, look_further(reason, text, cluster)))
    objection = str(agree.get("message") or "")
    if agree.get("status") == conditions.FALSE and objection:
        describe = f"kubectl describe raycluster {cluster.name} -n {cluster.namespace}"
        found.insert(0, Obstacle(str(agree.get("reason")), objection, describe))
    return found


def seen(cluster: RayCluster) -> bool:
    """Whether an operator has looked at the cluster as it is now."""
    if cluster.status.observed_generation == cluster.metadata.generation:
        return True
    # Of an invalid cluster, and of one that a plugin objects to, the rest of the status stays as it was.
    said = _conditions(cluster)
    ready, agree = said.get(conditions.SERVICE_READY, {}), said.get(conditions.PLUGINS_AGREE, {})
    broken = failure(cluster.raw, Gates.default().enabled)
    if ready.get("reason") == INVALID:
        return broken is None or str(ready.get("message")) == broken.message
    return agree.get("observedGeneration") == cluster.metadata.generation


async def _about_operator(look: Look, cluster: RayCluster, operator: Operator) -> list[Obstacle]:
    """What is the matter with the operator, if that explains why nothing happens."""
    if cluster.metadata.deletion_timestamp:
        held = any(each.startswith(finalizers.OURS) for each in cluster.metadata.finalizers)
        gone = operator.gone()
        return [gone] if held and gone else []
    if externally_managed(cluster.spec) or seen(cluster):
        return []
    what = "it" if cluster.status.observed_generation is None else "its last change"
    found = await missing_rights(look, operator, RAY_CLUSTERS) or [operator.has_not_seen(what)]
    broken = failure(cluster.raw, Gates.default().enabled)
    if broken is not None and _conditions(cluster).get(conditions.SERVICE_READY, {}).get("reason") != INVALID:
        found.append(Obstacle(INVALID, broken.message))
    return found


def _said(cluster: RayCluster, told: Sequence[Obstacle]) -> list[Obstacle]:
    """The operator's own summary, for somebody who may not see Pods."""
    ready = _conditions(cluster).get(conditions.SERVICE_READY, {})
    if ready.get("status") == conditions.TRUE or told:
        return []
    describe = f"kubectl describe raycluster {cluster.name} -n {cluster.namespace}"
    reason = str(ready.get("reason") or "Unknown")
    return [Obstacle(reason, str(ready.get("message") or "its status does not say why"), describe)]


def _conditions(cluster: RayCluster) -> dict[str, Mapping[str, Any]]:
    found = cluster.status.raw.get("conditions") or ()
    return {str(condition.get("type")): condition for condition in found}


# --- reading


async def _owner(look: Look, name: str) -> Object:
    try:
        return await look.get(RAY_CLUSTERS, name)
    except Forbidden as error:
        raise OperatorError(f"you may not get rayclusters in namespace {look.namespace}: {error}") from error
    except NotFound as error:
        if f'"{name}" not found' not in str(error):
            raise OperatorError(
                "the cluster does not know RayClusters; install them: "
                "kuberay-op crds | kubectl apply --server-side -f -"
            ) from error
    left = await _pods(look, name) or []
    text = f"there is no RayCluster {name} in namespace {look.namespace}; see: kubectl get rayclusters -A"
    if left:
        first = left[0]
        what = trouble(first)
        which = f"{first['metadata']['name']} {what.text if what else 'runs'}"
        text += f". {len(left)} Pod{'s' if len(left) > 1 else ''} with its label are still there: {which}"
    raise OperatorError(text)


async def _pods(look: Look, name: str) -> list[Object] | None:
    selector = f"{labels.CLUSTER}={name},{labels.NODE_TYPE} in ({labels.HEAD}, {labels.WORKER})"
    return await look.all(PODS, label_selector=selector)


async def _claims(look: Look, pods: Sequence[Object]) -> dict[str, Object | None]:
    """The volume claims that Pods mount which do not run yet."""
    waiting = [pod for pod in pods if (pod.get("status") or {}).get("phase") == "Pending"]
    found: dict[str, Object | None] = {}
    for name in dict.fromkeys(name for pod in waiting for name in mounted_claims(pod)):
        try:
            found[name] = await look.find(PERSISTENT_VOLUME_CLAIMS, name)
        except Forbidden:
            break  # and so it will be for the others
    return found
