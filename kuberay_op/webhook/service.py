"""The webhook as the operator runs it: serves from the start, on every replica, and keeps its certificate."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final, NoReturn

from kuberay_op.clock import Clock
from kuberay_op.config import Config
from kuberay_op.errors import OperatorError
from kuberay_op.hooks.typed import Hooks
from kuberay_op.kube.client import Client
from kuberay_op.logs import get_logger
from kuberay_op.runtime.server import Address, serving
from kuberay_op.runtime.supervisor import Supervisor
from kuberay_op.webhook.admission import PATHS, Judge
from kuberay_op.webhook.authority import SharedAuthorities
from kuberay_op.webhook.certificates import Lifetimes, Serving
from kuberay_op.webhook.injection import Injector
from kuberay_op.webhook.server import LARGEST, new_context, use, webhook_routes
from kuberay_op.webhook.sources import REFERENCE_FOLDER, Files, Made, Source, has_files

#: Seconds between two looks at certificates and configurations, and after a look that failed.
INTERVAL: Final = 30.0
SOON: Final = 2.0

_log = get_logger("webhook")


def webhook_of(config: Config, hooks: Hooks, client: Client, clock: Clock) -> tuple[Webhook, str]:
    """The webhook that the configuration asks for, and a few words about it for the start-up summary."""
    judge = Judge(hooks, config.gates.enabled)
    folder = Path(config.webhook_cert_dir) if config.webhook_cert_dir else REFERENCE_FOLDER
    if config.webhook_cert_dir or has_files(folder):
        return Webhook(judge, Files(folder), clock=clock), f"{config.webhook_addr}, certificate from {folder}"
    lifetimes = Lifetimes()
    name = config.webhook_secret_name
    authorities = SharedAuthorities(
        client, namespace=client.namespace, name=name, clock=clock, lifetimes=lifetimes
    )
    trusting = [each.strip() for each in config.webhook_configurations.split(",") if each.strip()]
    source = Made(authorities, Injector(client, trusting, PATHS), clock=clock, lifetimes=lifetimes)
    where = f"{client.namespace}/{name}, trusted by {', '.join(trusting) or 'nobody'}"
    return Webhook(judge, source, clock=clock), f"{config.webhook_addr}, own authority in Secret {where}"


class Webhook:
    """See the module. ``async with webhook.running(address, supervisor)`` serves until the block is left."""

    def __init__(self, judge: Judge, source: Source, *, clock: Clock, interval: float = INTERVAL) -> None:
        self._judge = judge
        self._source = source
        self._clock = clock
        self._interval = interval
        self._context = new_context()
        self._problem = ""
        #: The certificate that is served now.
        self.certificate: Serving | None = None

    @asynccontextmanager
    async def running(self, address: Address, supervisor: Supervisor) -> AsyncIterator[Address]:
        """Serve while the context lasts; gives the address with the real port."""
        routes = webhook_routes(self._judge)
        async with serving(
            address, routes, option="--webhook-bind-address", tls=self._context, largest=LARGEST
        ) as real:
            keeping = asyncio.create_task(supervisor.keep("webhook certificates", self.keep))
            try:
                yield real
            finally:
                keeping.cancel()
                with suppress(asyncio.CancelledError):
                    await keeping

    async def keep(self) -> NoReturn:
        """Look after the certificate for ever."""
        while True:
            await self._clock.sleep(self._interval if await self.look() else min(SOON, self._interval))

    async def look(self) -> bool:
        """See to the certificate once; says whether that went well."""
        try:
            fresh = await self._source.refresh()
        except OperatorError as error:
            if str(error) != self._problem:  # once, not every few seconds
                self._problem = str(error)
                _log.warning("the webhook's certificate could not be looked after", problem=self._problem)
            return False
        self._problem = ""
        if fresh is not None:
            use(self._context, fresh)
            self.certificate = fresh
            _log.info(
                "the webhook has a new certificate",
                hosts=sorted(fresh.names),
                until=fresh.until.isoformat(),
            )
        return True

    async def check(self) -> str | None:
        """For ``/readyz``: whether the API server can talk to us."""
        if self.certificate is None:
            return f"no certificate yet{f': {self._problem}' if self._problem else ''}"
        if self.certificate.until <= self._clock.now():
            ended = self.certificate.until.isoformat()
            return f"the certificate ended at {ended}: {self._problem or 'not renewed'}"
        return None
