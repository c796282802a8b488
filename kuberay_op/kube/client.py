"""The client: verbs on resources, plain dicts, one deadline per call.

Every call waits for its turn (fairly between owners), is retried only where that is safe, and ends within its
deadline. Every write carries the reason for which it is made.
"""

from __future__ import annotations

import asyncio
import enum
import os
import random
from collections.abc import AsyncGenerator, Callable, Hashable, Mapping, Sequence
from contextlib import aclosing
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

import orjson

from kuberay_op import __version__
from kuberay_op.clock import Clock, SystemClock
from kuberay_op.kube import config, watch
from kuberay_op.kube.errors import ApiError, Gone
from kuberay_op.kube.fence import Fence
from kuberay_op.kube.ratelimit import URGENT, RateLimiter
from kuberay_op.kube.request import Request, delete_options, on_collection, on_object, selectors
from kuberay_op.kube.resource import Object, Resource
from kuberay_op.kube.retry import repeatable, retry_delay
from kuberay_op.kube.session import NO_ANSWER, ClientMetrics, Session
from kuberay_op.logs import get_logger

__all__ = ["URGENT", "Client", "ListResult", "PatchKind"]

log = get_logger("kube.client")

#: Seconds for a call that names no deadline of its own.
DEADLINE: Final = 30.0

#: Objects in the first page and in the largest; in between the size is chosen so that a page has about so
#: many bytes, because decoding one must not keep others waiting.
FIRST_PAGE: Final = 50
PAGE: Final = 500
PAGE_BYTES: Final = 1 << 20

#: Bookmarks come about once a minute; twice that without a byte means that nobody is there.
SILENCE: Final = 120.0


#: The body of a patch: an object, or a list of JSON patch operations.
PatchBody = Mapping[str, Any] | Sequence[Mapping[str, Any]]


class PatchKind(enum.Enum):
    """How the body of a patch is to be read; the value is its content type."""

    MERGE = "application/merge-patch+json"
    JSON = "application/json-patch+json"
    APPLY = "application/apply-patch+yaml"


class ListResult(NamedTuple):
    """The objects of a list (or of one page) and the version of the whole."""

    items: list[Object]
    resource_version: str


class Client:
    """Talks to one API server; see :meth:`connect`. Safe to use from many tasks at once."""

    def __init__(
        self,
        session: Session,
        *,
        limiter: RateLimiter,
        clock: Clock,
        rng: random.Random,
        metrics: ClientMetrics | None = None,
        field_manager: str = "kuberay-operator",
        deadline: float = DEADLINE,
    ) -> None:
        self._session = session
        self._limiter = limiter
        self._clock = clock
        self._rng = rng
        self._metrics = metrics
        self._field_manager = field_manager
        self._deadline = deadline

    @classmethod
    async def connect(
        cls,
        kubeconfig: str | os.PathLike[str] | None = None,
        *,
        context: str | None = None,
        qps: float = 100.0,
        burst: int = 200,
        user_agent: str = f"kuberay-operator/{__version__}",
        metrics: ClientMetrics | None = None,
        clock: Clock | None = None,
        rng: random.Random | None = None,
        deadline: float = DEADLINE,
        fence: Fence | None = None,
    ) -> Self:
        """Make a client for the cluster that :func:`kuberay_op.kube.config.load` finds.

        ``qps`` and ``burst`` are the client-side rate limit; a ``qps`` of zero or less means none. ``fence``
        is asked before every write, see :mod:`kuberay_op.kube.fence`. Use it as an async context manager, or
        call :meth:`close`.
        """
        clock = clock or SystemClock()
        connection = await config.load(kubeconfig, context=context, clock=clock)
        return cls(
            Session(connection, user_agent=user_agent, metrics=metrics, fence=fence),
            limiter=RateLimiter(qps, burst, clock),
            clock=clock,
            rng=rng or random.Random(),  # noqa: S311 – for jitter, not for secrets
            metrics=metrics,
            deadline=deadline,
        )

    @property
    def server(self) -> str:
        """The address of the API server."""
        return self._session.connection.server

    @property
    def namespace(self) -> str:
        """The namespace of the kubeconfig context, or of the Pod we run in."""
        return self._session.connection.namespace

    async def close(self) -> None:
        """Close all connections; calls under way fail."""
        await self._limiter.close()
        await self._session.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # Reading

    async def get(
        self,
        resource: Resource,
        name: str,
        namespace: str | None = None,
        *,
        subresource: str | None = None,
        owner: Hashable | None = None,
        deadline: float | None = None,
    ) -> Object:
        """Read one object."""
        request = on_object("GET", "get", resource, namespace, name, subresource=subresource)
        return await self._object(request, owner, deadline)

    async def list(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        label_selector: str | None = None,
        field_selector: str | None = None,
        limit: int = PAGE,
        owner: Hashable | None = None,
        deadline: float | None = None,
    ) -> ListResult:
        """Read all objects, page by page. The deadline is for each page."""
        items, version = [], ""
        try:
            async for page in self.pages(
                resource,
                namespace,
                label_selector=label_selector,
                field_selector=field_selector,
                limit=limit,
                owner=owner,
                deadline=deadline,
            ):
                items += page.items
                version = page.resource_version
        except Gone:
            if not limit:
                raise
            # The continue token aged while we read: once more, in one piece.
            return await self.list(
                resource,
                namespace,
                label_selector=label_selector,
                field_selector=field_selector,
                limit=0,
                owner=owner,
                deadline=deadline,
            )
        return ListResult(items, version)

    async def pages(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        label_selector: str | None = None,
        field_selector: str | None = None,
        limit: int = PAGE,
        owner: Hashable | None = None,
        deadline: float | None = None,
    ) -> AsyncGenerator[ListResult]:
        """Read all objects as pages of one consistent list; raises ``Gone`` if that took too long.

        ``limit`` is the most objects in a page; pages of large objects have fewer. A limit of zero asks for
        everything at once.
        """
        params = selectors(label_selector, field_selector)
        size = min(limit, FIRST_PAGE)
        while True:
            if size:
                params["limit"] = str(size)
            request = on_collection("GET", "list", resource, namespace, params=params)
            body = await self._send(request, owner, deadline)
            answer = request.decoded(body)
            metadata = answer.get("metadata") or {}
            items = answer.get("items") or []
            for item in items:
                # Lists leave these out of their items; objects elsewhere have them.
                item.setdefault("apiVersion", resource.api_version)
                item.setdefault("kind", resource.kind)
            yield ListResult(items, metadata.get("resourceVersion") or "")
            if not metadata.get("continue"):
                return
            params["continue"] = metadata["continue"]
            size = max(1, min(limit, len(items) * PAGE_BYTES // len(body)))

    async def watch(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        resource_version: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
        initial: bool = False,
        managed_fields: bool = True,
        server_timeout: int = 300,
        silence: float = SILENCE,
        opened: Callable[[], None] | None = None,
        owner: Hashable | None = None,
        deadline: float | None = None,
    ) -> AsyncGenerator[watch.WatchEvent]:
        """Follow changes from ``resource_version`` on, until the server ends it after ``server_timeout`` s.

        With ``initial`` the server first sends all objects as ``ADDED`` and then a bookmark annotated with
        ``k8s.io/initial-events-end``. The deadline is for the start of the answer; after that only
        ``silence`` seconds without a byte end the watch from this side. ``opened`` is called when the server
        has accepted the watch. Without ``managed_fields`` objects mostly come without them, which saves
        time. Close the iterator (``aclosing``) when leaving it early.
        """
        params = selectors(label_selector, field_selector) | {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(server_timeout),
        }
        if resource_version:
            params["resourceVersion"] = resource_version
        if initial:
            params |= {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        request = on_collection("GET", "watch", resource, namespace, params=params)
        within = deadline or self._deadline
        try:
            async with asyncio.timeout(within):
                await self._turn(request, owner)
            async with self._session.stream(request, within=within) as chunks:
                if opened is not None:
                    opened()
                stream = watch.events(
                    chunks, silence=silence, doing=request.doing, managed_fields=managed_fields
                )
                async with aclosing(stream):
                    async for event in stream:
                        yield event
        except TimeoutError as error:
            raise request.late(within) from error

    # Writing

    async def create(
        self,
        resource: Resource,
        obj: Mapping[str, Any],
        *,
        reason: str,
        namespace: str | None = None,
        field_manager: str | None = None,
        dry_run: bool = False,
        owner: Hashable | None = None,
        deadline: float | None = None,
    ) -> Object:
        """Create an object; never retried once the server may have seen it."""
        metadata = obj.get("metadata") or {}
        namespace = namespace or metadata.get("namespace")
        name = metadata.get("name") or f"{metadata.get('generateName') or ''}*"
        params = self._write_params(field_manager, dry_run=dry_run)
        request = on_collection("POST", "create", resource, namespace, name=name, params=params, body=obj)
        return await self._write(request, reason, owner, deadline)

    async def replace(
        self,
        resource: Resource,
        obj: Mapping[str, Any],
        *,
        reason: str,
        subresource: str | None = None,
        field_manager: str | None = None,
        owner: Hashable | None = None,
        deadline: float | None = None,
    ) -> Object:
        """Replace a whole object; with a resourceVersion in it, only if it has not changed since."""
        metadata = obj["metadata"]
        name, namespace = metadata["name"], metadata.get("namespace")
        request = on_object(
            "PUT",
            "replace",
            resource,
            namespace,
            name,
            subresource=subresource,
            params=self._write_params(field_manager),
            body=obj,
        )
        return await self._write(request, reason, owner, deadline)

    async def patch(
        self,
        resource: Resource,
        name: str,
        namespace: str | None,
        body: PatchBody,
        *,
        reason: str,
        kind: PatchKind = PatchKind.MERGE,
        subresource: str | None = None,
        field_manager: str | None = None,
        force: bool = False,
        dry_run: bool = False,
        owner: Hashable | None = None,
        deadline: float | None = None,
    ) -> Object:
        """Patch an object, or with ``subresource="status"`` its status.

        A ``resourceVersion`` in the body makes the patch fail with ``Conflict`` if the object has changed.
        ``force`` (server-side apply only) takes over fields of other managers.
        """
        params = self._write_params(field_manager, dry_run=dry_run)
        if force and kind is PatchKind.APPLY:
            params["force"] = "true"
        request = on_object(
            "PATCH",
            "patch",
            resource,
            namespace,
            name,
            subresource=subresource,
            params=params,
            body=body,
            content_type=kind.value,
        )
        return await self._write(request, reason, owner, deadline)

    async def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str | None,
        *,
        reason: str,
        uid: str | None = None,
        resource_version: str | None = None,
        propagation: str | None = None,
        grace: int | None = None,
        owner: Hashable | None = None,
        deadline: float | None = None,
    ) -> Object:
        """Delete an object; with ``uid`` or ``resource_version``, only that very one (else ``Conflict``)."""
        options = delete_options(
            uid=uid, resource_version=resource_version, propagation=propagation, grace=grace
        )
        request = on_object("DELETE", "delete", resource, namespace, name, body=options)
        return await self._write(request, reason, owner, deadline)

    async def delete_collection(
        self,
        resource: Resource,
        namespace: str | None,
        *,
        reason: str,
        label_selector: str | None = None,
        field_selector: str | None = None,
        propagation: str | None = None,
        grace: int | None = None,
        owner: Hashable | None = None,
        deadline: float | None = None,
    ) -> Object:
        """Delete all objects that the selectors choose."""
        request = on_collection(
            "DELETE",
            "delete all",
            resource,
            namespace,
            params=selectors(label_selector, field_selector),
            body=delete_options(propagation=propagation, grace=grace),
        )
        return await self._write(request, reason, owner, deadline)

    # Anything else

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = "application/json",
        owner: Hashable | None = None,
        deadline: float | None = None,
    ) -> bytes:
        """Send a request to any path of the server and give back the bytes of its answer."""
        content = None if body is None else body if isinstance(body, bytes) else orjson.dumps(body)
        request = Request(method, path, f"{method} {path}", params or {}, content, content_type)
        return await self._send(request, owner, deadline)

    async def exchange(
        self, method: str, path: str, *, headers: Mapping[str, str], body: bytes | None, max_bytes: int
    ) -> tuple[int, Mapping[str, str], bytes]:
        """Send a request to the server's proxy, once; status, headers and body of whoever answers.

        An error status is an answer. Of a body longer than ``max_bytes`` the first ``max_bytes + 1`` bytes
        are given. Raises an :class:`~kuberay_op.kube.errors.ApiError` when no answer comes.
        """
        request = Request(method, path, f"{method} {path}", body=body, headers=headers, passed_on=True)
        try:
            async with asyncio.timeout(self._deadline):
                await self._turn(request, None)
                return await self._session.exchange(request, max_bytes=max_bytes)
        except TimeoutError as error:
            raise request.late(self._deadline) from error

    # How a call is made

    async def _object(self, request: Request, owner: Hashable | None, deadline: float | None) -> Object:
        return request.decoded(await self._send(request, owner, deadline))

    async def _write(
        self, request: Request, reason: str, owner: Hashable | None, deadline: float | None
    ) -> Object:
        log.debug("writing", request=request.doing, reason=reason)
        return await self._object(request, owner, deadline)

    async def _send(self, request: Request, owner: Hashable | None, deadline: float | None) -> bytes:
        within = deadline or self._deadline
        until = self._clock.monotonic() + within
        last: ApiError | None = None
        attempt = 0
        try:
            async with asyncio.timeout(within):
                while True:
                    await self._turn(request, owner)
                    try:
                        return await self._session.send(request, urgent=owner is URGENT)
                    except ApiError as error:
                        last = error
                        attempt += 1
                        delay = retry_delay(error, attempt, may_repeat=repeatable(request), rng=self._rng)
                        if delay is None or self._clock.monotonic() + delay >= until:
                            raise
                    if self._metrics is not None:
                        code = str(last.status or NO_ANSWER)
                        self._metrics.retried(verb=request.method, host=self._session.host, code=code)
                    await self._clock.sleep(delay)
        except TimeoutError as error:
            raise request.late(within) from (last or error)

    async def _turn(self, request: Request, owner: Hashable | None) -> None:
        waited = await self._limiter.acquire(owner)
        if self._metrics is not None:
            self._metrics.rate_limited(verb=request.method, host=self._session.host, seconds=waited)

    def _write_params(self, field_manager: str | None, *, dry_run: bool = False) -> dict[str, str]:
        params = {"fieldManager": field_manager or self._field_manager}
        if dry_run:
            params["dryRun"] = "All"
        return params
