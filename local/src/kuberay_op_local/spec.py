"""What a cluster was asked to be; kept in ``cluster.json`` so that a second ``up`` gives the same."""

from __future__ import annotations

import json
import os
import re
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from kuberay_op_local.errors import LocalError

#: A name is part of file names and of node names.
NAME: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")
MAX_NODES: Final = 5000
LOOPBACK: Final = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Nodes:
    """Which nodes a cluster has."""

    kind: str = "none"
    count: int = 0

    @classmethod
    def parse(cls, text: str) -> Nodes:
        """Read the value of ``--node``: ``none``, ``real`` or ``kwok:COUNT``."""
        kind, _, count = text.partition(":")
        if text == "none":
            return cls()
        if text == "real":
            return cls(text, 1)
        if kind != "kwok" or not count.isdecimal() or not 1 <= int(count) <= MAX_NODES:
            raise LocalError(f"--node {text!r} is not known; use kwok:COUNT (1 to {MAX_NODES}), real or none")
        return cls(kind, int(count))

    @property
    def real(self) -> bool:
        """Whether Pods really run."""
        return self.kind == "real"

    def __str__(self) -> str:
        return f"kwok:{self.count}" if self.kind == "kwok" else self.kind


@dataclass(frozen=True, slots=True)
class Spec:
    """One cluster: what the user chose and which ports it got."""

    name: str
    kubernetes: str
    nodes: Nodes
    components: tuple[str, ...]
    programs: dict[str, str]
    ports: dict[str, int]
    extra_args: dict[str, list[str]] = field(default_factory=dict)
    #: Where the components listen: loopback, or the address of the real node's own network.
    host: str = LOOPBACK
    #: Whether an admission policy lowers what Pods ask for (real node only).
    small_requests: bool = False

    @property
    def server(self) -> str:
        """The address of the API server."""
        return f"https://{self.host}:{self.ports['kube-apiserver']}"

    def save(self, path: Path) -> None:
        """Write the file in one step: it is whole or not there."""
        draft = path.with_suffix(".new")
        draft.write_text(json.dumps(asdict(self), indent=2) + "\n")
        os.replace(draft, path)

    @classmethod
    def load(cls, path: Path) -> Spec | None:
        """Read the file; None when there is none."""
        try:
            data: dict[str, Any] = json.loads(path.read_text())
            data["nodes"] = Nodes(**data["nodes"])
            data["components"] = tuple(data["components"])
            return cls(**data)
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError) as error:
            raise LocalError(
                f"{path} cannot be read ({error}); was it made by another version? "
                f"`kuberay-op local down --name {path.parent.name}` removes the cluster"
            ) from error


def check_name(name: str) -> str:
    """The name, if a cluster can have it."""
    if not NAME.fullmatch(name):
        raise LocalError(
            f"--name {name!r} is not allowed: use up to 40 lower-case letters, digits and '-', "
            "beginning and ending with a letter or digit"
        )
    return name
