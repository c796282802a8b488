"""Where a cluster's Redis is, and how to get in, from the environment of its head. Pure but for Secrets."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote, urlsplit

from kuberay_op.api import env
from kuberay_op.api.podtemplate import environment
from kuberay_op.api.view import Json
from kuberay_op.errors import OperatorError

PORT: Final = 6379

#: Files that Ray reads for TLS; they are mounted into the head, where the operator cannot read them.
AUTHORITY: Final = "RAY_REDIS_CA_CERT"
CLIENT_FILES: Final = ("RAY_REDIS_CA_PATH", "RAY_REDIS_CLIENT_CERT", "RAY_REDIS_CLIENT_KEY")

#: Reads a Secret by its name.
ReadSecret = Callable[[str], Awaitable[Mapping[str, bytes]]]


class NotDirect(OperatorError):
    """The operator cannot reach this Redis by itself; the head's Pod, and so the Job, can."""


@dataclass(frozen=True, slots=True)
class Literal:
    """A value that stands in the spec. Never shown."""

    text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class SecretKey:
    """A value in a Secret of the cluster's namespace."""

    name: str
    key: str
    optional: bool = False


Value = Literal | SecretKey


@dataclass(frozen=True, slots=True)
class Place:
    """A Redis server, the credentials for it, and the namespace of a cluster's keys in it."""

    host: str
    port: int
    tls: bool
    namespace: str
    username: Value | None = None
    password: Value | None = None

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def place_of(ray: Json, *, trusted: bool) -> Place:
    """The Redis that a Ray container uses; raises :class:`NotDirect` and says why.

    ``trusted`` is whether the operator was told which authorities to trust.
    """
    address = _plain(ray, env.RAY_REDIS_ADDRESS)
    if not address:
        raise NotDirect(f"the head has no {env.RAY_REDIS_ADDRESS}")
    first = address.split(",")[0].strip()
    try:
        url = urlsplit(first if "://" in first else f"redis://{first}")
        host, port = url.hostname, url.port or PORT
    except ValueError:
        host = None
    if host is None or url.scheme not in ("redis", "rediss"):
        raise NotDirect(f"{env.RAY_REDIS_ADDRESS} is not HOST:PORT, redis://HOST:PORT or rediss://HOST:PORT")
    tls = url.scheme == "rediss"
    files = [*CLIENT_FILES, *(() if trusted else (AUTHORITY,))]
    for name in files if tls else ():
        if _value(ray, name) is not None:
            raise NotDirect(f"{name} is a file of the head")
    return Place(
        host=host,
        port=port,
        tls=tls,
        namespace=_plain(ray, env.RAY_EXTERNAL_STORAGE_NAMESPACE),
        username=_value(ray, env.REDIS_USERNAME) or _of_url(url.username),
        password=_value(ray, env.REDIS_PASSWORD) or _of_url(url.password),
    )


async def resolve(value: Value | None, read: ReadSecret) -> str | None:
    """The value itself; raises :class:`OperatorError` when the Secret has no such key."""
    if value is None or isinstance(value, Literal):
        return value.text or None if value else None
    try:
        found = (await read(value.name)).get(value.key)
    except OperatorError:
        if value.optional:
            return None
        raise
    if found is None and not value.optional:
        raise OperatorError(f"Secret {value.name} has no key {value.key}")
    return found.decode() if found is not None else None


def _of_url(text: str | None) -> Literal | None:
    return Literal(unquote(text)) if text else None


def _plain(ray: Json, name: str) -> str:
    match _value(ray, name):
        case None:
            return ""
        case Literal(text):
            return text
    raise NotDirect(f"{name} stands in a Secret")


def _value(ray: Json, name: str) -> Value | None:
    """A variable as Kubernetes sees it: of two of one name the last counts."""
    for variable in reversed(environment(ray)):
        if variable.get("name") != name:
            continue
        source = variable.get("valueFrom")
        if not source:
            text = str(variable.get("value") or "")
            if "$(" in text:
                raise NotDirect(f"{name} is made from other variables")
            return Literal(text)
        key = source.get("secretKeyRef")
        if not key:
            raise NotDirect(f"{name} is taken from {', '.join(source)}")
        return SecretKey(str(key["name"]), str(key["key"]), optional=bool(key.get("optional")))
    if ray.get("envFrom") and name == env.RAY_REDIS_ADDRESS:
        raise NotDirect(f"{name} may come from envFrom")
    return None
