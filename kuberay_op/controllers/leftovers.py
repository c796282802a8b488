"""What plugins that are off now have left on the cluster: told at start-up, never touched.

The operator may have no rights on such kinds any more, and somebody may want to keep them. Each belongs to a
Ray object and goes with it: nothing gets stuck. But until then a scheduler may reserve room for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kuberay_op.api import labels
from kuberay_op.declarative.manifest import PluginManifest
from kuberay_op.errors import OperatorError
from kuberay_op.kube.client import Client
from kuberay_op.kube.discovery import Discovery
from kuberay_op.kube.resource import Resource
from kuberay_op.logs import get_logger

log = get_logger("setup")


async def leftovers(
    client: Client, discovery: Discovery, off: Mapping[str, PluginManifest], namespaces: Sequence[str] = ()
) -> list[str]:
    """One sentence for each kind of which plugins that are ``off`` have objects here.

    What cannot be seen, for want of rights or because nobody answers, is passed over.
    """
    found: list[str] = []
    for name, manifest in off.items():
        for watch in manifest.watches:
            try:
                resource = await discovery.find(watch.api_version, watch.kind)
                count = 0 if resource is None else await _count(client, resource, name, namespaces or (None,))
            except OperatorError as error:
                log.debug("cannot see what a plugin has left", plugin=name, kind=watch.kind, error=str(error))
                continue
            if resource is not None and count:
                found.append(_sentence(name, resource, count))
    return found


async def _count(client: Client, resource: Resource, plugin: str, namespaces: Iterable[str | None]) -> int:
    selector = f"{labels.PLUGIN}={plugin}"
    return sum(
        [len((await client.list(resource, space, label_selector=selector)).items) for space in namespaces]
    )


def _sentence(plugin: str, resource: Resource, count: int) -> str:
    plural = f"{resource.plural}.{resource.group}" if resource.group else resource.plural
    what = f"{count} {resource.kind}{'s' if count > 1 else ''}"
    command = f"kubectl delete {plural} -A -l {labels.PLUGIN}={plugin}"
    return f"plugin {plugin} is off and has left {what}; they go with their owners, or with: {command}"
