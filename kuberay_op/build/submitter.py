"""What submits a RayJob to Ray when the operator does not: a Job of Kubernetes, or a container by the head.

Both run one line of shell. It waits for the dashboard, submits unless the job is there already, and follows
the log. Every word of it is part of the contract with people's own submitters and tests.
"""

from __future__ import annotations

from typing import Any, Final

import orjson

from kuberay_op.api import env as names_of
from kuberay_op.api import labels, names, ports, probes
from kuberay_op.api import volumes as fixed
from kuberay_op.api.podtemplate import pod_spec, ray_container
from kuberay_op.api.predicates import auth_enabled, k8s_auth_enabled
from kuberay_op.api.raycluster import RayCluster
from kuberay_op.api.rayjob import RayJob
from kuberay_op.api.versions import parse_version
from kuberay_op.api.view import Json
from kuberay_op.build import env
from kuberay_op.build.auth import add_token
from kuberay_op.build.draft import items, named
from kuberay_op.build.metadata import owner_reference
from kuberay_op.config import Config
from kuberay_op.errors import Invalid
from kuberay_op.frozen import thaw

#: How often the submitter Job tries again when the user does not say.
BACKOFF_LIMIT: Final = 2

#: The first Ray whose jobs have metadata.
METADATA_SINCE: Final = (2, 6)

#: What a submitter of ours takes over from the head, where the user set it: without these it may be unable
#: to get its image or a node.
INHERITED: Final = ("imagePullSecrets", "nodeSelector", "serviceAccountName", "tolerations")

_SCHEME: Final = "http://"

# --- the parts of a job


def runtime_env(job: RayJob) -> Any:
    """``runtimeEnvYAML`` as a value; None when there is none. The text was validated before."""
    from kuberay_op.api import yamltext  # late: most jobs have none

    root = yamltext.first_document(job.spec.runtime_env_yaml)
    return None if root is None else yamltext.Document(root).value


def entrypoint_resources(job: RayJob) -> dict[str, float]:
    """``entrypointResources`` as numbers by name; raises Invalid when it is something else."""
    text = job.spec.entrypoint_resources
    if not text:
        return {}
    try:
        found = orjson.loads(text)
        return {str(name): _number(amount) for name, amount in found.items()}
    except (ValueError, AttributeError):
        raise Invalid(
            'spec.entrypointResources: must be JSON text with numbers by name, such as {"accelerator": 1}'
        ) from None


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError
    return value


def check_metadata(job: RayJob) -> None:
    """Raise Invalid when the job has metadata that its Ray is too old for."""
    cluster = job.spec.ray_cluster_spec
    if not job.spec.metadata or job.spec.cluster_selector or not cluster.ray_version:
        return
    try:
        old = parse_version(cluster.ray_version) < METADATA_SINCE
    except ValueError:
        raise Invalid(
            f"spec.rayClusterSpec.rayVersion: {cluster.ray_version!r} is not a version such as 2.52.0, and "
            "spec.metadata needs to know it"
        ) from None
    if old:
        raise Invalid(
            f"spec.metadata: needs Ray 2.6.0 or later; spec.rayClusterSpec.rayVersion is "
            f"{cluster.ray_version!r}"
        )


# --- the command


def submit_command(job: RayJob, address: str, health: str, *, attach: bool) -> str:
    """The line of shell. With ``attach`` it may run twice: it submits once and follows the log."""
    job_id = job.status.job_id
    words = [_waiting(address, health)]
    if attach:
        words.append(f"if ! ray job status --address {address} {job_id} >/dev/null 2>&1 ; then")
    words.append(f"ray job submit --address {address}")
    if attach:
        words.append("--no-wait")
    words += _options(job)
    words.append(f"-- {job.spec.entrypoint.strip()} ;")
    if attach:
        words.append(f"fi ; ray job logs --address {address} --follow {job_id}")
    return " ".join(words)


def _waiting(address: str, health: str) -> str:
    # By Python: the slim images of Ray have no wget.
    check = (
        f"import urllib.request; r=urllib.request.urlopen('{health}', timeout={probes.GCS_TIMEOUT}); "
        "exit(0 if b'success' in r.read() else 1)"
    )
    said = f"Waiting for Ray Dashboard GCS to become healthy at {address} ..."
    return f'until python -c "{check}" >/dev/null 2>&1 ; do echo "{said}" ; sleep 2 ; done ;'


def _options(job: RayJob) -> list[str]:
    """The options of ``ray job submit``, in the order that the reference has."""
    spec, options = job.spec, []
    if spec.runtime_env_yaml:
        options.append(f"--runtime-env-json {_quoted(_json(runtime_env(job)))}")
    if spec.metadata:
        check_metadata(job)
        options.append(f"--metadata-json {_quoted(_json(dict(spec.metadata)))}")
    if job.status.job_id:
        options.append(f"--submission-id {job.status.job_id}")
    if (spec.entrypoint_num_cpus or 0) > 0:
        options.append(f"--entrypoint-num-cpus {spec.entrypoint_num_cpus:.6f}")
    if (spec.entrypoint_num_gpus or 0) > 0:
        options.append(f"--entrypoint-num-gpus {spec.entrypoint_num_gpus:.6f}")
    if spec.entrypoint_resources:
        options.append(f"--entrypoint-resources {_quoted(spec.entrypoint_resources)}")
    return options


def _json(value: Any) -> str:
    """JSON as Go writes it: keys sorted, and nothing in it that would mean something to a web page."""
    text = orjson.dumps(_whole(value), option=orjson.OPT_SORT_KEYS).decode()
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text


def _whole(value: Any) -> Any:
    """The value with whole numbers as such: ``1.0`` is ``1``."""
    if isinstance(value, dict):
        return {key: _whole(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_whole(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _quoted(text: str) -> str:
    """Between double quotes, as Go's ``strconv.Quote`` does. The shell still sees ``$`` and backticks."""
    text = text.replace("\\", "\\\\").replace('"', '\\"')
    for char, word in (("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t")):
        text = text.replace(char, word)
    return f'"{text}"'


# --- the submitter Job


def submitter_template(job: RayJob, cluster: RayCluster, config: Config) -> Json:
    """The Pod template of the submitter Job: ours, or the user's with what the submitter needs."""
    template: Json = thaw(job.spec.submitter_pod_template) or _default_template(cluster)
    container = template["spec"]["containers"][0]
    address = job.status.dashboard_url
    address = address if address.startswith(_SCHEME) else f"{_SCHEME}{address}"
    # Made even for a command of the user's own: what is wrong with the job must not depend on it.
    command = submit_command(job, address, f"{address}/{probes.GCS_PATH}", attach=True)
    if not container.get("command"):
        container |= {"command": _shell(config), "args": [command]}
    _tell(container, job, cluster)
    if auth_enabled(cluster.spec) and k8s_auth_enabled(cluster.spec):
        _add_token_volume(template["spec"])
    metadata = template.setdefault("metadata", {})
    metadata["labels"] = {**(metadata.get("labels") or {}), **_labels(job)}
    return template


def submitter_job(job: RayJob, template: Json) -> Json:
    """The Job that runs the submitter."""
    limit = job.spec.submitter_config.backoff_limit
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": job.name,
            "namespace": job.namespace,
            "labels": _labels(job),
            "ownerReferences": [owner_reference(job.raw)],
        },
        "spec": {"backoffLimit": BACKOFF_LIMIT if limit is None else limit, "template": template},
    }


def _default_template(cluster: RayCluster) -> Json:
    head = pod_spec(cluster.spec.head_group_spec.template)
    inherited = {field: thaw(head[field]) for field in INHERITED if head.get(field)}
    return {"spec": {"containers": [_default_container(cluster)], "restartPolicy": "Never", **inherited}}


def _default_container(cluster: RayCluster) -> Json:
    return {
        "name": names.SUBMITTER_CONTAINER,
        # That of the head: client and server of one version understand each other.
        "image": ray_container(cluster.spec.head_group_spec.template).get("image", ""),
        "resources": {
            "limits": {"cpu": "1", "memory": "1Gi"},
            "requests": {"cpu": "500m", "memory": "200Mi"},
        },
    }


def _tell(container: Json, job: RayJob, cluster: RayCluster) -> None:
    """Say which job and where; a user's own command has nothing else to go by."""
    address = job.status.dashboard_url
    env.add(
        container,
        env.variable(names_of.PYTHONUNBUFFERED, "1"),
        # Not known yet when a sidecar is made; an empty value is not written.
        {"name": names_of.RAY_DASHBOARD_ADDRESS, **({"value": address} if address else {})},
        env.variable(names_of.RAY_JOB_SUBMISSION_ID, job.status.job_id),
    )
    add_token(container, cluster)


def _add_token_volume(spec: Json) -> None:
    if not named(spec.get("volumes"), fixed.TOKEN_VOLUME):
        source = {"serviceAccountToken": {"path": "token"}}
        items(spec, "volumes").append({"name": fixed.TOKEN_VOLUME, "projected": {"sources": [source]}})


def _labels(job: RayJob) -> dict[str, str]:
    return {
        labels.ORIGINATED_FROM_NAME: job.name,
        labels.ORIGINATED_FROM_KIND: job.KIND,
        labels.CREATED_BY: labels.COMPONENT,
    }


def _shell(config: Config) -> list[str]:
    return ["/bin/bash", "-cel" if config.enable_login_shell else "-ce", "--"]


# --- the container beside the head


def sidecar(job: RayJob, cluster: RayCluster, config: Config) -> Json:
    """The container that submits from within the head Pod."""
    restarts = config.gates.enabled("SidecarSubmitterRestart")
    head = ray_container(cluster.spec.head_group_spec.template)
    declared = {port.get("name"): port.get("containerPort") for port in head.get("ports") or ()}
    port = declared.get(ports.DASHBOARD) or ports.DEFAULTS[ports.DASHBOARD]
    health = f"{_SCHEME}localhost:{port}/{probes.GCS_PATH}"
    command = submit_command(job, f"{_SCHEME}{ports.LOOPBACK}:{port}", health, attach=restarts)
    container = _default_container(cluster)
    container |= {"command": _shell(config), "args": [command]}
    if restarts:
        container["restartPolicy"] = "OnFailure"
    _tell(container, job, cluster)
    return container
