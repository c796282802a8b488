"""The plugin contract: hooks, verdicts, patches, and what a hook gets to see.

This is what a plugin imports::

    from kuberay_op.hooks import Merge, Scope, hookimpl
"""

from kuberay_op.api.problems import Problem
from kuberay_op.hooks.patches import JsonPatch, Made, Manifest, Merge, Patch
from kuberay_op.hooks.scope import Gang, GangMember, Group, PolicyRule, Scope, Watch
from kuberay_op.hooks.specs import CONTRACT, Options, hookimpl
from kuberay_op.hooks.verdicts import Done, Refuse, Verdict, Wait

__all__ = [
    "CONTRACT",
    "Done",
    "Gang",
    "GangMember",
    "Group",
    "JsonPatch",
    "Made",
    "Manifest",
    "Merge",
    "Options",
    "Patch",
    "PolicyRule",
    "Problem",
    "Refuse",
    "Scope",
    "Verdict",
    "Wait",
    "Watch",
    "hookimpl",
]
