"""What a kind wants of its children, completed with what plugins want, and who asked for what. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from kuberay_op.controllers.act import kind_of, named
from kuberay_op.controllers.owner import owned
from kuberay_op.frozen import FrozenDict, freeze
from kuberay_op.hooks.patches import Change
from kuberay_op.hooks.scope import Scope, Watch
from kuberay_op.hooks.typed import Hooks
from kuberay_op.plan.actions import Cause, Desired, Manifest, Wanted
from kuberay_op.plan.diff import identity
from kuberay_op.plan.fields import with_fields


def with_plugins(
    wanted: Wanted,
    hooks: Hooks,
    scope: Scope,
    *,
    missing: Mapping[tuple[str, str], Watch],
    refuses: Callable[[Manifest], str],
) -> tuple[Wanted, list[str]]:
    """What is wanted, with what plugins add; and a sentence for each API they need that is ``missing``.

    ``refuses`` says why an object cannot be made here. One that cannot is its plugin's failure.
    """
    desired = list(wanted.objects)
    made_by = {identity(item.obj): "the operator" for item in desired}
    lacking: set[str] = set()
    for extra in [*hooks.extra_objects(scope), *hooks.gang_objects(scope, scope.gang)]:
        watch = missing.get(kind_of(extra.obj))
        if watch is not None:
            if not watch.optional:
                lacking.add(missing_api(extra.plugin, watch))
            continue
        name = identity(extra.obj)
        mistake = refuses(extra.obj)
        if name in made_by:
            mistake = f"{named(extra.obj)} is made by {made_by[name]} already"
        if mistake:
            raise hooks.dispatcher.blame(extra.plugin, extra.hook, mistake)
        made_by[name] = f"plugin {extra.plugin!r}"
        built = hooks.patch_object(scope, owned(extra.obj, scope.owner, extra.plugin))
        made, why = extra.made, f"plugin {extra.plugin} asks for it"
        causes = (Cause(extra.plugin, extra.hook, made.step), *causes_of(built.changes))
        desired.append(
            Desired(with_fields(built.obj), why, causes, replace=made.replace, releases=made.releases)
        )
    # Frozen, since plugins get to see the plan.
    return Wanted(
        [replace(item, obj=freeze(item.obj)) for item in desired],
        tuple(
            action if isinstance(action.obj, FrozenDict) else replace(action, obj=freeze(action.obj))
            for action in wanted.actions
        ),
        wanted.problem,
    ), sorted(lacking)


def causes_of(changes: Sequence[Change]) -> tuple[Cause, ...]:
    """The plugins behind an object's changes, as a plan names them."""
    return tuple(Cause(change.plugin, change.hook, change.patch.step, change.patch) for change in changes)


def missing_api(plugin: str, watch: Watch) -> str:
    """What to say about an API that the cluster lacks."""
    return (
        f"plugin {plugin}: this cluster does not serve {watch.kind} of {watch.api_version}; "
        "install it and restart the operator"
    )
