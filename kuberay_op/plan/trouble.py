"""What keeps one Pod from working, in one sentence. Pure.

Kubernetes says it in many places: conditions of the Pod, states of its containers and of its init containers,
its phase, its deletion timestamp. Here the one that explains the others is picked. Texts change only when
something changes: no ages and no counters that grow by themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kuberay_op.api.podtemplate import Json
from kuberay_op.api.predicates import pod_condition, pod_running, pod_running_and_ready
from kuberay_op.plan.podview import illness

#: Longest text of others that is repeated.
QUOTED: Final = 300

#: Reasons of ours; those of Kubernetes are handed on as they are.
TERMINATING: Final = "PodTerminating"
ENDED: Final = "PodEnded"
NODE_LOST: Final = "NodeLost"
IMAGE: Final = "ImagePullFailed"
OUT_OF_MEMORY: Final = "OutOfMemory"
CRASHING: Final = "ContainerCrashes"
NOT_READY: Final = "ContainersNotReady"
INITIALIZING: Final = "PodInitializing"
STARTING: Final = "PodStarting"

#: A kubelet switches between these while it tries to pull an image.
_IMAGE: Final = frozenset(
    {"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError"}
)
#: What a container waits for in the ordinary course of things.
_ORDINARY: Final = frozenset({"", "ContainerCreating", "PodInitializing"})


@dataclass(frozen=True, slots=True)
class Trouble:
    """What is the matter with a Pod."""

    #: One word for programs.
    reason: str
    #: The rest of a sentence that begins with the Pod: ``cannot be scheduled: ...``.
    text: str
    #: Whether it needs somebody's attention, or only time.
    serious: bool = True
    #: The container whose log may say more; empty when none does.
    container: str = ""


def trouble(pod: Json) -> Trouble | None:
    """The matter with a Pod; None when it runs and is ready."""
    if pod_running_and_ready(pod) and not _object(pod, "metadata").get("deletionTimestamp"):
        return None
    found = (what for check in CHECKS if (what := check(pod)) is not None)
    return next(found, Trouble(STARTING, "is starting", serious=False))


def quote(text: object) -> str:
    """Somebody else's text: on one line, and not too much of it."""
    line = " ".join(str(text).split())
    return line if len(line) <= QUOTED else f"{line[:QUOTED]}…"


def _terminating(pod: Json) -> Trouble | None:
    metadata = _object(pod, "metadata")
    since = metadata.get("deletionTimestamp")
    if not since:
        return None
    if finalizers := metadata.get("finalizers"):
        text = f"should be gone since {since}; finalizers hold it: {', '.join(finalizers)}"
        return Trouble(TERMINATING, text)
    node = _object(pod, "spec").get("nodeName")
    where = f" by its node {node}" if node else ""
    return Trouble(TERMINATING, f"is being deleted{where} and due to be gone at {since}", serious=False)


def _ended(pod: Json) -> Trouble | None:
    ill, message = illness(pod), _object(pod, "status").get("message")
    return Trouble(ENDED, f"has ended ({ill}){f': {quote(message)}' if message else ''}") if ill else None


def _node_lost(pod: Json) -> Trouble | None:
    if pod_condition(pod, "Ready").get("reason") != "NodeNotReady":
        return None
    return Trouble(NODE_LOST, f"is on node {_object(pod, 'spec').get('nodeName')}, which does not answer")


def _unscheduled(pod: Json) -> Trouble | None:
    scheduled = pod_condition(pod, "PodScheduled")
    if scheduled.get("status") != "False":
        return None
    reason = str(scheduled.get("reason") or "Unschedulable")
    message = quote(scheduled.get("message") or "the scheduler gives no reason")
    if reason == "SchedulingGated":
        return Trouble(reason, f"waits for its scheduling gates to be removed: {message}", serious=False)
    return Trouble(reason, f"cannot be scheduled: {message}")


def _containers_in_trouble(pod: Json) -> Trouble | None:
    found = map(_container_trouble, _containers(_object(pod, "status")))
    return next((what for what in found if what is not None), None)


def _initializing(pod: Json) -> Trouble | None:
    found: Iterable[Any] = _object(pod, "status").get("initContainerStatuses") or ()
    for container in found:
        if isinstance(container, Mapping) and isinstance(_object(container, "state").get("running"), Mapping):
            name = str(container.get("name"))
            text = f"has not got past its init container {name}"
            return Trouble(INITIALIZING, text, serious=False, container=name)
    return None


def _not_ready(pod: Json) -> Trouble | None:
    if not pod_running(pod):
        return None
    message = pod_condition(pod, "Ready").get("message")
    return Trouble(
        NOT_READY, f"runs and is not ready{f' ({quote(message)})' if message else ''}", serious=False
    )


def _containers(status: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The states of init containers, which come first, and of containers."""
    for kind in ("initContainerStatuses", "containerStatuses"):
        found: Iterable[Any] = status.get(kind) or ()
        yield from (container for container in found if isinstance(container, Mapping))


def _container_trouble(container: Mapping[str, Any]) -> Trouble | None:
    name, state = container.get("name"), _object(container, "state")
    waiting = state.get("waiting")
    if isinstance(waiting, Mapping):
        reason, message = str(waiting.get("reason") or ""), quote(waiting.get("message") or "")
        if reason in _ORDINARY:
            return None
        if reason in _IMAGE:
            return Trouble(IMAGE, f"cannot get the image {container.get('image')} of container {name}")
        if reason == "CrashLoopBackOff":
            return _crash(name, _object(container, "lastState").get("terminated"))
        return Trouble(reason, f"cannot start container {name}: {message or reason}")
    ended = state.get("terminated")
    if isinstance(ended, Mapping) and ended.get("exitCode") != 0:
        return _crash(name, ended)
    return None


def _crash(name: object, ended: Any) -> Trouble:
    ended = ended if isinstance(ended, Mapping) else {}
    if ended.get("reason") == "OOMKilled":
        return Trouble(OUT_OF_MEMORY, f"has container {name}, which needs more memory than its limit")
    said = f": {quote(ended['message'])}" if ended.get("message") else ""
    how = f" with exit code {ended['exitCode']}" if "exitCode" in ended else ""
    text = f"has container {name}, which ends{how} again and again{said}"
    return Trouble(CRASHING, text, container=str(name))


def _object(parent: Json, key: str) -> Mapping[str, Any]:
    value = parent.get(key)
    return value if isinstance(value, Mapping) else {}


#: The first that has something to say explains the others.
CHECKS: Final[tuple[Callable[[Json], Trouble | None], ...]] = (
    _terminating,
    _ended,
    _node_lost,
    _unscheduled,
    _containers_in_trouble,
    _initializing,
    _not_ready,
)
