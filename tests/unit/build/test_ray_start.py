"""Contract 02 §6.5 and §6.6: flags of ``ray start`` and the command around it."""

from __future__ import annotations

from typing import Any

import pytest

from kuberay_op.api.view import Json
from kuberay_op.config import Config
from kuberay_op.testing import make
from tests.unit.build.shapes import (
    HOST,
    flags,
    head,
    head_container,
    head_template,
    ray,
    start_command,
    worker,
    worker_template,
)

NO_LIMITS = head_container(resources={})
BASE_HEAD = {
    "block": True,
    "dashboard-agent-listen-port": "52365",
    "dashboard-host": "0.0.0.0",
    "metrics-export-port": "8080",
}


def test_the_example_of_the_contract() -> None:
    pod = head(head_container(resources={"limits": {"cpu": "1", "memory": "1Gi"}}))
    assert start_command(pod) == (
        "ray start --head  --block  --dashboard-agent-listen-port=52365  --dashboard-host=0.0.0.0 "
        " --memory=1073741824  --metrics-export-port=8080  --num-cpus=1 "
    )


def test_a_worker_joins_the_head() -> None:
    pod = worker(group={"template": worker_template({"resources": {}})})
    assert start_command(pod) == (
        f"ray start  --address={HOST}:6379  --block  --dashboard-agent-listen-port=52365 "
        " --metrics-export-port=8080 "
    )


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({}, BASE_HEAD),
        ({"block": "false"}, BASE_HEAD),  # always true
        ({"dashboard-host": "127.0.0.1"}, {**BASE_HEAD, "dashboard-host": "127.0.0.1"}),
        ({"metrics-export-port": "9"}, {**BASE_HEAD, "metrics-export-port": "9"}),
        ({"dashboard-agent-listen-port": "7"}, {**BASE_HEAD, "dashboard-agent-listen-port": "7"}),
        ({"verbose": "TRUE"}, {**BASE_HEAD, "verbose": True}),  # a switch, in any case of letters
        ({"verbose": "False"}, BASE_HEAD),
        ({"log-color": "false"}, {**BASE_HEAD, "log-color": "false"}),  # these three take a value
        ({"include-dashboard": "true"}, {**BASE_HEAD, "include-dashboard": "true"}),
        ({"include-log-monitor": "True"}, {**BASE_HEAD, "include-log-monitor": "True"}),
        ({"temp-dir": "/x y"}, {**BASE_HEAD, "temp-dir": "/x y"}),  # not quoted
    ],
)
def test_flags_of_the_head(given: dict[str, str], wanted: dict[str, Any]) -> None:
    assert flags(head(NO_LIMITS, make.head(rayStartParams=given))) == wanted


def test_the_port_of_the_head_reaches_the_workers() -> None:
    pod = worker(make.head(rayStartParams={"port": "7000"}))
    assert flags(pod)["address"] == f"{HOST}:7000"
    assert flags(worker(group={"rayStartParams": {"address": "x:1"}}))["address"] == "x:1"


def test_without_start_params_there_are_the_defaults() -> None:
    def without(obj: Json) -> None:
        del obj["spec"]["headGroupSpec"]["rayStartParams"]

    assert flags(head(NO_LIMITS, without)) == BASE_HEAD


LIMITS: list[tuple[Json, dict[str, str]]] = [
    ({"limits": {"cpu": "2"}}, {"num-cpus": "2"}),
    ({"limits": {"cpu": "1500m"}}, {"num-cpus": "2"}),  # rounded up
    ({"limits": {"cpu": 3}}, {"num-cpus": "3"}),
    ({"requests": {"cpu": "100m"}}, {"num-cpus": "1"}),  # the request, where there is no limit
    ({"limits": {"cpu": "0"}, "requests": {"cpu": "4"}}, {"num-cpus": "4"}),
    ({"limits": {"cpu": "0"}}, {}),
    ({"limits": {"memory": "1G"}}, {"memory": "1000000000"}),
    ({"requests": {"memory": "1G"}}, {}),  # requests of memory do not count
    ({"limits": {"nvidia.com/gpu": "2"}}, {"num-gpus": "2"}),
    ({"limits": {"nvidia.com/gpu": "2", "amd.com/gpu": "3"}}, {"num-gpus": "3"}),  # first by name, no sum
    ({"limits": {"amd.com/gpu": "0", "nvidia.com/gpu": "2"}}, {"num-gpus": "2"}),
    ({"limits": {"nvidia.com/mig-1g.5gb": "1"}}, {"num-gpus": "1"}),
    ({"limits": {"nvidia.com/mig-1g.5gb.shared": "1"}}, {}),
    ({"requests": {"nvidia.com/gpu": "2"}}, {}),
    ({"limits": {"google.com/tpu": "4"}}, {"resources": """'{"TPU":4}'"""}),
    ({"limits": {"aws.amazon.com/neuroncore": "2"}}, {"resources": """'{"neuron_cores":2}'"""}),
    (
        {"limits": {"google.com/tpu": "4", "aws.amazon.com/neuroncore": "2"}},
        {"resources": """'{"neuron_cores":2}'"""},  # one of them, and neuron wins
    ),
]


@pytest.mark.parametrize(("resources", "wanted"), LIMITS)
def test_flags_from_limits(resources: Json, wanted: dict[str, str]) -> None:
    assert flags(head(head_container(resources=resources))) == {**BASE_HEAD, **wanted}


def test_flags_win_over_limits() -> None:
    own = {"num-cpus": "0", "memory": "7", "num-gpus": "9"}
    limits = {"limits": {"cpu": "2", "memory": "1Gi", "nvidia.com/gpu": "1"}}
    found = flags(head(head_container(resources=limits), make.head(rayStartParams=own)))
    assert {key: found[key] for key in own} == own


TPU = {"limits": {"google.com/tpu": "4"}}


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("""'{"A": 1}'""", """'{"A":1,"TPU":4}'"""),
        ("""`{"b": 2.5, "A": 1}`""", """'{"A":1,"TPU":4,"b":2.5}'"""),
        ("""'{"TPU": 8}'""", """'{"TPU": 8}'"""),  # left as it is
        ("""'{"neuron_cores": 8}'""", """'{"neuron_cores": 8}'"""),
        ("""not json""", """not json"""),
        ("""'{"A": "one"}'""", """'{"A": "one"}'"""),
        ("""'{"A": true}'""", """'{"A": true}'"""),
        ("""'[1]'""", """'[1]'"""),
        ("""'{"A": NaN}'""", """'{"A": NaN}'"""),
        # Decided: the quoting for two shells can be read as well (§16.3 25).
        (r'''"{\"A\": 1}"''', """'{"A":1,"TPU":4}'"""),
        (r'''"{\"TPU\": 8}"''', r'''"{\"TPU\": 8}"'''),
        ("""'{"A": 0.00001}'""", """'{"A":0.00001,"TPU":4}'"""),
    ],
)
def test_accelerators_join_the_resources_that_are_there(given: str, wanted: str) -> None:
    found = flags(head(head_container(resources=TPU), make.head(rayStartParams={"resources": given})))
    assert found["resources"] == wanted


def test_gpus_are_counted_even_if_the_resources_cannot_be_read() -> None:
    """Decided (§16.3 25): the one has nothing to do with the other."""
    limits = {"limits": {"nvidia.com/gpu": "1"}}
    found = flags(head(head_container(resources=limits), make.head(rayStartParams={"resources": "?"})))
    assert (found["num-gpus"], found["resources"]) == ("1", "?")


@pytest.mark.parametrize(
    ("resources", "wanted"),
    [
        ({"CPU": "1500m"}, {"num-cpus": "2"}),
        ({"cpu": "0"}, {"num-cpus": "0"}),
        ({"Memory": "1Gi"}, {"memory": "1073741824"}),
        ({"GPU": "1"}, {"num-gpus": "1"}),
        ({"nvidia.com/gpu": "1", "amd.com/gpu": "2"}, {"num-gpus": "2"}),  # first by name (§16.3 26)
        ({"B": "2500m", "A": "1"}, {"resources": """'{"A":1,"B":2.5}'"""}),
        ({"A": "lots"}, {}),
        ({"CPU": "no"}, {}),
    ],
)
def test_flags_from_the_groups_resources(resources: dict[str, str], wanted: dict[str, str]) -> None:
    assert flags(head(NO_LIMITS, make.head(resources=resources))) == {**BASE_HEAD, **wanted}
    found = flags(worker(group={"resources": resources, "template": worker_template({"resources": {}})}))
    assert {key: found[key] for key in wanted} == wanted


def test_the_groups_resources_replace_flags_and_limits() -> None:
    own = {"num-cpus": "7", "resources": """'{"Z":1}'"""}
    limits = {"limits": {"cpu": "2", "google.com/tpu": "4"}}
    pod = head(
        head_container(resources=limits), make.head(rayStartParams=own, resources={"CPU": "1", "A": "1"})
    )
    assert flags(pod)["num-cpus"] == "1"
    assert flags(pod)["resources"] == """'{"A":1,"TPU":4}'"""


def test_labels_become_a_flag() -> None:
    pod = head(make.head(labels={"b": "2", "a": "1"}, rayStartParams={"labels": "old=1"}))
    assert flags(pod)["labels"] == "a=1,b=2"
    assert flags(worker(group={"labels": {"x": "y"}}))["labels"] == "x=y"


# --- §6.6 the command

ULIMIT = "ulimit -n ${RAY_START_ULIMIT_OPEN_FILES:-65536}; "


def test_without_a_command_ray_is_started() -> None:
    pod = head()
    assert ray(pod)["command"] == ["/bin/bash", "-c", "--"]
    assert ray(pod)["args"] == [ULIMIT + start_command(pod)]


def test_a_login_shell() -> None:
    config = Config(enable_login_shell=True)
    assert ray(head(config=config))["command"] == ["/bin/bash", "-cl", "--"]
    waiting = worker(config=config)["spec"]["initContainers"][0]
    assert waiting["command"] == ["/bin/bash", "-cl", "--"]


def test_the_users_command_runs_first() -> None:
    pod = head(head_container(command=["echo", "a"], args=["b"]))
    assert ray(pod)["args"] == [f" echo  a  b  && {ULIMIT}{start_command(pod)}"]


@pytest.mark.parametrize("where", ["cluster", "template", "words"])
def test_a_command_that_is_left_alone(where: str) -> None:
    own = {"command": ["/bin/sh", "-c"], "args": ["ray start --head" if where == "words" else "run me"]}
    note = {"ray.io/overwrite-container-cmd": "True"}
    parts = [head_container(**own)]
    if where == "cluster":
        parts.append(make.annotations(note))
    if where == "template":
        parts.append(head_template(annotations=note))
    pod = head(*parts)
    assert {key: ray(pod)[key] for key in own} == own
    assert start_command(pod).startswith("ray start --head ")
    if where == "cluster":
        assert pod["metadata"]["annotations"]["ray.io/overwrite-container-cmd"] == "true"


def test_overwriting_without_a_command_leaves_the_image_its_own() -> None:
    pod = head(make.annotations({"ray.io/overwrite-container-cmd": "true"}))
    assert "command" not in ray(pod)
    assert "args" not in ray(pod)
