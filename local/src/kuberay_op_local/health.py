"""Waiting for components: are they up, and if not, why?"""

from __future__ import annotations

import ssl
import time
from collections import deque
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import httpx
import psutil

from kuberay_op_local import components, processes
from kuberay_op_local.errors import ComponentError
from kuberay_op_local.paths import Layout
from kuberay_op_local.real import files, node
from kuberay_op_local.real.world import World
from kuberay_op_local.spec import Spec

TAIL_LINES: Final = 8
POLL_SECONDS: Final = 0.05
#: How long an answer may take: to "are you ready", and to a request on a busy machine.
PROBE_SECONDS: Final = 5.0
CALL_SECONDS: Final = 60.0

#: Where the components that know best themselves are asked.
PATHS: Final = {
    components.ETCD: "/health",
    components.API_SERVER: "/readyz",
    components.SCHEDULER: "/healthz",
}

#: What a log line means for the user; the first match wins.
HINTS: Final = (
    ("address already in use", "another program took the port: run `down` and `up` again, or choose --port"),
    ("no space left on device", "free some disk space, or move the state with XDG_STATE_HOME"),
    ("permission denied", "check who owns the state folder"),
    ("unknown flag", "the extra arguments do not suit this Kubernetes version"),
    ("cannot allocate memory", "free some memory: a control plane needs about 1 GB"),
)


def tail(log: Path, lines: int = TAIL_LINES) -> list[str]:
    """The last lines of a log file; none when there is no file."""
    try:
        with log.open(encoding="utf-8", errors="replace") as file:
            return [line.rstrip("\n") for line in deque(file, maxlen=lines)]
    except FileNotFoundError:
        return []


def failure(component: str, what: str, layout: Layout, *, cluster: str) -> ComponentError:
    """An error that names the component, shows the end of its log and says what to try."""
    last = tail(layout.log(component))
    text = "\n".join(last).lower()
    advice = next(
        (hint for sign, hint in HINTS if sign in text),
        f"run `kuberay-op local down --name {cluster}` and `up` again",
    )
    shown = "\n".join(f"    {line}" for line in last) or "    (empty)"
    return ComponentError(
        component, f"{component} {what}\n  last lines of {layout.log(component)}:\n{shown}\n  try: {advice}"
    )


class Probe:
    """Asks the components of one cluster how they are."""

    def __init__(self, spec: Spec, layout: Layout) -> None:
        self.spec = spec
        self.layout = layout
        context = ssl.create_default_context(cafile=str(layout.pki / "ca.crt"))
        context.load_cert_chain(layout.pki / "admin.crt", layout.pki / "admin.key")
        # Proxies of the environment must not see loopback traffic.
        self._http = httpx.Client(verify=context, timeout=PROBE_SECONDS, trust_env=False)

    def __enter__(self) -> Probe:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def api(
        self, method: str, path: str, body: Any = None, *, seconds: float = CALL_SECONDS
    ) -> httpx.Response:
        """One call to the API server, as administrator."""
        return self._http.request(method, self.spec.server + path, json=body, timeout=seconds)

    def demand(self, method: str, path: str, body: Any = None) -> Any:
        """A call that must succeed; gives the JSON it answers."""
        try:
            return self.api(method, path, body).raise_for_status().json()
        except httpx.HTTPError as error:
            what = f"did not answer {method} {path}: {error}"
            raise failure(components.API_SERVER, what, self.layout, cluster=self.spec.name) from error

    def ready(self, component: str) -> bool:
        """Whether the component does its work."""
        try:
            return self._ready(component)
        except httpx.TransportError:
            return False

    def _ready(self, component: str) -> bool:
        if component in PATHS:
            return self._says_ok(component, PATHS[component])
        if component == components.CONTROLLER_MANAGER:
            # Its own health says too little: Pods can be made once their service account exists.
            account = "/api/v1/namespaces/default/serviceaccounts/default"
            return self._says_ok(component, "/healthz") and self._says_ok(components.API_SERVER, account)
        if component == components.KWOK:
            return self.ready_nodes() >= self.spec.nodes.count
        if component == components.KUBELET:
            # The node stays Ready for a while without its kubelet, so both are asked.
            answer = self._http.get(f"https://{self.spec.host}:{files.KUBELET_PORT}/healthz")
            return answer.status_code == httpx.codes.OK and self.ready_nodes() >= self.spec.nodes.count
        return node.ready(component, self.spec, self._world)

    @cached_property
    def _world(self) -> World | None:
        holder = processes.find(self.layout.root).get(components.NAMESPACES)
        return World.of(holder) if holder is not None else None

    def _says_ok(self, component: str, path: str) -> bool:
        url = f"https://{self.spec.host}:{self.spec.ports[component]}{path}"
        return self._http.get(url).status_code == httpx.codes.OK

    def ready_nodes(self) -> int:
        """How many nodes are Ready."""
        answer = self.api("GET", "/api/v1/nodes")
        if answer.status_code != httpx.codes.OK:
            return 0
        return sum(
            any(c["type"] == "Ready" and c["status"] == "True" for c in node["status"].get("conditions", ()))
            for node in answer.json()["items"]
        )

    def wait(
        self,
        component: str,
        running: Mapping[str, psutil.Process],
        *,
        seconds: float,
        tick: Callable[[float], None],
    ) -> None:
        """Wait until the component is ready; fails when one ends or when it takes too long."""
        began = time.monotonic()
        while not self.ready(component):
            took = time.monotonic() - began
            for name, process in running.items():
                if not processes.alive(process):
                    raise failure(name, "ended while it was starting", self.layout, cluster=self.spec.name)
            if took > seconds:
                what = f"was not ready after {seconds:.0f} seconds"
                raise failure(component, what, self.layout, cluster=self.spec.name)
            tick(took)
            time.sleep(POLL_SECONDS)
