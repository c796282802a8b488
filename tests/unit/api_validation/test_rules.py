"""Every rule has cases that keep it and cases that break it, in ``cases/*.yaml``.

A case names the rule, the changes that break it (``bad``) and changes near to them that do not (``good``):
paths with dots, each with its new value, null to remove it; or a list of such sets. The object they change is
a small one of the rule's kind, without any problem. Broken, exactly that rule must complain, at the path
``at`` and with the text ``says`` in its message; kept, nothing may be wrong at all.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from kuberay_op.api.defaults import with_defaults
from kuberay_op.api.problems import Problem
from kuberay_op.api.validation import CATALOGUE, admission_problems, validate, warnings
from kuberay_op.api.validation.whole import examine
from kuberay_op.features import Gates
from kuberay_op.testing import make
from kuberay_op.testing.changes import changed

Json = dict[str, Any]

MAKERS: dict[str, Any] = {
    "RayCluster": make.raycluster,
    "RayJob": make.rayjob,
    "RayService": make.rayservice,
    "RayCronJob": make.raycronjob,
}

CASES: list[Json] = [
    case
    for file in sorted(Path(__file__).parent.glob("cases/*.yaml"))
    for case in yaml.safe_load(file.read_text())
]


def small(kind: str) -> Json:
    """A small object of the kind, without any problem."""
    made: Json = MAKERS[kind]("a", make.workers(1, "small", maxReplicas=5))
    return changed(made, {"spec.shutdownAfterJobFinishes": None})


def sets(value: Json | list[Json]) -> list[Json]:
    return value if isinstance(value, list) else [value]


def problems(case: Json, changes: Json) -> list[Problem]:
    kind = case.get("kind", "RayCluster")
    overrides = ",".join(f"{name}={str(on).lower()}" for name, on in case.get("gates", {}).items())
    gates = Gates.default().with_overrides(overrides).enabled
    obj = with_defaults(changed(small(kind), changes))
    for path in sets(case.get("undefault", [])):
        obj = changed(obj, {str(path): None})
    if case["rule"].startswith("webhook."):
        return admission_problems(obj)
    if case["rule"].startswith("warning."):
        return warnings(obj, gates)
    return validate(obj, gates, cert_manager=case.get("certManager"))


def broken() -> list[Any]:
    return [
        pytest.param(case, changes, id=f"{case['rule']}-{number}")
        for case in CASES
        for number, changes in enumerate(sets(case["bad"]))
    ]


def kept() -> list[Any]:
    return [
        pytest.param(case, changes, id=f"{case['rule']}-{number}")
        for case in CASES
        for number, changes in enumerate(sets(case["good"]))
    ]


@pytest.mark.parametrize(("case", "changes"), broken())
def test_broken(case: Json, changes: Json) -> None:
    found = problems(case, changes)
    expected = {case["rule"], *case.get("also", [])}
    assert {problem.rule for problem in found} == expected, [str(problem) for problem in found]
    mine = [problem for problem in found if problem.rule == case["rule"]]
    assert case["at"] in [problem.path_text for problem in mine]
    assert any(case["says"] in problem.message for problem in mine), [problem.message for problem in mine]
    wanted = "warning" if case["rule"].startswith("warning.") else "error"
    assert {problem.severity for problem in mine} == {wanted}


@pytest.mark.parametrize(("case", "changes"), kept())
def test_kept(case: Json, changes: Json) -> None:
    found = problems(case, changes)
    allowed = set(case.get("allowed", []))
    assert [str(problem) for problem in found if problem.rule not in allowed] == []
    assert case["rule"] not in {problem.rule for problem in found}


def test_every_rule_has_both_kinds_of_cases() -> None:
    assert {case["rule"] for case in CASES if sets(case["bad"])} == set(CATALOGUE)
    assert {case["rule"] for case in CASES if sets(case["good"])} == set(CATALOGUE)


@pytest.mark.parametrize("kind", MAKERS)
def test_the_small_objects_have_no_problem(kind: str) -> None:
    gates = Gates.default().with_overrides("RayCronJob=true").enabled
    assert [str(problem) for problem in examine(small(kind), gates)] == []


def test_summaries_are_sentences_and_ids_are_orderly() -> None:
    for info in CATALOGUE.values():
        assert re.fullmatch(r"[A-Za-z].*\.", info.summary), info
        assert re.fullmatch(
            r"(ray\w+\.(metadata|spec|status|tls|upgrade)|webhook)(\.\d+)+|warning\.[a-z0-9-]+", info.id
        )
        assert info.severity == ("warning" if info.id.startswith("warning.") else "error")


def test_messages_never_show_what_may_be_a_secret() -> None:
    secret = "hunter2-is-secret"
    env = [
        {"name": name, "value": secret} for name in ("REDIS_PASSWORD", "RAY_REDIS_ADDRESS", "REDIS_USERNAME")
    ]
    obj = changed(
        small("RayCluster"),
        {
            "spec.headGroupSpec.template.spec.containers.0.env": env,
            "spec.headGroupSpec.rayStartParams.redis-password": secret,
            "spec.headGroupSpec.rayStartParams.redis-username": secret,
            "spec.gcsFaultToleranceOptions": {
                "backend": "rocksdb",
                "redisAddress": secret,
                "redisPassword": {"value": secret},
                "redisUsername": {"value": secret},
            },
        },
    )
    found = validate(obj)
    assert len(found) > 6
    assert not [problem for problem in found if secret in f"{problem} {problem.value!r}"]
