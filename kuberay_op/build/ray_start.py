"""``ray start``: its flags from the spec and from what the container may use, and the command around it."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

import orjson

from kuberay_op.api import annotations as notes
from kuberay_op.api import env, ports
from kuberay_op.api.resources import is_gpu
from kuberay_op.build.draft import Draft, shell
from kuberay_op.quantity import Quantity

#: Flags that take true and false as a value; all others are switches.
_TAKES_A_VALUE: Final = ("include-dashboard", "include-log-monitor", "log-color")

#: Accelerators by their name in Kubernetes, and their names in Ray. The first in order of the alphabet wins.
_ACCELERATORS: Final = {"aws.amazon.com/neuroncore": "neuron_cores", "google.com/tpu": "TPU"}

_UNIT: Final = 10**9
_ULIMIT: Final = f"ulimit -n ${{{env.RAY_START_ULIMIT_OPEN_FILES}:-65536}}"


def take_resources(draft: Draft) -> None:
    """Flags from the group's ``resources``, which win over those the user wrote as flags."""
    numbers: dict[str, str] = {}
    custom: dict[str, float] = {}
    for name, text in sorted(draft.group.resources.items()):
        amount = _quantity(text)
        if amount is None:
            continue
        flag = _flag_of(name.lower())
        if flag is None:
            custom[name] = amount.nanos / _UNIT
        else:
            numbers.setdefault(flag, _whole(amount))  # of several kinds of GPU the first counts
    draft.params.update(numbers)
    if custom:
        draft.params["resources"] = _quoted(custom)


def take_labels(draft: Draft) -> None:
    """The flag ``labels`` from the group's labels."""
    if draft.group.labels:
        draft.params["labels"] = ",".join(
            f"{key}={value}" for key, value in sorted(draft.group.labels.items())
        )


def take_defaults(draft: Draft) -> None:
    """Flags that must be there for the operator to work with Ray."""
    params = draft.params
    if draft.is_head:
        params.setdefault("dashboard-host", "0.0.0.0")  # noqa: S104 (the head Service leads here)
    else:
        params.setdefault("address", f"{draft.head_host}:{draft.head_port}")
    params.setdefault("metrics-export-port", str(ports.DEFAULTS[ports.METRICS]))
    params["block"] = "true"  # the container lives as long as Ray does
    params.setdefault("dashboard-agent-listen-port", str(ports.DASHBOARD_AGENT))


def take_limits(draft: Draft) -> None:
    """CPUs, memory, GPUs and other accelerators from what the Ray container may use."""
    resources = draft.ray.get("resources") or {}
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    params = draft.params
    found = {
        "num-cpus": _quantity(limits.get("cpu")) or _quantity(requests.get("cpu")),
        "memory": _quantity(limits.get("memory")),
        "num-gpus": next(
            (a for key in sorted(limits) if is_gpu(key) and (a := _quantity(limits[key]))), None
        ),
    }
    for flag, amount in found.items():
        if amount:
            params.setdefault(flag, _whole(amount))
    _take_accelerator(params, limits)


def _take_accelerator(params: dict[str, str], limits: Mapping[str, Any]) -> None:
    custom = _custom_resources(params.get("resources", "{}"))
    if custom is None or not custom.keys().isdisjoint(_ACCELERATORS.values()):
        return
    for key, name in sorted(_ACCELERATORS.items()):
        if amount := _quantity(limits.get(key)):
            params["resources"] = _quoted({**custom, name: amount.nanos / _UNIT})
            return


def command(draft: Draft) -> str:
    """The ``ray start`` command with all its flags."""
    head = "--head " if draft.is_head else ""
    return f"ray start {head}{''.join(_rendered(key, value) for key, value in sorted(draft.params.items()))}"


def set_command(draft: Draft, ray_start: str) -> None:
    """Make the Ray container run ``ray start`` after what the user wants run.

    A user who asks to be left alone, or runs ``ray start`` himself, keeps his command.
    """
    ray = draft.ray
    own = "".join(f" {word} " for key in ("command", "args") for word in ray.get(key) or ())
    if draft.annotation(notes.OVERWRITE_CONTAINER_CMD).lower() == "true" or "ray start" in own:
        return
    generated = f"{_ULIMIT}; {ray_start}"
    ray["command"] = shell(draft.config)
    ray["args"] = [f"{own} && {generated}" if own else generated]


def _rendered(key: str, value: str) -> str:
    if value.lower() in ("true", "false") and key not in _TAKES_A_VALUE:
        return f" --{key} " if value.lower() == "true" else ""
    return f" --{key}={value} "


def _flag_of(name: str) -> str | None:
    """The flag for a resource; None for one that Ray knows nothing about."""
    if is_gpu(name):
        return "num-gpus"
    return {"cpu": "num-cpus", "memory": "memory"}.get(name)


def _quantity(text: Any) -> Quantity | None:
    """The amount; None when there is none or it cannot be read."""
    if isinstance(text, bool) or not isinstance(text, str | int):
        return None
    try:
        return Quantity.parse(text)
    except ValueError:
        return None


def _whole(amount: Quantity) -> str:
    """The amount as a whole number, rounded up."""
    return str(-(-amount.nanos // _UNIT))


def _custom_resources(text: str) -> dict[str, float] | None:
    """The flag ``resources`` as numbers; None when it cannot be read.

    Users quote it in many ways, for YAML and for the shell: ``'{"A": 1}'`` and ``"{\\"A\\": 1}"`` are both
    common.
    """
    inner = text.strip("'\"` ")
    for attempt in (inner, inner.replace('\\"', '"')):
        try:
            found = orjson.loads(attempt)
        except orjson.JSONDecodeError:
            continue
        if isinstance(found, dict) and all(_is_number(value) for value in found.values()):
            return {key: float(value) for key, value in found.items()}
    return None


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _quoted(amounts: Mapping[str, float]) -> str:
    """The flag ``resources``: JSON without blanks, keys in order, in quotes for the shell."""
    pairs = (f"{orjson.dumps(name).decode()}:{_number(amount)}" for name, amount in sorted(amounts.items()))
    return f"'{{{','.join(pairs)}}}'"


def _number(amount: float) -> str:
    """A number as JSON has it: no exponent, no fraction where there is none."""
    return str(int(amount)) if amount.is_integer() else f"{Decimal(repr(amount)):f}"
