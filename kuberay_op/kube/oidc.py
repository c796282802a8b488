"""Credentials from an OpenID Connect provider: an id-token, renewed with a refresh-token.

Not left to the ``kubernetes`` package, which sends the refresh-token without checking whom it talks to, and
fails when the kubeconfig names the provider's authority.
"""

from __future__ import annotations

import base64
import ssl
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

import aiohttp
import orjson

from kuberay_op.clock import Clock
from kuberay_op.errors import Misconfigured
from kuberay_op.kube.credentials import Renewed

#: Seconds for one conversation with the provider.
TIMEOUT: Final = 30.0

#: A token is renewed so many seconds before it expires.
MARGIN: Final = 120.0


class OidcCredentials(Renewed):
    """The ``oidc`` auth-provider of a kubeconfig. A rotated refresh-token is kept in memory only.

    ``tls`` is for the API server, ``idp_tls`` for the provider.
    """

    def __init__(
        self, config: Mapping[str, str], tls: ssl.SSLContext, idp_tls: ssl.SSLContext, clock: Clock
    ) -> None:
        super().__init__(clock)
        self._config = dict(config)
        self._tls = tls
        self._idp_tls = idp_tls

    async def _load(self, *, force: bool) -> None:
        token = self._config.get("id-token")
        if force or not token or expiry(token) - MARGIN <= self._clock.now().timestamp():
            token = await self._refreshed()
        self._header = f"Bearer {token}"

    async def _refreshed(self) -> str:
        config = self._config
        missing = [name for name in ("idp-issuer-url", "client-id", "refresh-token") if not config.get(name)]
        if missing:
            raise Misconfigured(
                f"the kubeconfig's id-token has expired and {missing[0]} is not set to renew it"
            )
        issuer = config["idp-issuer-url"].rstrip("/")
        form = {"grant_type": "refresh_token", "refresh_token": config["refresh-token"]}
        headers = {}
        if config.get("client-secret"):
            pair = f"{quote(config['client-id'])}:{quote(config['client-secret'])}"  # RFC 6749, section 2.3.1
            headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        else:
            form["client_id"] = config["client-id"]
        try:
            connector = aiohttp.TCPConnector(ssl=self._idp_tls)
            limit = aiohttp.ClientTimeout(total=TIMEOUT)
            async with aiohttp.ClientSession(
                connector=connector, timeout=limit, raise_for_status=True
            ) as http:
                async with http.get(f"{issuer}/.well-known/openid-configuration") as answer:
                    endpoint = orjson.loads(await answer.read())["token_endpoint"]
                async with http.post(endpoint, data=form, headers=headers) as answer:
                    tokens = orjson.loads(await answer.read())
            token: str = tokens["id_token"]
        except (aiohttp.ClientError, OSError, ValueError, KeyError, TypeError) as error:
            # Not the error's text: it may hold the answer, and that holds tokens.
            problem = type(error).__name__
            raise Misconfigured(f"cannot renew the id-token at {issuer}: {problem}") from error
        self._config["id-token"] = token
        self._config["refresh-token"] = tokens.get("refresh_token") or config["refresh-token"]
        return token


def expiry(token: str) -> float:
    """When a JSON web token expires, in seconds since 1970; for one that cannot be read, long ago."""
    try:
        body = token.split(".")[1]
        claims: Any = orjson.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
        return float(claims["exp"])
    except (IndexError, ValueError, KeyError, TypeError):
        return 0.0
