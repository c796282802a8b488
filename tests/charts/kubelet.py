"""Plays the kubelet for the Pods of our own charts: their commands run as processes of this machine.

There is no node that could run an image here, and kwok's nodes run nothing. So Pods that ask for a node of
the name ``HERE`` are started as processes, with the arguments and files that the chart gave them and the
token of their service account. What they may do is up to the rendered roles, as in a real Pod.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import httpx
import yaml

from kuberay_op.testing.controlplane import ControlPlane
from tests.charts.helm import Json

#: Values with which Pods of the chart come to us.
HERE: Final = {"nodeSelector": {"kubernetes.io/hostname": "played-by-the-test"}}

#: Programs of the image, and what they are here.
PROGRAMS: Final = {
    "/manager": [sys.executable, "-c", "from kuberay_op.cli import manager; manager()"],
    "kuberay-op": [sys.executable, "-c", "from kuberay_op.cli import main; main()"],
    "python3": [sys.executable],
}

POLL: Final = 0.2
STOP_SECONDS: Final = 30


class Kubelet:
    """Runs Pods of one namespace while it is entered."""

    def __init__(self, plane: ControlPlane, namespace: str, folder: Path) -> None:
        self._plane = plane
        self._namespace = namespace
        self._folder = folder
        #: Images of third parties: the folder in which an image's files are.
        self.images: dict[str, Path] = {}
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._ports: dict[str, int] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, name="kubelet")
        self._trouble: list[BaseException] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()
        for process in self._processes.values():
            _end(process)
        if self._trouble and error is None:
            raise self._trouble[0]

    def log(self, beginning: str) -> str:
        """What all Pods whose name begins so have written."""
        return "".join(path.read_text("utf-8") for path in sorted(self._folder.glob(f"{beginning}*.log")))

    def _work(self) -> None:
        while not self._stop.wait(POLL):
            try:
                self._look()
            except (httpx.HTTPError, KeyError):
                continue  # the server is busy, or the Pod has just gone
            except BaseException as error:  # noqa: BLE001 (told when the test ends)
                self._trouble.append(error)
                return

    def _look(self) -> None:
        path = f"/api/v1/namespaces/{self._namespace}/pods"
        pods = [pod for pod in self._plane.api("GET", path)["items"] if _is_ours(pod)]
        for uid in self._processes.keys() - {pod["metadata"]["uid"] for pod in pods}:
            _end(self._processes.pop(uid))
        for pod in pods:
            uid, address = pod["metadata"]["uid"], f"{path}/{pod['metadata']['name']}"
            if "deletionTimestamp" in pod["metadata"]:
                if uid in self._processes:
                    _end(self._processes.pop(uid))
                self._plane.api("DELETE", address, {"gracePeriodSeconds": 0})
            elif uid in self._processes:
                self._report(pod, address, self._processes[uid])
            elif pod["status"].get("phase") == "Pending":
                self._processes[uid] = self._start(pod)

    def _report(self, pod: Json, address: str, process: subprocess.Popen[bytes]) -> None:
        code = process.poll()
        if code is None:
            phase, ready = "Running", self._ready(pod["metadata"]["uid"])
        else:
            phase, ready = ("Failed" if code else "Succeeded"), False
        conditions = [
            {"type": kind, "status": str(ready)} for kind in ("Ready", "ContainersReady", "Initialized")
        ]
        status = {"phase": phase, "conditions": conditions}
        said = {each["type"]: each["status"] for each in pod["status"].get("conditions", ())}
        if pod["status"].get("phase") != phase or said.get("Ready") != str(ready):
            self._plane.api("PUT", f"{address}/status", {**pod, "status": status})

    def _ready(self, uid: str) -> bool:
        if uid not in self._ports:
            return True
        try:
            answer = httpx.get(f"http://127.0.0.1:{self._ports[uid]}/readyz", timeout=2.0, trust_env=False)
        except httpx.TransportError:
            return False
        return answer.status_code == httpx.codes.OK

    def _start(self, pod: Json) -> subprocess.Popen[bytes]:
        name = pod["metadata"]["name"]
        container = pod["spec"]["containers"][0]
        home = self._folder / name
        home.mkdir()
        words = [*container["command"], *container.get("args", ())]
        for volume in pod["spec"].get("volumes", ()):
            if "configMap" in volume:
                (mount,) = (each for each in container["volumeMounts"] if each["name"] == volume["name"])
                folder = self._mounted(volume["configMap"]["name"], home / volume["name"])
                words = [word.replace(mount["mountPath"], str(folder)) for word in words]
        if words[0] == "/manager":
            # Ports of its own: other operators run on this machine.
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                port = free.getsockname()[1]
            self._ports[pod["metadata"]["uid"]] = port
            words += [f"--health-probe-bind-address=127.0.0.1:{port}", "--metrics-addr=0"]
            self._set_in_files(home, {"probeAddr": f"127.0.0.1:{port}", "metricsAddr": "0"})
        extra = home / "extra-plugins"
        for first in pod["spec"].get("initContainers", ()):
            self._copy(first, extra)
        environment = {
            each["name"]: each.get("value", "").replace("/extra-plugins", str(extra))
            for each in container.get("env", ())
        }
        with (self._folder / f"{name}.log").open("wb") as output:
            return subprocess.Popen(
                [*PROGRAMS[words[0]], *words[1:]],
                env={
                    "PATH": os.environ["PATH"],
                    "HOME": str(home),
                    "KUBECONFIG": str(self._account(pod["spec"]["serviceAccountName"], home)),
                    **environment,
                },
                stdout=output,
                stderr=output,
            )

    def _copy(self, container: Json, extra: Path) -> None:
        """What the init container of a third party's plugin does: copy files of its image."""
        program, flag, source, target = container["command"]
        folder = Path(target.replace("/extra-plugins", str(extra)))
        folder.mkdir(parents=True)
        subprocess.run(
            [shutil.which(program) or program, flag, f"{self.images[container['image']]}{source}", folder],
            check=True,
        )

    def _mounted(self, name: str, folder: Path) -> Path:
        folder.mkdir()
        data = self._plane.api("GET", f"/api/v1/namespaces/{self._namespace}/configmaps/{name}")["data"]
        for file, content in data.items():
            (folder / file).write_text(content, "utf-8")
        return folder

    def _set_in_files(self, home: Path, settings: dict[str, str]) -> None:
        for path in home.glob("config/config.yaml"):
            config = yaml.safe_load(path.read_text("utf-8")) | settings
            if "pluginFolders" in config:
                config["pluginFolders"] = str(home / "plugins")
            path.write_text(yaml.safe_dump(config), "utf-8")

    def _account(self, name: str, home: Path) -> Path:
        """A kubeconfig with the account's token, as a Pod would have it."""
        path = f"/api/v1/namespaces/{self._namespace}/serviceaccounts/{name}/token"
        asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        token = self._plane.api("POST", path, asked)["status"]["token"]
        config = yaml.safe_load(self._plane.kubeconfig.read_text("utf-8"))
        config["users"] = [{"name": config["users"][0]["name"], "user": {"token": token}}]
        config["contexts"][0]["context"]["namespace"] = self._namespace
        file = home / "kubeconfig"
        file.write_text(yaml.safe_dump(config), "utf-8")
        return file


def _is_ours(pod: Json) -> bool:
    return bool(pod["spec"].get("nodeSelector") == HERE["nodeSelector"])


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(STOP_SECONDS)
    if process.poll() is None:
        process.kill()
        process.wait()
