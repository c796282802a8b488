"""``kuberay-op plan`` and ``kuberay-op render``, as users call them, without a cluster."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from kuberay_op.cli import cli
from kuberay_op.declarative.manifest import API_VERSION
from kuberay_op.errors import OperatorError
from kuberay_op.testing import make

#: Everything that a plugin can do to a plan.
PLUGIN: dict[str, Any] = {
    "apiVersion": API_VERSION,
    "kind": "Plugin",
    "name": "tokens",
    "summary": "Give every Pod a token.",
    "options": {"token": {"type": "str", "secret": True, "default": "", "description": "The token."}},
    "rbac": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["*"]}],
    "watches": [{"apiVersion": "v1", "kind": "Secret", "plural": "secrets"}],
    "checks": [
        {"name": "no sleepers", "when": "owner.metadata.labels.lazy", "fail": "wake up"},
        {"name": "team", "when": "not owner.metadata.labels.team", "warn": "the label team is missing"},
    ],
    "patches": [
        {
            "name": "hand it over",
            "match": {"object": "Pod", "role": "head"},
            "jsonPatch": [{"op": "add", "path": "/metadata/annotations", "value": {"t": "${options.token}"}}],
        }
    ],
    "objects": [
        {
            "name": "keep it",
            "template": {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": "${owner.metadata.name}-token"},
                "stringData": {"token": "${options.token}"},
            },
        }
    ],
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "tokens.yaml").write_text(yaml.safe_dump(PLUGIN))
    return tmp_path


def call(*words: str | Path, text: str | None = None) -> Result:
    off = ("--plugin=-autoscaler-rbac", "--plugin=-gcs-ft-redis")
    command, *others = map(str, words)
    return CliRunner().invoke(cli, [command, *off, *others], input=text)


def write(folder: Path, *objects: Any) -> Path:
    path = folder / "objects.yaml"
    path.write_text(yaml.safe_dump_all(objects))
    return path


def test_a_plan_names_every_object_with_the_plugin_and_step_behind_it(folder: Path) -> None:
    path = write(folder, make.raycluster("demo", make.workers(2)), {"kind": "ConfigMap", "metadata": {}})
    done = call("plan", "-f", path, "--plugin", "volcano")
    assert done.exit_code == 2
    assert "RayCluster default/demo: 5 to create" in done.output
    assert "create PodGroup ray-demo-pg: plugin volcano asks for it\n" in done.output
    assert "  plugin volcano, step 'the gang as a PodGroup'\n" in done.output
    assert "create Pod demo-workers-worker-* ×2: 0 of 2 workers exist" in done.output
    assert "  plugin volcano, step 'choose the scheduler': {spec: {schedulerName: volcano}}" in done.output
    assert "  +  schedulerName: volcano" in done.output
    assert "not-on-a-cluster" not in done.output


def test_a_plan_for_programs(folder: Path) -> None:
    path = write(folder, make.raycluster("demo"))
    done = call("plan", "-f", path, "--batch-scheduler", "yunikorn", "--output", "json")
    assert done.exit_code == 2
    (found,) = json.loads(done.output)
    service, pod = found["actions"]
    assert (service["kind"], service["causes"]) == ("Service", [])
    assert pod["object"]["spec"]["schedulerName"] == "yunikorn"
    assert pod["causes"][0] == {
        "plugin": "yunikorn",
        "hook": "kuberay_schedule_child",
        "step": "choose the scheduler",
        "merge": {"spec": {"schedulerName": "yunikorn"}},
    }


def test_a_job_is_followed_to_its_cluster_and_its_submitter(folder: Path) -> None:
    path = write(folder, make.rayjob("train", make.workers(1), make.spec(submissionMode="K8sJobMode")))
    done = call("plan", "-f", path, "--plugin", "volcano", "--output", "json")
    (found,) = json.loads(done.output)
    made = [(each["owner"].split()[0], each["kind"]) for each in found["actions"]]
    assert made == [
        ("RayJob", "PodGroup"),
        ("RayJob", "RayCluster"),
        ("RayCluster", "Service"),
        ("RayCluster", "Pod"),
        ("RayCluster", "Pod"),
        ("RayJob", "Job"),
        ("RayJob", "Service"),
    ]


@pytest.mark.parametrize("mode", ["HTTPMode", "SidecarMode", "InteractiveMode"])
def test_other_jobs_have_no_submitter(folder: Path, mode: str) -> None:
    path = write(folder, make.rayjob("train", make.spec(submissionMode=mode)))
    done = call("render", "-f", path, "--output", "json")
    assert done.exit_code == 0, done.output
    kinds = [each["kind"] for each in json.loads(done.output)["items"]]
    assert "RayCluster" in kinds
    assert "Job" not in kinds


def test_a_cron_job_is_followed_to_its_next_job(folder: Path) -> None:
    path = write(folder, make.raycronjob("nightly"))
    off = call("plan", "-f", path)
    assert (off.exit_code, "the feature gate RayCronJob is off" in off.output) == (0, True)
    on = call("plan", "-f", path, "--feature-gates", "RayCronJob=true")
    assert on.exit_code == 2, on.output
    for kind in ("RayJob", "RayCluster", "Pod", "Job"):
        assert f"create {kind} nightly-" in on.output


@pytest.mark.parametrize("command", ["plan", "render"])
def test_secrets_are_hidden(folder: Path, command: str) -> None:
    path = write(folder, make.raycluster("demo", make.cluster(authOptions={"mode": "token"})))
    words = ("--plugin-folder", folder / "plugins", "--plugin", "tokens", "--set", "tokens.token=s3cr3t")
    done = call(command, "-f", path, *words)
    assert "s3cr3t" not in done.output
    assert "<hidden>" in done.output
    assert "demo-token" in done.output
    done = call(command, "-f", path, *words, "--output", "json")
    assert "s3cr3t" not in done.output


def test_what_is_refused_and_warned_of_is_said(folder: Path) -> None:
    words = ("--plugin-folder", folder / "plugins", "--plugin", "tokens")
    path = write(folder, make.raycluster("demo", make.labels(lazy="yes")))
    done = call("plan", "-f", path, *words)
    assert done.exit_code == 1
    assert "refused: RayCluster demo: plugin tokens: wake up" in done.output
    assert "warning: RayCluster demo: plugin tokens: the label team is missing" in done.output
    broken = call("render", "-f", path, *words)
    assert "wake up" in str(broken.exception)


def test_the_operator_s_own_rules_count(folder: Path) -> None:
    path = write(folder, make.raycluster("demo", make.workers(1, minReplicas=3, maxReplicas=1)))
    done = call("plan", "-f", path)
    assert done.exit_code == 1
    assert "refused: RayCluster demo: spec.workerGroupSpecs[0]" in done.output


def test_a_spec_of_the_wrong_shape_is_refused(folder: Path) -> None:
    path = write(folder, make.raycluster("demo", make.spec(workerGroupSpecs={"a": 1})))
    done = call("plan", "-f", path)
    assert done.exit_code == 1
    assert "refused: RayCluster demo: spec.workerGroupSpecs" in done.output


def test_an_object_that_somebody_else_manages_is_left_alone(folder: Path) -> None:
    path = write(folder, make.raycluster("demo", make.spec(managedBy="kueue.x-k8s.io/multikueue")))
    done = call("plan", "-f", path)
    assert done.exit_code == 0
    assert "nothing to do" in done.output
    assert "somebody else manages it" in done.output


def test_it_reads_standard_input_and_the_operator_s_configuration(folder: Path) -> None:
    configuration = folder / "config.yaml"
    plugins = {"volcano": {"options": {"podGroups": "perGroup"}}}
    settings = {"apiVersion": "config.ray.io/v1alpha1", "kind": "Configuration", "batchScheduler": "volcano"}
    configuration.write_text(yaml.safe_dump({**settings, "plugins": plugins}))
    text = yaml.safe_dump(make.raycluster("demo"))
    done = call("render", "-f", "-", "--config", configuration, text=text)
    assert done.exit_code == 0, done.exception
    names = [each["metadata"].get("name") for each in yaml.safe_load_all(done.output)]
    assert names == ["demo-head-svc", "ray-demo-headgroup-pg", None]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--plugin", "vulcano"], "there is no plugin 'vulcano'; did you mean 'volcano'?"),
        (["--set", "volcano"], "--set 'volcano': write PLUGIN.OPTION=VALUE"),
        (
            ["--plugin", "volcano", "--set", "volcano.podGroups=all"],
            "podGroups: must be one of one, perGroup",
        ),
        (["-f", "no-such-file"], "no-such-file: cannot be read"),
    ],
)
def test_mistakes_of_the_user_are_named(folder: Path, words: list[str], complaint: str) -> None:
    done = call("plan", "-f", write(folder, make.raycluster("demo")), *words)
    assert isinstance(done.exception, OperatorError)
    assert complaint in str(done.exception)


def test_wrong_use_is_not_taken_for_changes(folder: Path) -> None:
    assert call("plan").exit_code == 1
    assert call("plan", "-f", "x", "--no-such-option").exit_code == 1


def test_a_file_without_objects_of_ours_is_a_mistake(folder: Path) -> None:
    done = call("plan", "-f", write(folder, {"kind": "ConfigMap"}))
    assert "there is no RayCluster, RayJob or RayCronJob in" in str(done.exception)
