"""The effective configuration: precedence, special values, warnings, and where each value came from."""

from __future__ import annotations

import dataclasses
import logging
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kuberay_op.config import (
    FLAGS,
    SETTINGS,
    Config,
    ConfigError,
    Flag,
    Kind,
    Reading,
    Resolved,
    batch_scheduler,
    bind_address,
    resolve,
)
from kuberay_op.errors import Misconfigured
from kuberay_op.features import FeatureGate, Gates, Stage

HEADER = "apiVersion: config.ray.io/v1alpha1\nkind: Configuration\n"


def run(*argv: str, env: dict[str, str] | None = None, file: str | None = None) -> Resolved:
    """Resolve; ``file`` is the text behind the header of c.yaml, which is then given with --config."""
    given = ("--config", "c.yaml", *argv) if file is not None else argv
    return resolve(given, env or {}, {"c.yaml": f"{HEADER}{file}"}.__getitem__)


def clean(*argv: str, env: dict[str, str] | None = None, file: str | None = None) -> Config:
    resolved = run(*argv, env=env, file=file)
    assert resolved.warnings == ()
    return resolved.config


def problems(*argv: str, env: dict[str, str] | None = None, file: str | None = None) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as error:
        run(*argv, env=env, file=file)
    return error.value.problems


def test_the_defaults_are_those_of_the_contract() -> None:
    config = clean()
    assert config == Config()
    assert (config.metrics_addr, config.probe_addr, config.enable_leader_election) == (":8080", ":8082", True)
    assert (config.qps, config.burst, config.reconcile_concurrency) == (100.0, 200, 8)
    assert (config.cluster_domain, config.raycluster_requeue_seconds) == ("cluster.local", 300)
    off = ["enable_metrics", "use_kubernetes_proxy", "enable_webhooks", "enable_random_pod_delete"]
    off += ("delete_rayjob_after_job_finishes", "enable_login_shell", "enable_deterministic_head_pod_name")
    on = ("enable_gcs_ft_redis_cleanup", "enable_init_container_injection", "enable_probes_injection")
    assert [getattr(config, name) for name in off] == [False] * 7
    assert [getattr(config, name) for name in (*on, "enable_zero_downtime")] == [True] * 4


def test_every_flag_of_the_reference_is_known() -> None:
    assert {flag.name for flag in FLAGS} >= {
        *("metrics-addr", "health-probe-bind-address", "enable-leader-election", "leader-election-namespace"),
        *(
            "reconcile-concurrency",
            "watch-namespace",
            "qps",
            "burst",
            "use-kubernetes-proxy",
            "batch-scheduler",
        ),
        *(
            "enable-batch-scheduler",
            "enable-metrics",
            "feature-gates",
            "config",
            "log-file-path",
            "log-file-encoder",
        ),
        *("log-stdout-encoder", "forced-cluster-upgrade", "zap-devel", "zap-encoder", "zap-log-level"),
        *("zap-stacktrace-level", "zap-time-encoding", "kubeconfig"),
    }


def test_the_arguments_of_the_chart() -> None:
    config = clean(
        *("--batch-scheduler=volcano", "--watch-namespace", "a,b", "--log-stdout-encoder", "json"),
        *("--log-file-encoder", "json", "--use-kubernetes-proxy=false", "--enable-leader-election=true"),
        *("--enable-metrics=true", "--reconcile-concurrency=1", "--qps=100", "--burst=200"),
        "--feature-gates=RayClusterStatusConditions=true,RayCronJob=false",
    )
    assert config.watch_namespaces == ("a", "b")
    assert config.reconcile_concurrency == 1
    assert config.enable_metrics


# Precedence


def test_flags_count_without_a_file_and_not_beside_one() -> None:
    assert clean("--burst=5").burst == 5
    resolved = run("--burst=5", file="qps: 7")
    assert (resolved.config.burst, resolved.config.qps) == (200, 7.0)
    assert resolved.warnings == ("--burst is ignored beside --config; set burst in the file",)


def test_flags_without_a_key_count_beside_a_file() -> None:
    config = clean(
        "--feature-gates=RayCronJob=true", "--zap-log-level=debug", "--kubeconfig=k", file="burst: 3"
    )
    assert config.gates.enabled("RayCronJob")
    assert (config.zap_log_level, config.kubeconfig, config.burst) == ("debug", "k", 3)


def test_log_encoders_come_from_the_file_unless_a_flag_says_otherwise() -> None:
    assert clean(file="logStdoutEncoder: console").log_stdout_encoder == "console"
    assert clean("--log-stdout-encoder=console", file="burst: 1").log_stdout_encoder == "console"
    both = run("--log-stdout-encoder=json", file="logStdoutEncoder: console")
    assert both.config.log_stdout_encoder == "json"
    assert both.warnings == ("c.yaml:3 is overruled by --log-stdout-encoder, which says otherwise",)
    assert clean("--log-file-encoder=json", file="logFileEncoder: json").log_file_encoder == "json"


@pytest.mark.parametrize(
    ("env", "file", "value", "warned"),
    [
        ({}, "", False, False),
        ({}, "deleteRayJobAfterJobFinishes: true", True, False),
        ({"DELETE_RAYJOB_CR_AFTER_JOB_FINISHES": "TRUE"}, "", True, False),
        ({"DELETE_RAYJOB_CR_AFTER_JOB_FINISHES": "true"}, "deleteRayJobAfterJobFinishes: true", True, False),
        ({"DELETE_RAYJOB_CR_AFTER_JOB_FINISHES": "false"}, "deleteRayJobAfterJobFinishes: true", False, True),
        ({"DELETE_RAYJOB_CR_AFTER_JOB_FINISHES": ""}, "deleteRayJobAfterJobFinishes: true", True, False),
    ],
)
def test_deleting_rayjobs_comes_from_the_variable_or_the_file(
    env: dict[str, str], file: str, value: bool, warned: bool
) -> None:
    resolved = run(env=env, file=file)
    assert resolved.config.delete_rayjob_after_job_finishes is value
    assert bool(resolved.warnings) is warned


def test_kubeconfig_comes_from_the_flag_or_the_variable() -> None:
    assert clean(env={"KUBECONFIG": "e"}).kubeconfig == "e"
    assert clean("--kubeconfig=e", env={"KUBECONFIG": "e"}).kubeconfig == "e"
    assert run("--kubeconfig=f", env={"KUBECONFIG": "e"}).config.kubeconfig == "f"


def test_sources_say_where_a_value_came_from() -> None:
    resolved = run("--zap-devel", env={"CLUSTER_DOMAIN": "k8s"}, file="\nburst: 3")
    shown = {name: str(resolved.sources[name]) for name in ("burst", "qps", "zap_devel", "cluster_domain")}
    assert shown == {
        "burst": "file c.yaml:4",
        "qps": "default",
        "zap_devel": "flag --zap-devel",
        "cluster_domain": "env CLUSTER_DOMAIN",
    }
    assert set(resolved.sources) == {field.name for field in dataclasses.fields(Config)}


# Environment variables


@pytest.mark.parametrize(
    ("variable", "text", "field", "value", "warned"),
    [
        ("ENABLE_WEBHOOKS", "true", "enable_webhooks", True, False),
        ("ENABLE_WEBHOOKS", "True", "enable_webhooks", False, True),
        ("ENABLE_WEBHOOKS", "1", "enable_webhooks", False, True),
        ("ENABLE_WEBHOOKS", "false", "enable_webhooks", False, False),
        ("ENABLE_LOGIN_SHELL", "TrUe", "enable_login_shell", True, False),
        ("ENABLE_LOGIN_SHELL", "yes", "enable_login_shell", False, True),
        ("ENABLE_ZERO_DOWNTIME", "FALSE", "enable_zero_downtime", False, False),
        ("ENABLE_ZERO_DOWNTIME", "0", "enable_zero_downtime", True, True),
        ("ENABLE_PROBES_INJECTION", "", "enable_probes_injection", True, False),
        ("CLUSTER_DOMAIN", "k8s.example", "cluster_domain", "k8s.example", False),
        ("CLUSTER_DOMAIN", "", "cluster_domain", "cluster.local", False),
        ("RAYCLUSTER_DEFAULT_REQUEUE_SECONDS_ENV", "60", "raycluster_requeue_seconds", 60, False),
        ("RAYCLUSTER_DEFAULT_REQUEUE_SECONDS_ENV", "-1", "raycluster_requeue_seconds", -1, False),
        ("RAYCLUSTER_DEFAULT_REQUEUE_SECONDS_ENV", "0", "raycluster_requeue_seconds", 0, False),
        ("RAYCLUSTER_DEFAULT_REQUEUE_SECONDS_ENV", "5m", "raycluster_requeue_seconds", 300, True),
        ("RAYCLUSTER_DEFAULT_REQUEUE_SECONDS_ENV", "1_0", "raycluster_requeue_seconds", 300, True),
        ("RAYCLUSTER_DEFAULT_REQUEUE_SECONDS_ENV", " 5", "raycluster_requeue_seconds", 300, True),
        ("RAYJOB_STATUS_CHECK_TIMEOUT_SECONDS", "+7", "rayjob_status_check_timeout_seconds", 7, False),
        ("RAYJOB_STATUS_CHECK_TIMEOUT_SECONDS", "0", "rayjob_status_check_timeout_seconds", 300, True),
        ("RAYJOB_STATUS_CHECK_TIMEOUT_SECONDS", "-5", "rayjob_status_check_timeout_seconds", 300, True),
    ],
)
def test_variables(variable: str, text: str, field: str, value: Any, warned: bool) -> None:
    resolved = run(env={variable: text})
    assert getattr(resolved.config, field) == value
    assert len(resolved.warnings) == warned
    if warned:
        assert resolved.warnings[0].startswith(f"{variable} is {text!r} and is ignored; allowed is ")


def test_every_variable_of_the_contract_is_read() -> None:
    readings = {setting.env: setting.reading for setting in SETTINGS if setting.env}
    assert readings == {
        "KUBECONFIG": Reading.TEXT,
        "ENABLE_WEBHOOKS": Reading.EXACTLY_TRUE,
        "CLUSTER_DOMAIN": Reading.TEXT,
        "ENABLE_GCS_FT_REDIS_CLEANUP": Reading.FALSE,
        "RAYCLUSTER_DEFAULT_REQUEUE_SECONDS_ENV": Reading.SECONDS,
        "ENABLE_RANDOM_POD_DELETE": Reading.TRUE,
        "ENABLE_INIT_CONTAINER_INJECTION": Reading.FALSE,
        "ENABLE_PROBES_INJECTION": Reading.FALSE,
        "ENABLE_RAY_HEAD_CLUSTER_IP_SERVICE": Reading.TRUE,
        "USE_INGRESS_ON_OPENSHIFT": Reading.TRUE,
        "ENABLE_ZERO_DOWNTIME": Reading.FALSE,
        "DELETE_RAYJOB_CR_AFTER_JOB_FINISHES": Reading.TRUE,
        "RAYJOB_DEPLOYMENT_STATUS_TRANSITION_GRACE_PERIOD_SECONDS": Reading.SECONDS,
        "RAYJOB_STATUS_CHECK_TIMEOUT_SECONDS": Reading.POSITIVE_SECONDS,
        "ENABLE_LOGIN_SHELL": Reading.TRUE,
        "ENABLE_DETERMINISTIC_HEAD_POD_NAME": Reading.TRUE,
    }


# Special values


@pytest.mark.parametrize(
    ("argv", "field", "value"),
    [
        (["--qps=0"], "qps", 5.0),
        (["--qps=-1"], "qps", math.inf),
        (["--qps=inf"], "qps", math.inf),
        (["--burst=0"], "burst", 10),
        (["--leader-election-lease-seconds=60"], "leader_election_lease_seconds", 60.0),
        (["--qps=-1", "--burst=-1"], "burst", -1),
        (["--reconcile-concurrency=0"], "reconcile_concurrency", 8),
        (["--reconcile-concurrency=3"], "reconcile_concurrency", 3),
        (["--metrics-addr="], "metrics_addr", ":8080"),
        (["--metrics-addr=0"], "metrics_addr", "0"),
        (["--health-probe-bind-address="], "probe_addr", "0"),
        (["--watch-namespace="], "watch_namespaces", ()),
        (["--watch-namespace=a"], "watch_namespaces", ("a",)),
        (["--watch-namespace=a,b,a"], "watch_namespaces", ("a", "b")),
        (["--log-stdout-encoder="], "log_stdout_encoder", "json"),
        (["--zap-devel"], "zap_log_level", "debug"),
        (["--zap-devel", "--zap-log-level=info"], "zap_log_level", "info"),
        (["--zap-devel"], "zap_stacktrace_level", "warn"),
        (["--zap-log-level=ERROR"], "zap_log_level", "ERROR"),
        (["--enable-batch-scheduler=false"], "enable_batch_scheduler", False),
    ],
)
def test_special_values(argv: list[str], field: str, value: Any) -> None:
    assert getattr(clean(*argv), field) == value


@pytest.mark.parametrize(
    ("argv", "problem"),
    [
        (
            ["--metrics-addr=8080"],
            "--metrics-addr is '8080'; allowed is host:port, for example :8080, or 0 for none",
        ),
        (
            ["--health-probe-bind-address=:http"],
            "--health-probe-bind-address is ':http'; allowed is host:port",
        ),
        (["--qps=nan"], "--qps is nan; allowed is a number"),
        (["--burst=-1"], "--burst is -1; allowed is a whole number from 0 on"),
        (["--log-stdout-encoder=text"], "--log-stdout-encoder is 'text'; allowed is json or console"),
        (
            ["--log-file-path=x", "--log-file-encoder=JSON"],
            "--log-file-encoder is 'JSON'; allowed is json or console",
        ),
        (
            ["--zap-log-level=0"],
            "--zap-log-level is '0'; allowed is debug, info, warn, error, panic or a whole",
        ),
        (["--zap-stacktrace-level=2"], "--zap-stacktrace-level is '2'; allowed is info, warn, error, panic"),
        (["--zap-encoder=text"], "--zap-encoder is 'text'; allowed is json, console"),
        (["--zap-time-encoding=unix"], "--zap-time-encoding is 'unix'; allowed is epoch,"),
        (
            ["--feature-gates=RayCronjob=true"],
            "--feature-gates: unknown feature gate 'RayCronjob'; did you mean Ray",
        ),
        (["--leader-election-retry-seconds=11"], "are 15, 10 and 11; allowed are falling numbers above 0"),
        (["--leader-election-retry-seconds=0"], "are 15, 10 and 0; allowed are falling numbers above 0"),
        (["--leader-election-lease-seconds=nan"], "are nan, 10 and 2; allowed are falling numbers above 0"),
        (["--brust=1"], "flag provided but not defined: -brust; did you mean -burst?"),
    ],
)
def test_problems(argv: list[str], problem: str) -> None:
    (found,) = problems(*argv)
    assert problem in found


@pytest.mark.parametrize(
    ("argv", "file", "warning"),
    [
        (["--reconcile-concurrency=-2"], None, "--reconcile-concurrency is -2; the default 8 is used"),
        (
            ["--watch-namespace=a, b"],
            None,
            "has ' b', which no namespace can be called; leave out the blanks",
        ),
        (["--watch-namespace=A"], None, "has 'A', which no namespace can be called"),
        (["--watch-namespace=a,"], None, "is 'a,' with an empty name in it: all namespaces are watched"),
        (
            ["--log-file-encoder=x"],
            None,
            "--log-file-encoder is 'x', which is neither json nor console; json is used",
        ),
        (
            [],
            "logStdoutEncoder: text",
            "c.yaml:3: logStdoutEncoder is 'text', which is neither json nor console",
        ),
        (["--zap-encoder=JSON"], None, "--zap-encoder has no effect; use --log-stdout-encoder"),
        (
            ["--zap-time-encoding=epoch"],
            None,
            "--zap-time-encoding has no effect; timestamps are always ISO 8601",
        ),
        (["--forced-cluster-upgrade"], None, "--forced-cluster-upgrade is deprecated and has no effect"),
        (
            ["--enable-batch-scheduler"],
            None,
            "--enable-batch-scheduler is deprecated; choose the batch scheduler volcano",
        ),
        ([], "enableBatchScheduler: true", "c.yaml:3: enableBatchScheduler is deprecated"),
        (
            ["--feature-gates=AsyncJobInfoQuery=true"],
            None,
            "AsyncJobInfoQuery no longer exists and is ignored",
        ),
        (
            ["--enable-metrics", "true", "--qps=1"],
            None,
            "'true' and all arguments after it are ignored; write -enable-m",
        ),
        (["--qps=1", "x"], None, "'x' is no flag; it and all arguments after it are ignored"),
    ],
)
def test_warnings(argv: list[str], file: str | None, warning: str) -> None:
    (found,) = run(*argv, file=file).warnings
    assert warning in found
    assert warning in problems("--strict", *argv, file=file)[-1]


def test_an_empty_namespace_means_all() -> None:
    assert run("--watch-namespace=a,,b").config.watch_namespaces == ()


def test_all_mistakes_of_all_sources_come_at_once() -> None:
    with pytest.raises(ConfigError) as error:
        run("--zap-log-level=x", "--feature-gates=X=1", file="burst: 300.5\nprobeAddr: x\nmetricsAdr: y")
    text = str(error.value)
    assert text.startswith("the configuration has 4 mistakes:\n")
    for part in (
        "c.yaml:3: burst is 300.5",
        "probeAddr is 'x'",
        "--zap-log-level is 'x'",
        "unknown feature gate 'X'",
    ):
        assert part in text
    assert len(error.value.warnings) == 1


def test_a_file_that_cannot_be_read() -> None:
    def missing(path: str) -> str:
        raise FileNotFoundError(2, "No such file or directory", path)

    with pytest.raises(
        ConfigError, match="the configuration file 'x' cannot be read: No such file or directory"
    ):
        resolve(["--config=x"], {}, missing)
    with pytest.raises(ConfigError, match="cannot be read: it is no UTF-8 text"):
        resolve(["--config=x"], {}, lambda _: b"\xff".decode())


def test_gates_of_plugins_can_be_set() -> None:
    mine = FeatureGate("Mine", Stage.ALPHA, "0.1", False, "Does a thing.")
    gates = Gates.default().with_gates([mine])
    resolved = resolve(["--feature-gates=Mine=true"], {}, str, gates=gates)
    assert resolved.config.gates.enabled("Mine")


def test_a_command_may_have_flags_of_its_own() -> None:
    resolved = resolve(
        ["-output", "json"], {}, str, extra=[Flag("output", Kind.TEXT), Flag("wide", Kind.BOOL)]
    )
    assert resolved.extra == {"output": "json"}


def test_a_configuration_cannot_be_changed() -> None:
    config = clean(file="defaultPodLabels: {a: b}")
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.burst = 1  # type: ignore[misc]  # that is the point
    with pytest.raises(TypeError):
        config.default_pod_labels["a"] = "c"  # type: ignore[index]  # that is the point


# What others get from it


@pytest.mark.parametrize(
    ("argv", "level", "stacktraces", "sampling"),
    [
        ([], logging.INFO, logging.ERROR, True),
        (["--zap-devel"], logging.DEBUG, logging.WARNING, False),
        (["--zap-log-level=2"], 9, logging.ERROR, True),
        (["--zap-log-level=debug"], logging.DEBUG, logging.ERROR, True),
        (["--zap-stacktrace-level=panic"], logging.INFO, logging.CRITICAL, True),
    ],
)
def test_log_settings(argv: list[str], level: int, stacktraces: int, sampling: bool) -> None:
    settings = clean(*argv).log_settings()
    assert (settings.level, settings.stacktrace_level, settings.sampling) == (level, stacktraces, sampling)


def test_log_files() -> None:
    settings = clean(file="logFile: /var/log/x\nlogFileEncoder: console").log_settings()
    assert (settings.file, settings.file_encoder) == (Path("/var/log/x"), "console")
    assert clean().log_settings().file is None


@pytest.mark.parametrize(
    ("text", "address"),
    [
        (":8080", ("", 8080)),
        ("0.0.0.0:0", ("0.0.0.0", 0)),
        ("[::1]:65535", ("::1", 65535)),
        ("localhost:80", ("localhost", 80)),
        ("0", None),
    ],
)
def test_addresses(text: str, address: tuple[str, int] | None) -> None:
    assert bind_address(text) == address


@pytest.mark.parametrize("text", ["", "8080", ":", ":http", ":65536", "::1:80", "a:-1", ":٣"])
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(ValueError, match="is no address"):
        bind_address(text)


@pytest.mark.parametrize(
    ("argv", "name"),
    [
        ([], None),
        (["--batch-scheduler=volcano"], "volcano"),
        (["--batch-scheduler=yunikorn"], "yunikorn"),
        (["--batch-scheduler=kai-scheduler"], "kai-scheduler"),
        (["--batch-scheduler=scheduler-plugins"], "scheduler-plugins"),
        (["--enable-batch-scheduler"], "volcano"),
        (["--feature-gates=KubernetesWAS=true"], "kubernetes-was-v1alpha2"),
    ],
)
def test_the_batch_scheduler(argv: list[str], name: str | None) -> None:
    assert batch_scheduler(run(*argv).config) == name


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (
            ["--batch-scheduler=default"],
            "batch-scheduler is 'default'; allowed is one of kai-scheduler, scheduler-",
        ),
        (["--batch-scheduler=kubernetes-was-v1alpha2"], "is 'kubernetes-was-v1alpha2'; allowed is one of"),
        (["--batch-scheduler=vulcano"], "did you mean volcano?"),
        (
            ["--batch-scheduler=volcano", "--enable-batch-scheduler"],
            "are both set; use batch-scheduler alone",
        ),
        (
            ["--batch-scheduler=volcano", "--feature-gates=KubernetesWAS=true"],
            "the feature gate KubernetesWAS excludes",
        ),
        (
            ["--enable-batch-scheduler", "--feature-gates=KubernetesWAS=true"],
            "the feature gate KubernetesWAS excludes",
        ),
    ],
)
def test_batch_schedulers_that_cannot_be(argv: list[str], says: str) -> None:
    with pytest.raises(Misconfigured) as error:
        batch_scheduler(run(*argv).config)
    assert says in str(error.value)


def test_plugins_add_batch_schedulers() -> None:
    config = clean("--batch-scheduler=mine")
    assert batch_scheduler(config, ["mine"]) == "mine"


# Whatever comes


ARGUMENTS = st.lists(
    st.sampled_from([f"--{flag.name}" for flag in FLAGS])
    | st.builds("--{}={}".format, st.sampled_from([flag.name for flag in FLAGS]), st.text(max_size=6))
    | st.text(max_size=6),
    max_size=6,
)
ENVIRONMENTS = st.dictionaries(
    st.sampled_from([s.env for s in SETTINGS if s.env]), st.text(max_size=6), max_size=4
)


@given(ARGUMENTS, ENVIRONMENTS, st.text(max_size=40))
def test_the_answer_is_a_configuration_or_a_list_of_mistakes(
    argv: list[str], env: dict[str, str], text: str
) -> None:
    try:
        resolved = resolve(argv, env, lambda _: HEADER + text)
    except ConfigError as error:
        assert all(error.problems)  # noqa: PT017 - either outcome is right, but not an empty sentence
    else:
        assert resolved == resolve(argv, env, lambda _: HEADER + text)
        resolved.config.log_settings()
        bind_address(resolved.config.metrics_addr)
        assert resolved.config.reconcile_concurrency > 0
