"""A real Redis for the tests: with TLS and a password, on ports of its own, and gone after the tests."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import redis

from kuberay_op_local.certs import Authority

PASSWORD = "never-to-be-shown"


@dataclass(frozen=True, slots=True)
class Server:
    """A Redis that runs."""

    port: int
    tls_port: int
    ca_file: str

    def client(self) -> redis.Redis:
        """A connection of the test's own."""
        return redis.Redis(port=self.port, password=PASSWORD)


def unused_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture
def free_port() -> Callable[[], int]:
    """Gives ports that nobody listens on."""
    return unused_port


Start = Callable[[int, int], Server]


@pytest.fixture(scope="session")
def start_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Start]:
    """Starts a Redis on two given ports: a plain one, and one with TLS."""
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("there is no redis-server here; install it: apt-get install redis-server")
    folder = tmp_path_factory.mktemp("redis")
    authority = Authority.create("test-ca")
    (folder / "ca.crt").write_bytes(authority.pair.certificate)
    authority.server("redis", ["localhost", "127.0.0.1"]).save(folder, "server")
    running: list[subprocess.Popen[bytes]] = []

    def run(port: int, tls_port: int) -> Server:
        options = {
            "port": port, "tls-port": tls_port, "bind": "127.0.0.1", "requirepass": PASSWORD, "save": "",
            "tls-cert-file": folder / "server.crt", "tls-key-file": folder / "server.key",
            "tls-ca-cert-file": folder / "ca.crt", "tls-auth-clients": "no", "dir": folder,
        }  # fmt: skip
        arguments = [str(word) for name, value in options.items() for word in (f"--{name}", value)]
        running.append(subprocess.Popen([program, *arguments], stdout=subprocess.DEVNULL))
        server = Server(port, tls_port, str(folder / "ca.crt"))
        _wait_for(server)
        return server

    yield run
    for process in running:
        process.terminate()
        process.wait(30)


@pytest.fixture(scope="session")
def redis_server(start_redis: Start) -> Server:
    """A Redis for all tests; each uses a namespace of its own."""
    return start_redis(unused_port(), unused_port())


@pytest.fixture(scope="session")
def other_ca(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An authority that did not sign Redis's certificate."""
    path: Path = tmp_path_factory.mktemp("ca") / "other.crt"
    path.write_bytes(Authority.create("somebody-else").pair.certificate)
    return str(path)


def _wait_for(server: Server) -> None:
    for _ in range(600):
        try:
            with server.client() as client:
                client.ping()
                return
        except redis.ConnectionError:
            time.sleep(0.05)
    raise TimeoutError("redis-server did not come up")
