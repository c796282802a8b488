"""The CRDs as the contract has them: names, versions, columns, enums, defaults, keys and rules."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from kuberay_op.api.crds import VERSIONS, crd, crd_yaml, file_name
from kuberay_op.api.view import Json


def schema(kind: str, version: str = "v1") -> Json:
    """The schema of one version."""
    found = next(entry for entry in crd(kind)["spec"]["versions"] if entry["name"] == version)
    result: Json = found["schema"]["openAPIV3Schema"]
    return result


def at(node: Json, path: str) -> Json:
    """The schema at a path; ``[]`` enters a list, ``*`` a map."""
    for step in path.split("."):
        node = {"[]": node.get("items"), "*": node.get("additionalProperties")}.get(step) or node[
            "properties"
        ][step]
    return node


def nodes(node: Json, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Json]]:
    """Every schema below, with its path."""
    yield path, node
    for name, entry in node.get("properties", {}).items():
        yield from nodes(entry, (*path, name))
    if "items" in node:
        yield from nodes(node["items"], (*path, "[]"))
    if "additionalProperties" in node:
        yield from nodes(node["additionalProperties"], (*path, "*"))


ALL = [(kind, view.VERSION) for kind, views in VERSIONS.items() for view in views]


@pytest.mark.parametrize("kind", VERSIONS)
def test_names_scope_and_subresources(kind: str) -> None:
    spec = crd(kind)["spec"]
    assert spec["group"] == "ray.io"
    assert spec["scope"] == "Namespaced"
    assert "conversion" not in spec
    assert spec["names"] == {
        "kind": kind,
        "listKind": f"{kind}List",
        "plural": f"{kind.lower()}s",
        "singular": kind.lower(),
        "categories": ["all"],
    }
    assert crd(kind)["metadata"]["name"] == f"{kind.lower()}s.ray.io"
    assert file_name(kind) == f"ray.io_{kind.lower()}s.yaml"
    for version in spec["versions"]:
        assert version["subresources"] == {"status": {}}


def test_versions() -> None:
    for kind in VERSIONS:
        found = {entry["name"]: entry for entry in crd(kind)["spec"]["versions"]}
        assert set(found) == ({"v1"} if kind == "RayCronJob" else {"v1", "v1alpha1"})
        assert found["v1"]["served"]
        assert found["v1"]["storage"]
        assert "deprecated" not in found["v1"]
        if "v1alpha1" in found:
            assert found["v1alpha1"]["served"]
            assert not found["v1alpha1"]["storage"]
            assert found["v1alpha1"]["deprecated"]
            assert found["v1alpha1"]["deprecationWarning"] == (
                f"ray.io/v1alpha1 {kind} is deprecated; use ray.io/v1 {kind}. "
                "v1alpha1 receives no new fields and will be unavailable in KubeRay 1.9."
            )


def columns(kind: str, version: str = "v1") -> list[tuple[str, str, str, int]]:
    """The columns of ``kubectl get``."""
    found = next(entry for entry in crd(kind)["spec"]["versions"] if entry["name"] == version)
    return [
        (column["name"], column["type"], column["jsonPath"], column.get("priority", 0))
        for column in found.get("additionalPrinterColumns", ())
    ]


AGE = ("age", "date", ".metadata.creationTimestamp", 0)


def test_columns() -> None:
    assert columns("RayCluster") == columns("RayCluster", "v1alpha1")
    assert columns("RayCluster") == [
        ("desired workers", "integer", ".status.desiredWorkerReplicas", 0),
        ("available workers", "integer", ".status.availableWorkerReplicas", 0),
        ("cpus", "string", ".status.desiredCPU", 0),
        ("memory", "string", ".status.desiredMemory", 0),
        ("gpus", "string", ".status.desiredGPU", 0),
        ("tpus", "string", ".status.desiredTPU", 1),
        ("status", "string", ".status.state", 0),
        AGE,
        ("head pod IP", "string", ".status.head.podIP", 1),
        ("head service IP", "string", ".status.head.serviceIP", 1),
    ]
    assert columns("RayJob") == [
        ("job status", "string", ".status.jobStatus", 0),
        ("deployment status", "string", ".status.jobDeploymentStatus", 0),
        ("ray cluster name", "string", ".status.rayClusterName", 0),
        ("start time", "string", ".status.startTime", 0),
        ("end time", "string", ".status.endTime", 0),
        AGE,
    ]
    assert columns("RayService") == [
        ("service status", "string", ".status.serviceStatus", 0),
        ("num serve endpoints", "string", ".status.numServeEndpoints", 0),
    ]
    assert columns("RayCronJob") == [
        ("schedule", "string", ".spec.schedule", 0),
        ("timezone", "string", ".spec.timeZone", 0),
        ("last schedule", "date", ".status.lastScheduleTime", 0),
        AGE,
        ("suspend", "boolean", ".spec.suspend", 0),
    ]
    assert columns("RayJob", "v1alpha1") == columns("RayService", "v1alpha1") == []


#: Kind and path, then the fields there.
FIELDS = """
RayCluster.spec:
  authOptions autoscalerOptions enableInTreeAutoscaling gcsFaultToleranceOptions headGroupSpec
  headServiceAnnotations historyServerOptions managedBy networkPolicy rayVersion suspend tlsOptions
  upgradeStrategy workerGroupSpecs
RayCluster.spec.authOptions:
  enableK8sTokenAuth mode secretName
RayCluster.spec.autoscalerOptions:
  args command env envFrom idleTimeoutSeconds image imagePullPolicy resources securityContext
  upscalingMode version volumeMounts
RayCluster.spec.gcsFaultToleranceOptions:
  backend externalStorageNamespace redisAddress redisPassword redisUsername storage
RayCluster.spec.gcsFaultToleranceOptions.redisPassword:
  value valueFrom
RayCluster.spec.gcsFaultToleranceOptions.storage:
  accessModes claimName deletionPolicy size storageClassName subPath
RayCluster.spec.headGroupSpec:
  enableIngress headService ingressOptions labels rayStartParams resources serviceType template
RayCluster.spec.headGroupSpec.ingressOptions:
  host path pathType tls
RayCluster.spec.historyServerOptions:
  collectorOptions
RayCluster.spec.historyServerOptions.collectorOptions:
  env image imagePullPolicy resources
RayCluster.spec.networkPolicy:
  head mode worker workerGroups
RayCluster.spec.networkPolicy.head:
  egressRules ingressRules
RayCluster.spec.networkPolicy.workerGroups.[]:
  egressRules groupName ingressRules
RayCluster.spec.tlsOptions:
  enabled
RayCluster.spec.upgradeStrategy:
  type
RayCluster.spec.workerGroupSpecs.[]:
  groupName idleTimeoutSeconds labels maxReplicas minReplicas numOfHosts priority rayStartParams
  replicas resources scaleStrategy suspend template
RayCluster.spec.workerGroupSpecs.[].scaleStrategy:
  workersToDelete
RayCluster.status:
  availableWorkerReplicas conditions desiredCPU desiredGPU desiredMemory desiredTPU
  desiredWorkerReplicas endpoints head lastUpdateTime maxWorkerReplicas minWorkerReplicas
  observedGeneration readyWorkerReplicas reason state stateTransitionTimes
RayCluster.status.head:
  podIP podName serviceIP serviceName
RayCronJob.spec:
  concurrencyPolicy failedJobsHistoryLimit jobTemplate schedule startingDeadlineSeconds
  successfulJobsHistoryLimit suspend timeZone
RayCronJob.status:
  active conditions lastScheduleTime lastSuccessfulTime observedGeneration
RayJob.spec:
  activeDeadlineSeconds backoffLimit clusterSelector deletionStrategy entrypoint entrypointNumCpus
  entrypointNumGpus entrypointResources jobId managedBy metadata preRunningDeadlineSeconds
  rayClusterSpec runtimeEnvYAML shutdownAfterJobFinishes submissionMode submitterConfig
  submitterPodTemplate suspend ttlSecondsAfterFinished
RayJob.status:
  conditions dashboardURL endTime failed jobDeploymentStatus jobId jobStatus
  jobStatusCheckFailureStartTime message observedGeneration rayClusterName rayClusterStatus rayJobInfo
  reason retryTime startTime succeeded
RayService.spec:
  deploymentUnhealthySecondThreshold excludeHeadPodFromServeSvc managedBy rayClusterConfig
  rayClusterDeletionDelaySeconds serveConfigV2 serveService serviceUnhealthySecondThreshold suspend
  upgradeStrategy
RayService.status:
  activeServiceStatus conditions lastUpdateTime numServeEndpoints observedGeneration
  pendingServiceStatus serviceStatus
RayService.status.activeServiceStatus:
  applicationStatuses lastTrafficMigratedTime rayClusterName rayClusterStatus targetCapacity
  trafficRoutedPercent
"""


def fields_of_the_contract() -> list[tuple[str, str, list[str]]]:
    """The table above, row by row."""
    rows = re.findall(r"^(\w+)\.(\S+):\n((?:  .*\n)+)", FIELDS, re.MULTILINE)
    return [(kind, path, names.split()) for kind, path, names in rows]


@pytest.mark.parametrize(("kind", "path", "names"), fields_of_the_contract())
def test_fields(kind: str, path: str, names: list[str]) -> None:
    assert sorted(at(schema(kind), path)["properties"]) == names


def own(kind: str, key: str) -> dict[str, Any]:
    """All values of a keyword in v1, outside of Kubernetes types."""
    inside = [
        "template",
        "submitterPodTemplate",
        "headService",
        "serveService",
        "resources",
        "env",
        "envFrom",
        "volumeMounts",
        "securityContext",
        "valueFrom",
        "tls",
        "ingressRules",
        "egressRules",
        "rayClusterSpec",
        "rayClusterConfig",
        "rayClusterStatus",
        "jobTemplate",
    ]
    found = {}
    for path, node in nodes(schema(kind)):
        if key in node and not any(step in inside for step in path):
            found[".".join(path)] = node[key]
    return found


def test_defaults() -> None:
    assert own("RayCluster", "default") == {
        "spec.workerGroupSpecs.[].replicas": 0,
        "spec.workerGroupSpecs.[].minReplicas": 0,
        "spec.workerGroupSpecs.[].maxReplicas": 2147483647,
        "spec.workerGroupSpecs.[].numOfHosts": 1,
        "spec.workerGroupSpecs.[].priority": 0,
        "spec.networkPolicy.mode": "DenyAll",
    }
    assert own("RayJob", "default") == {
        "spec.submissionMode": "K8sJobMode",
        "spec.backoffLimit": 0,
        "spec.ttlSecondsAfterFinished": 0,
        "spec.deletionStrategy.deletionRules.[].condition.ttlSeconds": 0,
        "status.succeeded": 0,
        "status.failed": 0,
    }
    assert own("RayService", "default") == {"spec.upgradeStrategy.clusterUpgradeOptions.maxSurgePercent": 100}
    assert own("RayCronJob", "default") == {}


def test_enums() -> None:
    condition_status = ["True", "False", "Unknown"]
    policies = ["DeleteCluster", "DeleteWorkers", "DeleteSelf", "DeleteNone"]
    assert own("RayCluster", "enum") == {
        "spec.headGroupSpec.ingressOptions.pathType": ["Exact", "Prefix", "ImplementationSpecific"],
        "spec.autoscalerOptions.upscalingMode": ["Default", "Aggressive", "Conservative"],
        "spec.autoscalerOptions.version": ["v1", "v2"],
        "spec.authOptions.mode": ["disabled", "token"],
        "spec.gcsFaultToleranceOptions.backend": ["redis", "rocksdb"],
        "spec.gcsFaultToleranceOptions.storage.deletionPolicy": ["DeleteWithCluster", "Retain"],
        "spec.upgradeStrategy.type": ["Recreate", "None"],
        "spec.networkPolicy.mode": ["DenyAll", "DenyAllIngress", "DenyAllEgress"],
        "status.conditions.[].status": condition_status,
    }
    assert own("RayJob", "enum") == {
        "spec.deletionStrategy.onSuccess.policy": policies,
        "spec.deletionStrategy.onFailure.policy": policies,
        "spec.deletionStrategy.deletionRules.[].policy": policies,
        "spec.deletionStrategy.deletionRules.[].condition.jobStatus": ["SUCCEEDED", "FAILED"],
        "spec.deletionStrategy.deletionRules.[].condition.jobDeploymentStatus": ["Failed"],
        "status.conditions.[].status": condition_status,
    }
    assert own("RayService", "enum") == {"status.conditions.[].status": condition_status}
    assert own("RayCronJob", "enum") == {
        "spec.concurrencyPolicy": ["Allow", "Forbid", "Replace"],
        "status.conditions.[].status": condition_status,
    }


def test_required_fields() -> None:
    condition = ["lastTransitionTime", "message", "reason", "status", "type"]
    assert own("RayCluster", "required") == {
        "spec": ["headGroupSpec"],
        "spec.headGroupSpec": ["template"],
        "spec.workerGroupSpecs.[]": ["groupName", "maxReplicas", "minReplicas", "template"],
        "spec.networkPolicy.workerGroups.[]": ["groupName"],
        "status.conditions.[]": condition,
    }
    assert own("RayJob", "required") == {
        "spec.deletionStrategy.deletionRules.[]": ["condition", "policy"],
        "status.conditions.[]": condition,
    }
    assert own("RayService", "required") == {
        "spec": ["rayClusterConfig"],
        "spec.upgradeStrategy.clusterUpgradeOptions": [
            "gatewayClassName",
            "intervalSeconds",
            "stepSizePercent",
        ],
        "status.conditions.[]": condition,
    }
    assert own("RayCronJob", "required") == {
        "spec": ["jobTemplate", "schedule"],
        "status.conditions.[]": condition,
    }


def test_limits_and_keys() -> None:
    assert own("RayJob", "minimum") == {
        "spec.deletionStrategy.deletionRules.[].condition.ttlSeconds": 0,
        "spec.preRunningDeadlineSeconds": 1,
        "status.conditions.[].observedGeneration": 0,
    }
    assert own("RayService", "minimum") == {
        "spec.rayClusterDeletionDelaySeconds": 0,
        "status.conditions.[].observedGeneration": 0,
    }
    assert own("RayJob", "minItems") == {"spec.deletionStrategy.deletionRules": 1}
    assert own("RayJob", "x-kubernetes-list-type") == {
        "spec.deletionStrategy.deletionRules": "atomic",
        "status.conditions": "map",
    }
    assert own("RayCronJob", "minLength") == {"spec.timeZone": 1, "status.conditions.[].reason": 1}
    assert own("RayCronJob", "minimum") == {
        "spec.failedJobsHistoryLimit": 0,
        "spec.startingDeadlineSeconds": 0,
        "spec.successfulJobsHistoryLimit": 0,
        "status.conditions.[].observedGeneration": 0,
    }
    assert own("RayCluster", "x-kubernetes-list-map-keys") == {
        "spec.networkPolicy.workerGroups": ["groupName"],
        "status.conditions": ["type"],
    }
    assert own("RayCluster", "nullable") == {"status.lastUpdateTime": True}


def test_number_formats() -> None:
    for kind in VERSIONS:
        for path, form in own(kind, "format").items():
            wide = path.endswith(("observedGeneration", "startingDeadlineSeconds"))
            time = path.split(".")[-1].endswith(("Time", "time", "*"))
            assert form == ("int64" if wide else "date-time" if time else "int32"), f"{kind}.{path}"
    assert "format" not in at(schema("RayJob"), "spec.entrypointNumCpus")


def rules(kind: str, version: str = "v1") -> dict[str, list[str]]:
    """The CEL rules by path."""
    return {
        ".".join(path): [rule["rule"] for rule in node["x-kubernetes-validations"]]
        for path, node in nodes(schema(kind, version))
        if "x-kubernetes-validations" in node
    }


def test_the_rules_of_the_contract_and_no_others() -> None:
    managed_by = ["self == oldSelf", "self in ['ray.io/kuberay-operator', 'kueue.x-k8s.io/multikueue']"]

    def inside(prefix: str) -> dict[str, list[str]]:
        return {
            f"{prefix}.managedBy": managed_by,
            f"{prefix}.gcsFaultToleranceOptions.backend": ["self == oldSelf"],
        }

    def job(prefix: str) -> dict[str, list[str]]:
        strategy = f"{prefix}.deletionStrategy"
        return {
            **inside(f"{prefix}.rayClusterSpec"),
            f"{prefix}.managedBy": managed_by,
            strategy: [
                "!((has(self.onSuccess) || has(self.onFailure)) && has(self.deletionRules))",
                "(has(self.onSuccess) && has(self.onFailure)) || has(self.deletionRules)",
            ],
            f"{strategy}.deletionRules.[].condition": [
                "!(has(self.jobStatus) && has(self.jobDeploymentStatus))",
                "has(self.jobStatus) || has(self.jobDeploymentStatus)",
            ],
        }

    assert rules("RayCluster") == inside("spec")
    assert rules("RayJob") == job("spec")
    assert rules("RayService") == {"spec.managedBy": managed_by, **inside("spec.rayClusterConfig")}
    assert rules("RayCronJob") == job("spec.jobTemplate")
    for kind in ("RayCluster", "RayJob", "RayService"):
        assert rules(kind, "v1alpha1") == {}


def test_specs_inside_other_kinds_are_the_same() -> None:
    def bare(node: Json) -> Json:
        return {key: value for key, value in node.items() if key != "description"}

    spec, status = at(schema("RayCluster"), "spec"), at(schema("RayCluster"), "status")
    assert bare(at(schema("RayJob"), "spec.rayClusterSpec")) == bare(spec)
    assert bare(at(schema("RayService"), "spec.rayClusterConfig")) == bare(spec)
    assert bare(at(schema("RayCronJob"), "spec.jobTemplate")) == bare(at(schema("RayJob"), "spec"))
    assert bare(at(schema("RayJob"), "status.rayClusterStatus")) == bare(status)
    assert bare(at(schema("RayService"), "status.pendingServiceStatus.rayClusterStatus")) == bare(status)


POD = "spec.headGroupSpec.template.spec"


def test_pod_templates_come_from_kubernetes() -> None:
    pod = at(schema("RayCluster"), POD)
    assert pod["required"] == ["containers"]
    assert at(pod, "containers.[]")["required"] == ["name"]
    # Those of Kubernetes 1.36, and workloadRef, which only 1.35 had.
    assert len(pod["properties"]) == 43
    assert {"resources", "schedulingGroup", "hostnameOverride", "workloadRef"} < set(pod["properties"])
    assert "restartPolicyRules" in at(pod, "containers.[]")["properties"]
    for path, node in nodes(pod):
        for keyword in (
            "enum",
            "x-kubernetes-validations",
            "description",
            "x-kubernetes-preserve-unknown-fields",
        ):
            assert keyword not in node, f"{keyword} at {'.'.join(path)}"


def test_list_keys_of_pod_templates() -> None:
    pod = at(schema("RayCluster"), POD)
    by_name = (
        "containers initContainers volumes imagePullSecrets schedulingGates resourceClaims containers.[].env"
    )
    keys = {path: ["name"] for path in by_name.split()}
    keys["containers.[].ports"] = ["containerPort", "protocol"]
    keys["containers.[].volumeMounts"] = ["mountPath"]
    keys["containers.[].volumeDevices"] = ["devicePath"]
    keys["hostAliases"] = ["ip"]
    keys["topologySpreadConstraints"] = ["topologyKey", "whenUnsatisfiable"]
    for path, names in keys.items():
        assert at(pod, path)["x-kubernetes-list-map-keys"] == names, path
        assert at(pod, path)["x-kubernetes-list-type"] == "map", path
    for path in ("tolerations", "containers.[].args", "containers.[].command", "containers.[].envFrom"):
        assert at(pod, path)["x-kubernetes-list-type"] == "atomic", path


def test_defaults_of_pod_templates() -> None:
    pod = at(schema("RayCluster"), POD)
    found = {(path[-2], path[-1], str(node["default"])) for path, node in nodes(pod) if "default" in node}
    volumes = {entry for entry in found if entry[0] in ("azureDisk", "iscsi", "rbd", "scaleIO")}
    assert volumes == {
        ("azureDisk", "fsType", "ext4"),
        ("azureDisk", "readOnly", "False"),
        ("iscsi", "iscsiInterface", "default"),
        ("rbd", "pool", "rbd"),
        ("rbd", "user", "admin"),
        ("rbd", "keyring", "/etc/ceph/keyring"),
        ("scaleIO", "fsType", "xfs"),
        ("scaleIO", "storageMode", "ThinProvisioned"),
    }
    rest = {entry[1:] for entry in found - volumes}
    assert rest == {("protocol", "TCP"), ("service", ""), ("name", ""), ("optional", "False")}


def test_metadata_inside_templates_is_limited() -> None:
    cluster = schema("RayCluster")
    names = ["annotations", "finalizers", "labels", "name", "namespace"]
    assert sorted(at(cluster, "spec.headGroupSpec.template.metadata")["properties"]) == names
    assert sorted(at(cluster, "spec.headGroupSpec.headService.metadata")["properties"]) == names
    service = at(schema("RayService"), "spec.serveService")
    assert sorted(service["properties"]) == ["apiVersion", "kind", "metadata", "spec", "status"]
    ports = at(service, "spec.ports")
    assert ports["x-kubernetes-list-map-keys"] == ["port", "protocol"]
    assert at(ports, "[].protocol")["default"] == "TCP"


@pytest.mark.parametrize(("kind", "version"), ALL)
def test_schemas_are_structural(kind: str, version: str) -> None:
    for path, node in nodes(schema(kind, version)):
        where = f"{kind}.{'.'.join(path)}"
        assert "$ref" not in node, where
        assert "$def" not in node, where
        assert node.get("x-kubernetes-int-or-string") or node.get("type"), where
        if node.get("x-kubernetes-int-or-string"):
            assert node["anyOf"] == [{"type": "integer"}, {"type": "string"}], where
        for keyword in ("x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"):
            assert keyword not in node, where


def test_differences_of_the_deprecated_version() -> None:
    cluster = schema("RayCluster", "v1alpha1")
    assert "rayStartParams" in at(cluster, "spec.headGroupSpec")["required"]
    assert "rayStartParams" in at(cluster, "spec.workerGroupSpecs.[]")["required"]
    assert "numOfHosts" not in at(cluster, "spec.workerGroupSpecs.[]")["properties"]
    assert not {"version", "command", "args"} & set(at(cluster, "spec.autoscalerOptions")["properties"])
    assert sorted(at(cluster, "status.head")["properties"]) == ["podIP", "serviceIP"]
    job = at(schema("RayJob", "v1alpha1"), "spec")
    assert job["required"] == ["entrypoint"]
    assert not {"submissionMode", "backoffLimit"} & set(job["properties"])
    service = schema("RayService", "v1alpha1")
    assert "required" not in at(service, "spec")
    application = at(service, "status.activeServiceStatus.applicationStatuses.*")
    assert "healthLastUpdateTime" in application["properties"]
    assert "healthLastUpdateTime" in at(application, "serveDeploymentStatuses.*")["properties"]


@pytest.mark.parametrize("kind", VERSIONS)
def test_yaml_reads_back_as_the_same(kind: str) -> None:
    text = crd_yaml(kind)
    assert "&id" not in text
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    assert yaml.load(text, Loader=loader) == crd(kind)  # noqa: S506  # a safe loader, in C where there is one
