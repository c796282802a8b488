"""The command line: what the Job of a RayJob runs in its Pod."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from types import FrameType
from typing import Any, Final, NoReturn

from kuberay_op_submitter.dashboard import Dashboard
from kuberay_op_submitter.errors import GiveUp
from kuberay_op_submitter.follow import Follower

ADDRESS: Final = "RAY_DASHBOARD_ADDRESS"
SUBMISSION_ID: Final = "RAY_JOB_SUBMISSION_ID"
TOKEN: Final = "RAY_AUTH_TOKEN"  # noqa: S105 (the name of a variable)

#: Seconds for which the dashboard may be away.
PATIENCE: Final = 120.0

EPILOG: Final = f"""
{ADDRESS} and {SUBMISSION_ID} must be set, as the operator does it; {TOKEN} if Ray wants a token.
Exit codes: 0 the job has ended, however that was; 1 it could not be submitted or followed; 2 the command
line is wrong; 130 and 143 a signal came. After a signal the job goes on; run again, this follows it further.
"""


def parser() -> argparse.ArgumentParser:
    """The command line."""
    found = argparse.ArgumentParser(
        prog="submitter",
        usage="submitter [OPTIONS] [--] ENTRYPOINT...",
        description="Submit a Ray job over HTTP, once, and follow its log to the end.",
        epilog=EPILOG,
        allow_abbrev=False,
    )
    found.add_argument("--runtime-env-json", metavar="JSON", help="the runtime environment, an object")
    found.add_argument("--metadata-json", metavar="JSON", help="metadata of the job, an object of texts")
    found.add_argument("--entrypoint-num-cpus", type=float, metavar="N", help="CPUs for the entrypoint")
    found.add_argument("--entrypoint-num-gpus", type=float, metavar="N", help="GPUs for the entrypoint")
    found.add_argument("--entrypoint-resources", metavar="JSON", help="other resources for it, by name")
    found.add_argument(
        "--patience",
        type=float,
        default=PATIENCE,
        metavar="SECONDS",
        help="how long the dashboard may be away before this gives up (%(default)g)",
    )
    found.add_argument("entrypoint", nargs=argparse.REMAINDER, metavar="ENTRYPOINT")
    return found


def request_of(options: argparse.Namespace, submission_id: str) -> dict[str, Any]:
    """What Ray is sent; what was not given is left out. Raises ``GiveUp`` for bad JSON."""
    words = options.entrypoint[1:] if options.entrypoint[:1] == ["--"] else options.entrypoint
    given = {
        "entrypoint_num_cpus": options.entrypoint_num_cpus,
        "entrypoint_num_gpus": options.entrypoint_num_gpus,
        "runtime_env": read_object("--runtime-env-json", options.runtime_env_json),
        "metadata": read_object("--metadata-json", options.metadata_json),
        "entrypoint_resources": read_object("--entrypoint-resources", options.entrypoint_resources),
    }
    return {
        "entrypoint": " ".join(words),
        "submission_id": submission_id,
        **{name: value for name, value in given.items() if value},
    }


def read_object(option: str, text: str | None) -> dict[str, Any]:
    """A JSON object; the text itself is never shown, since it may hold secrets."""
    if not text:
        return {}
    try:
        found = json.loads(text)
    except ValueError as error:
        raise GiveUp(f"{option} is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise GiveUp(f"{option} must be a JSON object, such as {{}}, not {type(found).__name__}")
    return found


def secrets_of(request: Mapping[str, Any]) -> list[str]:
    """Values of environment variables: they are where secrets are put."""
    variables = request.get("runtime_env", {}).get("env_vars")
    return [str(value) for value in variables.values()] if isinstance(variables, dict) else []


def run(arguments: Sequence[str], environment: Mapping[str, str]) -> None:
    """Do it; raises ``GiveUp``."""
    options = parser().parse_args(arguments)
    missing = [name for name in (ADDRESS, SUBMISSION_ID) if not environment.get(name)]
    if missing:
        raise GiveUp(f"{' and '.join(missing)} must be set; the operator sets them in the Pods of a RayJob")
    job = environment[SUBMISSION_ID]
    request = request_of(options, job)
    if not request["entrypoint"]:
        raise GiveUp("there is no entrypoint; write it after the options, as in: submitter -- python job.py")
    dashboard = Dashboard.at(
        environment[ADDRESS], token=environment.get(TOKEN, ""), secrets=secrets_of(request)
    )
    Follower(dashboard, job, patience=options.patience).run(request)


def main() -> None:
    """Entry point: turns what went wrong into one sentence and an exit code."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _end)
    try:
        run(sys.argv[1:], os.environ)
    except GiveUp as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(1)


def _end(number: int, _: FrameType | None) -> NoReturn:
    sys.stderr.write(f"stopped by {signal.Signals(number).name}; the Ray job goes on\n")
    sys.exit(128 + number)
