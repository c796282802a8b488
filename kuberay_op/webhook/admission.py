"""Decides about one request of the API server: store this object, or not, and what to say about it.

Refused is what our rules or a plugin's find wrong and was not wrong before: a webhook that is switched on
later must not lock people out of objects that exist. What is being deleted always passes, so that nothing we
say can keep an object from going.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from kuberay_op.api.meta import GROUP
from kuberay_op.api.predicates import GateQuery, externally_managed
from kuberay_op.api.problems import Problem
from kuberay_op.api.raycluster import RayCluster
from kuberay_op.api.rayjob import RayJob
from kuberay_op.api.rayservice import RayService
from kuberay_op.api.validation import admission_problems, validate, warnings
from kuberay_op.frozen import freeze
from kuberay_op.hooks.dispatch import PluginError
from kuberay_op.hooks.isolation import about
from kuberay_op.hooks.typed import Hooks

#: The paths of the reference, and the kind of each.
PATHS: Final[Mapping[str, type[RayCluster] | type[RayJob] | type[RayService]]] = {
    "/validate-ray-io-v1-raycluster": RayCluster,
    "/validate-ray-io-v1-rayjob": RayJob,
    "/validate-ray-io-v1-rayservice": RayService,
}

#: Seconds for all plugins together; the API server gives us ten by default.
PLUGIN_SECONDS: Final = 5.0

#: Warnings in an answer, and characters of each; the API server cuts more off.
MOST_WARNINGS: Final = 20
WARNING_LENGTH: Final = 256

#: Mistakes that one refusal names.
MOST_PROBLEMS: Final = 20

Json = dict[str, Any]


class NotAReview(ValueError):
    """The request is not what an API server would send."""


@dataclass(frozen=True, slots=True)
class Findings:
    """What is wrong with an object, and what is only worth knowing."""

    errors: tuple[Problem, ...] = ()
    warnings: tuple[str, ...] = ()


class Judge:
    """Answers requests with our rules and the plugins' ``kuberay_default`` and ``kuberay_validate``."""

    def __init__(self, hooks: Hooks, gates: GateQuery) -> None:
        self._hooks = hooks
        self._gates = gates

    async def review(self, kind: str, body: bytes) -> bytes:
        """The answer to an AdmissionReview about an object of this kind; raises :class:`NotAReview`."""
        # In a thread, like all that takes longer the larger the object is.
        request = await asyncio.to_thread(_request, kind, body)
        obj, old = request.get("object"), request.get("oldObject")
        found = Findings() if obj is None or _passes(request, obj) else await self._findings(obj, old)
        return orjson.dumps(answer(kind, request, found))

    async def _findings(self, obj: Json, old: Json | None) -> Findings:
        with about(str(obj["metadata"].get("uid", ""))):
            errors, said = await self._look(obj)
            if errors and old is not None:
                before, _ = await self._look(old)
                known = {_what(problem) for problem in before}
                said = [*(str(problem) for problem in errors if _what(problem) in known), *said]
                errors = [problem for problem in errors if _what(problem) not in known]
        return Findings(tuple(errors), tuple(said))

    async def _look(self, obj: Json) -> tuple[list[Problem], list[str]]:
        """The errors and warnings about one object."""
        errors, found = await asyncio.to_thread(own_problems, obj, self._gates)
        said = [str(problem) for problem in found]
        try:
            async with asyncio.timeout(PLUGIN_SECONDS):
                theirs = await self._hooks.dispatcher.in_thread(lambda: self._ask(obj))
        except (PluginError, TimeoutError) as error:
            # The controllers ask again before they act: nothing comes of the object while a plugin is silent.
            reason = str(error) or f"no answer within {PLUGIN_SECONDS:g} s"
            said.append(f"not checked by all plugins: {reason}; the operator asks again before it acts")
            return errors, said
        for problem in theirs:
            if problem.severity == "error":
                errors.append(problem)
            else:
                said.append(str(problem))
        return errors, said

    def _ask(self, obj: Json) -> list[Problem]:
        built = self._hooks.default(freeze(obj))
        return [
            Problem(found.path, f"{found.message} (plugin {plugin})", found.value, found.severity, found.rule)
            for plugin, found in self._hooks.validate(built.obj)
        ]


def own_problems(obj: Json, gates: GateQuery) -> tuple[list[Problem], list[Problem]]:
    """Errors and warnings by our own rules. Pure.

    The status is none of the user's doing, and the spec of an object that another controller manages is for
    that controller to judge.
    """
    errors = admission_problems(obj)
    views = {view.KIND: view for view in PATHS.values()}
    if not externally_managed(views[obj["kind"]](obj).spec):
        said = {_what(problem) for problem in errors}
        errors += [
            problem
            for problem in validate(obj, gates)
            if problem.path[:1] != ("status",) and _what(problem) not in said
        ]
    wrong = {problem.path for problem in errors}
    return errors, [
        problem
        for problem in warnings(obj, gates)
        if not any(problem.path[: len(path)] == path for path in wrong)
    ]


def answer(kind: str, request: Json, found: Findings) -> Json:
    """The AdmissionReview that answers a request. Pure."""
    response: Json = {"uid": request["uid"], "allowed": not found.errors}
    if found.errors:
        response["status"] = refusal(kind, _name(request), found.errors)
    if found.warnings:
        response["warnings"] = [_cut(text, WARNING_LENGTH) for text in found.warnings[:MOST_WARNINGS]]
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}


def refusal(kind: str, name: str, problems: tuple[Problem, ...]) -> Json:
    """The status with which the API server refuses an object; it names every field."""
    shown = problems[:MOST_PROBLEMS]
    text = "; ".join(map(str, shown))
    more = len(problems) - len(shown)
    if more:
        text += f" (and {more} more)"
    causes = [
        {"reason": "FieldValueInvalid", "field": problem.path_text, "message": problem.message}
        for problem in shown
    ]
    return {
        "code": 422,
        "reason": "Invalid",
        "message": f'{kind}.{GROUP} "{name}" is invalid: {text}',
        "details": {"group": GROUP, "kind": kind, "name": name, "causes": causes},
    }


def _request(kind: str, body: bytes) -> Json:
    """The request in an AdmissionReview, checked as far as we rely on it."""
    try:
        review = orjson.loads(body)
        request = review["request"]
        known = isinstance(request["uid"], str) and review["kind"] == "AdmissionReview"
        obj = request.get("object")
        known = known and (obj is None or (obj["kind"] == kind and isinstance(obj["metadata"], dict)))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise NotAReview("the body is not an AdmissionReview of admission.k8s.io/v1") from error
    if not known:
        raise NotAReview(f"the body is not an AdmissionReview about a {kind}")
    found: Json = request
    return found


def _passes(request: Json, obj: Json) -> bool:
    """Whether nothing is asked: only what is made or changed, and not on its way out, is looked at."""
    return request.get("operation") not in ("CREATE", "UPDATE") or bool(
        obj["metadata"].get("deletionTimestamp")
    )


def _what(problem: Problem) -> tuple[str, str]:
    """What makes two problems the same: the rule, and where. Plugins' rules have no id, but a text."""
    return problem.rule or problem.message, problem.path_text


def _name(request: Json) -> str:
    metadata = request["object"]["metadata"]
    return str(request.get("name") or metadata.get("name") or metadata.get("generateName") or "")


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"
