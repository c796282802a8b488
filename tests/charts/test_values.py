"""Values that are wrong are refused by name, and those that are right reach the operator."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from kuberay_op.config import WORKLOAD_AWARE, resolve
from kuberay_op.features import GATES, Gates
from kuberay_op.loader.choose import Wanted
from kuberay_op.loader.discover import discover
from kuberay_op.loader.load import load_plugins
from kuberay_op.rbac import cluster_role, leader_role, webhook_role, webhook_rules
from tests.charts.cases import cases, objects_of
from tests.charts.helm import CHARTS, Json, container, helm, of_kind, refusal, rendered, template

OPERATOR = "kuberay-operator"

WRONG: list[tuple[str, Json, str]] = [
    (OPERATOR, {"replicaCount": 1}, "additional properties 'replicaCount' not allowed"),
    (OPERATOR, {"image": {"name": "x"}}, "at '/image': additional properties 'name' not allowed"),
    (OPERATOR, {"metrics": {"podMonitor": {"enable": True}}}, "additional properties 'enable' not allowed"),
    (
        OPERATOR,
        {"logging": {"stdoutEncoder": "xml"}},
        "'/logging/stdoutEncoder': value must be one of 'json'",
    ),
    (OPERATOR, {"reconcileConcurrency": 0}, "'/reconcileConcurrency': minimum: got 0, want 1"),
    (OPERATOR, {"reconcileConcurrency": "many"}, "'/reconcileConcurrency': 'many' does not match pattern"),
    (OPERATOR, {"kubeClient": {"qps": -1}}, "'/kubeClient/qps': minimum: got -1, want 0"),
    (OPERATOR, {"kubeClient": {"burst": 1.5}}, "'/kubeClient/burst': got number, want integer or string"),
    (OPERATOR, {"replicas": -1}, "'/replicas': minimum: got -1, want 0"),
    (OPERATOR, {"watchNamespace": "a,b"}, "'/watchNamespace': got string, want null or array"),
    (OPERATOR, {"featureGates": [{"name": "RayCronJob"}]}, "'/featureGates/0': missing property 'enabled'"),
    (
        OPERATOR,
        {"plugins": {"volcano": {"enable": True}}},
        "'/plugins/volcano': additional properties 'enable'",
    ),
    (OPERATOR, {"plugins": {"volcanno": {}}}, "plugins.volcanno: there is no such plugin; known are"),
    (
        OPERATOR,
        {"batchScheduler": {"name": "default"}},
        "batchScheduler.name: no plugin provides default; allowed",
    ),
    (
        OPERATOR,
        {"batchScheduler": {"name": "yunikorn", "enabled": True}},
        "batchScheduler.enabled is the old way to say batchScheduler.name: volcano",
    ),
    (
        OPERATOR,
        {"batchScheduler": {"name": "yunikorn"}, "plugins": {"volcano": {}}},
        "there can be one batch scheduler, but these are asked for: yunikorn, volcano",
    ),
    (
        OPERATOR,
        {"batchScheduler": {"name": "volcano"}, "featureGates": [{"name": "KubernetesWAS", "enabled": True}]},
        "KubernetesWAS schedules gangs itself; leave out the batch scheduler volcano",
    ),
    (
        OPERATOR,
        {
            "yamlPlugins": {
                "volcano": {"apiVersion": "kuberay-op/v1alpha1", "kind": "Plugin", "name": "volcano"}
            }
        },
        "yamlPlugins.volcano: the image has a plugin of this name",
    ),
    (
        OPERATOR,
        {"yamlPlugins": {"a": {"apiVersion": "kuberay-op/v1alpha1", "kind": "Plugin", "name": "b"}}},
        "yamlPlugins.a: its manifest says name: b",
    ),
    (OPERATOR, {"extraPlugins": [{"name": "volcano"}]}, "there is a plugin volcano already"),
    (
        OPERATOR,
        {"singleNamespaceInstall": True, "webhook": {"enabled": True}},
        "webhook.enabled: with singleNamespaceInstall the operator may not tell",
    ),
    ("ray-cluster", {"hed": {}}, "additional properties 'hed' not allowed"),
    ("ray-cluster", {"worker": {"replica": 1}}, "at '/worker': additional properties 'replica' not allowed"),
    (
        "ray-cluster",
        {"additionalWorkerGroups": {"gpu": {"rayStartParam": {}}}},
        "at '/additionalWorkerGroups/gpu': additional properties 'rayStartParam' not allowed",
    ),
    ("ray-cluster", {"networkPolicy": {"mod": "DenyAll"}}, "'/networkPolicy': additional properties 'mod'"),
    ("ray-cluster", {"head": {"autoscalerOptions": {"version": "v3"}}}, "value must be one of 'v1', 'v2'"),
    ("ray-cluster", {"fullnameOverride": "x" * 54}, "which has 54 characters; the operator allows 53"),
]


@pytest.mark.parametrize(("chart", "values", "says"), WRONG, ids=[says[:40] for _, _, says in WRONG])
def test_what_is_wrong_is_named(chart: str, values: Json, says: str) -> None:
    assert says in refusal(chart, values)


@pytest.mark.parametrize("chart", [OPERATOR, "ray-cluster"])
def test_helm_has_nothing_to_say_against_it(chart: str) -> None:
    done = helm("lint", "--strict", str(CHARTS / chart))
    assert done.returncode == 0, done.stdout
    assert "[WARNING]" not in done.stdout
    assert "[ERROR]" not in done.stdout


def test_values_that_charts_share_are_let_through() -> None:
    shared = {"global": {"anything": {"at": "all"}}}
    assert rendered(OPERATOR, shared) == objects_of(OPERATOR, "default")
    assert rendered("ray-cluster", shared) == objects_of("ray-cluster", "default")


@pytest.mark.parametrize("chart", [OPERATOR, "ray-cluster"])
def test_every_value_is_described(chart: str) -> None:
    """In values.yaml and README.md; a value without a comment would be in neither table."""
    readme = (CHARTS / chart / "README.md").read_text("utf-8").partition("\n## Values\n")[2]
    values = yaml.safe_load((CHARTS / chart / "values.yaml").read_text("utf-8"))
    listed = set(re.findall(r"^\| `([\w.]+)`", readme, re.MULTILINE))

    def missing(level: Json, prefix: str) -> list[str]:
        found = []
        for key, value in level.items():
            path = f"{prefix}{key}"
            inside = any(each.startswith(f"{path}.") for each in listed)
            if path not in listed and not inside:
                found.append(path)
            elif inside:
                found += missing(value, f"{path}.")
        return found

    assert missing(values, "") == []


# --- what reaches the operator


def started_with(objects: list[Json]) -> tuple[list[str], dict[str, str]]:
    """The operator's arguments, and its configuration files by path."""
    maps = {each["metadata"]["name"]: each.get("data", {}) for each in objects if each["kind"] == "ConfigMap"}
    pod = of_kind(objects, "Deployment")["spec"]["template"]["spec"]
    folders = {
        mount["name"]: mount["mountPath"] for mount in container(objects)["volumeMounts"] if "name" in mount
    }
    files = {
        f"{folders[volume['name']]}/{name}": content
        for volume in pod["volumes"]
        if "configMap" in volume and volume["name"] in ("config", "plugins")
        for name, content in maps[volume["configMap"]["name"]].items()
    }
    return container(objects)["args"], files


@pytest.mark.parametrize("case", cases(OPERATOR))
def test_the_operator_understands_what_it_is_told(case: str) -> None:
    objects = objects_of(OPERATOR, case)
    arguments, files = started_with(objects)
    environment = {
        each["name"]: each["value"] for each in container(objects).get("env", ()) if "value" in each
    }
    resolved = resolve(arguments, environment, files.__getitem__, gates=Gates.default())
    expected = 1 if case == "volcano-old" else 0  # the old way to choose Volcano is deprecated
    assert len(resolved.warnings) == expected, resolved.warnings
    if case == "everything":
        assert resolved.config.batch_scheduler == "volcano"
        assert resolved.config.enable_webhooks
        assert resolved.config.webhook_configurations == "kuberay-operator-webhook"


def test_both_ways_to_tell_it_say_the_same() -> None:
    values = {
        "watchNamespace": ["a", "b"],
        "logging": {"stdoutEncoder": "console", "baseDir": "/x", "fileName": "y"},
        "useKubernetesProxy": True,
        "leaderElectionEnabled": False,
        "metrics": {"enabled": False},
        "reconcileConcurrency": 3,
        "kubeClient": {"qps": 12.5, "burst": 99},
        "batchScheduler": {"name": "kai-scheduler"},
        "webhook": {"enabled": True},
    }
    found = []
    for more in ({}, {"configuration": {"enabled": True}}):
        arguments, files = started_with(rendered(OPERATOR, values | more))
        config = resolve(arguments, {}, files.__getitem__, gates=Gates.default()).config
        found.append({name: getattr(config, name) for name in config.__slots__ if name != "config"})
    assert found[0] == found[1]
    assert found[0]["qps"] == 12.5
    assert found[0]["watch_namespaces"] == ("a", "b")


def test_the_default_list_of_gates_says_what_they_are_by_default() -> None:
    values = yaml.safe_load((CHARTS / OPERATOR / "values.yaml").read_text("utf-8"))
    defaults = {gate.name: gate.default for gate in GATES}
    for gate in values["featureGates"]:
        assert defaults[gate["name"]] is gate["enabled"], gate


# --- rights


def granted(role: Json) -> set[tuple[str, str, str, str]]:
    return {
        (group, resource, ",".join(rule.get("resourceNames", ())), verb)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


RIGHTS: list[tuple[Json, dict[str, Any], str]] = [
    ({}, {}, ""),
    ({"batchScheduler": {"name": "volcano"}}, {"batch_scheduler": "volcano"}, ""),
    ({"batchScheduler": {"enabled": True}}, {"batch_scheduler": "volcano"}, ""),
    ({"plugins": {"scheduler-plugins": {}}}, {"batch_scheduler": "scheduler-plugins"}, ""),
    ({"batchScheduler": {"name": "yunikorn"}}, {"batch_scheduler": "yunikorn"}, ""),
    ({"batchScheduler": {"name": "kai-scheduler"}}, {"batch_scheduler": "kai-scheduler"}, ""),
    ({"plugins": {"autoscaler-rbac": {"enabled": False}}}, {"enabled": {"autoscaler-rbac": False}}, ""),
    ({"plugins": {"gcs-ft-redis": {"enabled": False}}}, {"enabled": {"gcs-ft-redis": False}}, ""),
    *(({"featureGates": [{"name": gate.name, "enabled": True}]}, {}, f"{gate.name}=true") for gate in GATES),
    ({"featureGates": [{"name": "AllBeta", "enabled": False}]}, {}, "AllBeta=false"),
]


@pytest.mark.parametrize(("values", "wanted", "gates"), RIGHTS, ids=[str(each[0])[:60] for each in RIGHTS])
def test_the_role_is_what_kuberay_op_rbac_prints(values: Json, wanted: dict[str, Any], gates: str) -> None:
    """Exactly that of the enabled plugins and gates."""
    states = Gates.default().with_overrides(gates)
    provided = {each.manifest().provides.batch_scheduler for each in discover().values()}
    if states.enabled("KubernetesWAS") and WORKLOAD_AWARE not in provided:
        pytest.skip("the package that schedules with the gate KubernetesWAS is not installed")
    loaded = load_plugins(Wanted(**wanted), states, complete=False)
    printed = cluster_role("x", loaded.hooks.rbac_rules(), states)
    assert granted(of_kind(rendered(OPERATOR, values), "ClusterRole", "kuberay-operator")) == granted(printed)


def test_roles_of_namespaces_say_the_same_and_nothing_is_for_the_cluster() -> None:
    everywhere = of_kind(objects_of(OPERATOR, "default"), "ClusterRole", "kuberay-operator")
    single = objects_of(OPERATOR, "single-namespaces")
    roles = [
        each for each in single if each["kind"] == "Role" and each["metadata"]["name"] == "kuberay-operator"
    ]
    assert [each["metadata"]["namespace"] for each in roles] == ["a", "b"]
    assert all(granted(each) == granted(everywhere) for each in roles)
    assert {each["kind"] for each in single} & {"ClusterRole", "ClusterRoleBinding"} == set()


@pytest.mark.parametrize(
    ("gate", "given", "held"),
    [
        ({"name": "Mine"}, [], False),
        ({"name": "Mine"}, [{"name": "Mine", "enabled": True}], True),
        ({"name": "Mine"}, [{"name": "AllAlpha", "enabled": True}], True),
        ({"name": "Mine", "default": True}, [], True),
        ({"name": "Mine", "default": True, "stage": "beta"}, [{"name": "AllBeta", "enabled": False}], False),
        ({"name": "RayCronJob"}, [{"name": "RayCronJob", "enabled": True}], True),
    ],
)
def test_a_plugin_in_values_gets_its_rights_while_its_gate_is_on(
    gate: Json, given: list[Json], held: bool
) -> None:
    manifest = {
        "apiVersion": "kuberay-op/v1alpha1",
        "kind": "Plugin",
        "name": "mine",
        "featureGate": gate,
        "rbac": [{"apiGroups": ["example.org"], "resources": ["things"], "verbs": ["get"]}],
    }
    values = {"yamlPlugins": {"mine": manifest}, "featureGates": given}
    role = of_kind(rendered(OPERATOR, values), "ClusterRole", "kuberay-operator")
    assert (("example.org", "things", "", "get") in granted(role)) is held


def test_the_small_roles_are_what_kuberay_op_rbac_prints() -> None:
    objects = objects_of(OPERATOR, "webhook")
    name = "kuberay-operator-webhook"
    leader = of_kind(objects, "Role", "kuberay-operator-leader-election")
    assert granted(leader) == granted(leader_role("kuberay-operator"))
    assert granted(of_kind(objects, "Role", name)) == granted(webhook_role("kuberay-operator", name))
    trust = {"rules": [rule.manifest() for rule in webhook_rules([name])]}
    assert granted(of_kind(objects, "ClusterRole", name)) == granted(trust)


def test_a_full_profile_holds_every_other() -> None:
    full = granted(of_kind(objects_of(OPERATOR, "rbac-full"), "ClusterRole", "kuberay-operator"))
    for case in cases(OPERATOR):
        roles = [
            each for each in objects_of(OPERATOR, case) if each["metadata"]["name"] == "kuberay-operator"
        ]
        for role in roles:
            if role["kind"] == "ClusterRole" and case not in ("rbac-extra", "yaml-plugin", "extra-plugin"):
                assert granted(role) <= full, case


def test_a_change_of_the_configuration_restarts_the_operator() -> None:
    def checksum(values: Json) -> str:
        template_of = of_kind(rendered(OPERATOR, values), "Deployment")["spec"]["template"]
        found: str = template_of["metadata"]["annotations"]["checksum/config"]
        return found

    one = checksum({"configuration": {"enabled": True}})
    assert one != checksum({"configuration": {"enabled": True}, "reconcileConcurrency": 2})
    assert one == checksum({"configuration": {"enabled": True}, "replicas": 2})


def test_notes_name_the_next_command() -> None:
    done = template("ray-cluster", {}, "--show-only", "templates/raycluster.yaml")
    assert done.returncode == 0
    for chart, command in ((OPERATOR, "helm test"), ("ray-cluster", "kubectl port-forward service/")):
        assert command in (CHARTS / chart / "templates" / "NOTES.txt").read_text("utf-8")
