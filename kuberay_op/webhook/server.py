"""The HTTPS side of the webhook: its paths, and a TLS context that takes new certificates while it serves."""

from __future__ import annotations

import asyncio
import os
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from aiohttp import web

from kuberay_op.logs import get_logger
from kuberay_op.webhook.admission import PATHS, Judge, NotAReview
from kuberay_op.webhook.certificates import Serving

#: Bytes of a request: two versions of an object, each as large as the API server takes them.
LARGEST: Final = 8 << 20

#: Seconds in which a request must have arrived and be answered; the API server gives up sooner.
SECONDS: Final = 30.0

_log = get_logger("webhook")


def webhook_routes(judge: Judge) -> list[web.RouteDef]:
    """The paths of the webhook."""

    def route(path: str, kind: str) -> web.RouteDef:
        async def answer(request: web.Request) -> web.Response:
            try:
                async with asyncio.timeout(SECONDS):
                    body = await judge.review(kind, await request.read())
            except NotAReview as error:
                return web.Response(status=400, text=str(error))
            except TimeoutError:
                return web.Response(status=503, text=f"no answer within {SECONDS:g} s")
            except Exception:
                _log.exception("the webhook could not judge an object", path=path)
                raise  # answered as 500; whether the object is stored then is for the configuration to say
            return web.Response(body=body, content_type="application/json")

        return web.post(path, answer)

    return [route(path, view.KIND) for path, view in PATHS.items()]


def new_context() -> ssl.SSLContext:
    """A context for the server; it has no certificate yet."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def use(context: ssl.SSLContext, serving: Serving) -> None:
    """Serve with this certificate from the next handshake on; connections that are open stay."""
    with _file(serving.key + serving.chain) as path:
        context.load_cert_chain(path)


@contextmanager
def _file(content: bytes) -> Iterator[str]:
    """A file with this content, since Python's ssl reads nothing else; in memory where that can be."""
    if hasattr(os, "memfd_create"):
        number = os.memfd_create("webhook", os.MFD_CLOEXEC)
        try:
            os.write(number, content)
            yield f"/proc/self/fd/{number}"
        finally:
            os.close(number)
        return
    with tempfile.NamedTemporaryFile() as file:  # readable by us alone, and gone in a moment
        file.write(content)
        file.flush()
        yield file.name
