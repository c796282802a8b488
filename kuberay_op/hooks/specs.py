"""The hooks: every point at which a plugin can take part, in one place.

A plugin is a module or an object with functions of these names, each marked with
:data:`kuberay_op.hooks.hookimpl`. An implementation takes only the arguments it needs, by name. Every hook
also offers ``options``: the plugin's own options, checked against its manifest, read-only.

What happens when an implementation raises, answers rubbish, or is late, depends on its family:

=================  ===============================================================================
registration       start-up fails and names the plugin
building, phases   nothing is written for this object; condition, event, metric; back-off; others go on
scheduling         as building
admission          as building
finalization       that finalizer stays and is tried again; the others go on
watching           counted, logged, ignored
=================  ===============================================================================

*Late* means later than the time limit of one call, a second. An ``async def`` is cancelled; a plain function
runs in a worker thread, which is given up (see ``isolation.py``), so it must not touch what belongs to the
loop. What an ``async def`` does between two awaits nobody can interrupt: it must not block or compute for
long. Arguments are read-only: an attempt to change one raises.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, TypeVar

import pluggy

from kuberay_op.hooks.patches import Manifest, Patch
from kuberay_op.hooks.scope import Gang, Group, PolicyRule, Scope, Watch
from kuberay_op.hooks.verdicts import Verdict

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from kuberay_op.api.problems import Problem

#: Name of the pluggy project; also the prefix of the entry-point groups.
PROJECT: Final = "kuberay_op"

#: Version of this contract. A manifest names it in ``apiVersion: kuberay-op/<version>``.
CONTRACT: Final = "v1alpha1"

hookspec = pluggy.HookspecMarker(PROJECT)

#: Marks an implementation: ``@hookimpl`` above a function named like a hook.
hookimpl = pluggy.HookimplMarker(PROJECT)

F = TypeVar("F", bound=Callable[..., Any])

Options = Mapping[str, Any]


class Family(Enum):
    """What a failure of a hook means; see the module text."""

    REGISTRATION = "registration"
    BUILDING = "building"
    PHASE = "phase"
    SCHEDULING = "scheduling"
    FINALIZATION = "finalization"
    WATCHING = "watching"
    ADMISSION = "admission"


#: Family of each hook, in the order of this file.
FAMILIES: Final[dict[str, Family]] = {}


def _in(family: Family) -> Callable[[F], F]:
    """Declare a hook of a family."""

    def declare(function: F) -> F:
        FAMILIES[function.__name__] = family
        return hookspec(function)

    return declare


# --------------------------------------------------------------------------------------------------------
# 1. Registration: sync, once, at start-up
# --------------------------------------------------------------------------------------------------------


@_in(Family.REGISTRATION)
def kuberay_rbac_rules(options: Options) -> Iterable[PolicyRule]:  # type: ignore[empty-body]
    """RBAC rules that the operator needs for this plugin; the chart and ``kuberay-op rbac`` print them."""


@_in(Family.REGISTRATION)
def kuberay_watches(options: Options) -> Iterable[Watch]:  # type: ignore[empty-body]
    """Kinds of child objects that the plugin makes; they must live in namespaces.

    One whose API the cluster lacks is reported at start-up and left out: objects of that kind are not made,
    and the condition of the owner says so.
    """


@_in(Family.REGISTRATION)
def kuberay_register_metrics(registry: CollectorRegistry, options: Options) -> None:
    """Add metrics of the plugin's own to the operator's registry."""


@_in(Family.REGISTRATION)
async def kuberay_started(options: Options) -> None:
    """The operator starts, as leader or as standby. May open connections and leave tasks running."""


@_in(Family.WATCHING)
async def kuberay_stopping(options: Options) -> None:
    """The operator ends, after its last pass: close what ``kuberay_started`` opened."""


# --------------------------------------------------------------------------------------------------------
# 2. Building: sync and pure, once per pass and object
# --------------------------------------------------------------------------------------------------------


@_in(Family.BUILDING)
def kuberay_patch_pod(scope: Scope, group: Group, pod: Manifest, options: Options) -> Patch | None:
    """Change a Pod, or the Pod template of a Job, before it is made. Existing Pods are not touched.

    Gets the Pod as the core and earlier plugins built it; None leaves it as it is. One patch or several in a
    list. Name, namespace and owner cannot be changed.
    """


@_in(Family.BUILDING)
def kuberay_patch_object(scope: Scope, obj: Manifest, options: Options) -> Patch | None:
    """Change any other child object (Service, Secret, Role, ...) before it is compared and applied.

    Also those that plugins add.
    """


@_in(Family.BUILDING)
def kuberay_extra_objects(scope: Scope, options: Options) -> Iterable[Manifest]:  # type: ignore[empty-body]
    """Further child objects of the owner. The core sets the owner, compares, applies and prunes them.

    Each needs a name, and its kind must be among the plugin's watches. Pods are not made this way; a Job is.
    """


# --------------------------------------------------------------------------------------------------------
# 3. Phases of a pass: awaited
# --------------------------------------------------------------------------------------------------------


@_in(Family.PHASE)
async def kuberay_before_reconcile(scope: Scope, options: Options) -> Verdict | None:
    """Asked after everything was read and before anything is decided. May hold or refuse the pass.

    Not asked for an object that is being deleted: a plugin cannot hold a deletion here.
    """


@_in(Family.PHASE)
async def kuberay_before_act(scope: Scope, plan: Sequence[Any], options: Options) -> Verdict | None:
    """Asked before the first write, with the actions that will be taken. May hold, not edit."""


@_in(Family.WATCHING)
async def kuberay_after_act(
    scope: Scope, plan: Sequence[Any], outcomes: Sequence[Any], options: Options
) -> None:
    """Told what was done and how each action ended."""


@_in(Family.WATCHING)
async def kuberay_on_reconcile_error(scope: Scope, error: Exception, options: Options) -> None:
    """Told that the pass failed, and why."""


@_in(Family.WATCHING)
async def kuberay_after_reconcile(scope: Scope, outcome: str, seconds: float, options: Options) -> None:
    """Told how a pass ended (``success``, ``error``, ``waiting``, ``refused``) and how long it took."""


# --------------------------------------------------------------------------------------------------------
# 4. Scheduling: one provider, chosen by its name
# --------------------------------------------------------------------------------------------------------


@_in(Family.SCHEDULING)
def kuberay_gang_objects(scope: Scope, gang: Gang, options: Options) -> Iterable[Manifest]:  # type: ignore[empty-body]
    """The scheduler's own objects for a gang (a PodGroup, say). Sync and pure, as building hooks are."""


@_in(Family.SCHEDULING)
async def kuberay_admit_gang(scope: Scope, gang: Gang, options: Options) -> Verdict | None:
    """May the Pods of the gang be made now? Asked before they are. Other objects are made either way."""


@_in(Family.SCHEDULING)
def kuberay_schedule_child(scope: Scope, child: Manifest, group: Group, options: Options) -> Patch | None:
    """Hand a Pod or Pod template to the scheduler: its name, labels, annotations. Sync and pure.

    In K8sJobMode the RayCluster that a RayJob makes is shown, too, with a group of the role ``cluster`` that
    has no name: what is put on it, its own Pods do not get.
    """


@_in(Family.SCHEDULING)
async def kuberay_release_gang(scope: Scope, gang: Gang, options: Options) -> Verdict | None:
    """The gang's owner is being deleted: free what was reserved. Called again until Done.

    An owner without finalizers is gone at once: a plugin that must be asked before also claims a finalizer.
    """


# --------------------------------------------------------------------------------------------------------
# 5. Finalization
# --------------------------------------------------------------------------------------------------------


@_in(Family.BUILDING)
def kuberay_finalizers(scope: Scope, options: Options) -> Iterable[str]:  # type: ignore[empty-body]
    """Finalizers the owner must carry while it lives. They are set before any child is made.

    Each is named ``ray.io/something``: such a one is released when its plugin is gone, so that no object
    gets stuck.
    """


@_in(Family.FINALIZATION)
async def kuberay_finalize(scope: Scope, finalizer: str, options: Options) -> Verdict | None:
    """The owner is being deleted: clean up for this finalizer. Done removes it; Wait asks again.

    None means "not mine". A finalizer of ours that no enabled plugin claims is removed with an event.
    """


# --------------------------------------------------------------------------------------------------------
# 6. Admission: sync and pure
# --------------------------------------------------------------------------------------------------------


@_in(Family.ADMISSION)
def kuberay_default(obj: Manifest, options: Options) -> Patch | None:
    """Fill in what the user left out of the spec, in memory; the stored object is not changed."""


@_in(Family.ADMISSION)
def kuberay_validate(obj: Manifest, options: Options) -> Iterable[Problem]:  # type: ignore[empty-body]
    """Further mistakes in a custom resource. Errors stop it as our own rules do; warnings become events.

    With the webhook on it is asked before the object is stored, too: an error refuses it, and warnings are
    shown to whoever writes it.
    """


#: Hooks whose implementations may be ``async def``.
AWAITED: Final = frozenset(name for name in FAMILIES if inspect.iscoroutinefunction(globals()[name]))

#: Hooks that are called while a plan is built.
BUILDING: Final = frozenset(
    name for name, family in FAMILIES.items() if name not in AWAITED and family is not Family.REGISTRATION
)
