"""The configuration file: what the reference accepts is accepted and means the same; the rest is named."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kuberay_op.config import SETTINGS, Config
from kuberay_op.config.file import FileSettings, read
from kuberay_op.config.goyaml import Unreadable, load

HEADER = "apiVersion: config.ray.io/v1alpha1\nkind: Configuration\n"


def values(text: str) -> dict[str, Any]:
    """The settings of a file that is right in every way."""
    found = read(HEADER + text, "c.yaml")
    assert (found.problems, found.warnings) == ([], [])
    return found.values


# What the reference's parser makes of these was found out by running it.
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("burst: 300", {"burst": 300}),
        ("burst: 300.0", {"burst": 300}),
        ("burst: 3e2", {"burst": 300}),
        ("burst: 0x10", {"burst": 16}),
        ("burst: 010", {"burst": 8}),
        ("burst: 1_000", {"burst": 1000}),
        ("burst: +5", {"burst": 5}),
        ("burst: !!int '5'", {"burst": 5}),
        ("burst: null", {}),
        ("burst:", {}),
        ("burst: ~", {}),
        ("qps: 150", {"qps": 150.0}),
        ("qps: .5", {"qps": 0.5}),
        ("qps: 1e2", {"qps": 100.0}),
        ("qps: 0o17", {"qps": 15.0}),
        ("qps: 1_000.5", {"qps": 1000.5}),
        ("enableMetrics: yes", {"enable_metrics": True}),
        ("enableMetrics: y", {"enable_metrics": True}),
        ("enableMetrics: NO", {"enable_metrics": False}),
        ("metricsAddr: 1:30", {"metrics_addr": "1:30"}),
        ("metricsAddr: =", {"metrics_addr": "="}),
        ("logFile: 2024-01-01", {"log_file": "2024-01-01"}),
        ("logFile: !!str 5", {"log_file": "5"}),
        ("metricsAddr: null", {}),
        ("metricsAddr: ''", {}),
        ("<<: {burst: 4}", {"burst": 4}),
        ("defaultPodLabels: {a: b}", {"default_pod_labels": {"a": "b"}}),
        ("defaultPodLabels: {a: null}", {"default_pod_labels": {"a": ""}}),
        ("defaultPodLabels: {1: b}", {"default_pod_labels": {"1": "b"}}),
        ("watchNamespace: a,b", {"watch_namespaces": "a,b"}),
        (
            "defaultContainerEnvs: [{name: a, value: b}]",
            {"default_container_envs": ({"name": "a", "value": "b"},)},
        ),
        (
            "headSidecarContainers: [{name: a, resources: {limits: {cpu: 1}}}]",
            {"head_sidecar_containers": ({"name": "a", "resources": {"limits": {"cpu": 1}}},)},
        ),
    ],
)
def test_values(text: str, expected: dict[str, Any]) -> None:
    assert values(text) == expected


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("burst: 300.5", "c.yaml:3: burst is 300.5; allowed is a whole number"),
        ("burst: '3'", 'c.yaml:3: burst is "3"; allowed is a whole number'),
        ("burst: 99999999999999999999", "burst is 99999999999999999999; allowed is a whole number"),
        ("reconcileConcurrency: true", "c.yaml:3: reconcileConcurrency is true; allowed is a whole number"),
        ("qps: .inf", "qps is Infinity; allowed is a number"),
        ("qps: '5'", 'qps is "5"; allowed is a number'),
        ("qps: 190:20:30", 'qps is "190:20:30"; allowed is a number'),
        ("qps: [1]", "qps is a list; allowed is a number"),
        ("enableMetrics: 'true'", 'enableMetrics is "true"; allowed is true or false'),
        ("enableMetrics: 1", "enableMetrics is 1; allowed is true or false"),
        ("metricsAddr: 8080", "metricsAddr is 8080; allowed is a string; put it in quotes"),
        ("metricsAddr: yes", "metricsAddr is true; allowed is a string; put it in quotes"),
        ("metricsAddr: {}", "metricsAddr is an object; allowed is a string"),
        ("defaultPodLabels: {a: 1}", "defaultPodLabels.a is a number; allowed is a string; put it in quotes"),
        (
            "defaultPodLabels: {y: n}",
            "defaultPodLabels.true is a boolean; allowed is a string; put it in quotes",
        ),
        ("defaultPodLabels: []", "defaultPodLabels is a list; allowed is a map of strings"),
        ("headSidecarContainers: {}", "headSidecarContainers is an object; allowed is a list of containers"),
        (
            "headSidecarContainers: [{name: 1}]",
            "headSidecarContainers[0].name is a number; allowed is a string",
        ),
        ("headSidecarContainers: [x]", "headSidecarContainers[0] is a string; allowed is a container"),
        (
            "workerSidecarContainers: [{name: a, ports: [{containerPort: '80'}]}]",
            "workerSidecarContainers[0].ports[0].containerPort is a string; allowed is a whole number",
        ),
        (
            "headSidecarContainers:\n- name: a\n  env:\n  - name: B\n    value: 7",
            "c.yaml:7: headSidecarContainers[0].env[0].value is a number; allowed is a string; put it",
        ),
        ("headSidecarContainers: [{name: a, command: ls}]", "[0].command is a string; allowed is a list"),
        ("a: [", "c.yaml:3: not readable as YAML: "),
        ("a: *b", "c.yaml:3: not readable as YAML: found undefined alias 'b'"),
        ("\tburst: 1", "c.yaml:3: not readable as YAML: "),
        ("a: &a [*a]", "c.yaml:3: not readable as YAML: a value contains itself"),
        ("burst: !!int x", "not readable as YAML: 'x' is no number"),
        ("? [a]\n: b", "not readable as YAML: a key must be a word"),
    ],
)
def test_problems(text: str, problem: str) -> None:
    found = read(HEADER + text, "c.yaml")
    assert len(found.problems) == 1, found.problems
    assert problem in found.problems[0]
    assert found.values == {}


def test_a_wrong_value_in_a_variable_is_not_quoted() -> None:
    found = read(HEADER + "defaultContainerEnvs: [{name: PASSWORD, value: 123456}]", "c.yaml")
    assert "123456" not in str(found.problems)


def test_all_mistakes_come_at_once_each_with_its_line() -> None:
    text = HEADER + "burst: 1.5\nqps: x\nmetricsAdr: ':1'\nenableMetrics: 3\n"
    found = read(text, "c.yaml")
    assert [problem.split(":")[1] for problem in found.problems] == ["3", "4", "6"]
    assert [warning.split(":")[1] for warning in found.warnings] == ["5"]


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        (HEADER + "unknownfield: 1", "c.yaml:3: unknownfield is unknown and does nothing"),
        (HEADER + "metricsAdr: x", "metricsAdr is unknown and does nothing; did you mean metricsAddr?"),
        (HEADER + "Burst: 5", "Burst is unknown and does nothing; did you mean burst?"),
        (HEADER + "reconcile-concurrency: 5", "did you mean reconcileConcurrency?"),
        (HEADER + "burst: 1\nburst: 2", "c.yaml:4: burst is given twice; the last counts"),
        (HEADER + "burst: 1\n---\nburst: 2", "c.yaml: only the first document of the file is read"),
        (
            "burst: 1\nkind: Configuration",
            "c.yaml: apiVersion is missing; write `apiVersion: config.ray.io/v1alpha1`",
        ),
        ("apiVersion: config.ray.io/v1alpha1", "c.yaml: kind is missing; write `kind: Configuration`"),
        ("", "c.yaml: the file is empty; every setting has its default"),
        ("# nothing\n", "the file is empty"),
        (
            HEADER + "headSidecarContainers: [{image: a}]",
            "headSidecarContainers[0] has no name; Kubernetes will refuse",
        ),
        (
            HEADER + "headSidecarContainers: [{name: a, imagee: b}]",
            "imagee is unknown and does nothing; did you mean image?",
        ),
        (HEADER + "defaultContainerEnvs: [{value: x}]", "defaultContainerEnvs[0] has no name"),
    ],
)
def test_warnings(text: str, warning: str) -> None:
    found = read(text, "c.yaml")
    assert found.problems == []
    assert len(found.warnings) == 1, found.warnings
    assert warning in found.warnings[0]


def test_of_a_repeated_key_the_last_counts() -> None:
    assert read(HEADER + "burst: 1\nburst: 2", "c.yaml").values == {"burst": 2}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "apiVersion: config.ray.io/v1\nkind: Configuration",
            "apiVersion is 'config.ray.io/v1'; allowed is config.ray",
        ),
        (
            "apiVersion: config.ray.io/v1alpha1\nkind: Config",
            "c.yaml:2: kind is 'Config'; allowed is Configuration",
        ),
        ("[1]", "c.yaml: the file must hold an object of kind Configuration"),
        ("hello", "c.yaml: the file must hold an object of kind Configuration"),
    ],
)
def test_another_kind_is_a_problem(text: str, problem: str) -> None:
    found = read(text, "c.yaml")
    assert len(found.problems) == 1
    assert problem in found.problems[0]


def test_json_with_tabs_is_read() -> None:
    text = '\ufeff{\n\t"apiVersion": "config.ray.io/v1alpha1",\n\t"kind": "Configuration",\n\t"burst": 3\n}'
    found = read(text, "c.json")
    assert (found.values, found.warnings, found.problems) == ({"burst": 3}, [], [])
    assert found.places == {"burst": "c.json"}


def test_every_key_of_the_reference_is_known() -> None:
    keys = {setting.key for setting in SETTINGS}
    assert keys >= {
        *("metricsAddr", "probeAddr", "enableLeaderElection", "reconcileConcurrency", "qps", "burst"),
        *("leaderElectionNamespace", "watchNamespace", "logFile", "batchScheduler", "logFileEncoder"),
        *("logStdoutEncoder", "enableBatchScheduler", "useKubernetesProxy", "enableMetrics"),
        *("deleteRayJobAfterJobFinishes", "headSidecarContainers", "workerSidecarContainers"),
        *("defaultContainerEnvs", "defaultPodAnnotations", "defaultPodLabels"),
    }


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10)
TREES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from([setting.key for setting in SETTINGS if setting.key])


@given(st.dictionaries(KEYS | st.text(max_size=8), TREES, max_size=6))
def test_any_object_is_read_and_what_is_taken_fits_the_configuration(tree: dict[str, Any]) -> None:
    text = yaml.safe_dump({"apiVersion": "config.ray.io/v1alpha1", "kind": "Configuration", **tree})
    found = read(text, "c.yaml")
    assert set(found.values) == set(found.places)
    Config(**found.values)


@given(st.text(max_size=80))
def test_any_text_is_read_without_an_exception(text: str) -> None:
    assert isinstance(read(text, "c.yaml"), FileSettings)


@given(st.dictionaries(st.text(max_size=8), TREES, max_size=4))
def test_json_reads_as_json(tree: dict[str, Any]) -> None:
    text = json.dumps(tree)
    assert json.dumps(load(text).value) == text


@pytest.mark.parametrize("text", ["[" * 5000, "{a: " * 5000])
def test_absurd_nesting_is_refused(text: str) -> None:
    with pytest.raises(Unreadable):
        load(text)
