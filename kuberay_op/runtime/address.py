"""Addresses as Go programs take them: ``:8080``, ``127.0.0.1:80``, ``[::1]:80``; ``0`` or nothing is off."""

from __future__ import annotations

from typing import NamedTuple

from kuberay_op.errors import Misconfigured


class Address(NamedTuple):
    """Where to listen; an empty host means every interface."""

    host: str
    port: int


def parse_address(text: str, *, option: str) -> Address | None:
    """The address in ``text``, or None if it says not to listen; ``option`` is named in errors."""
    if text in ("", "0"):
        return None
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") if host.startswith("[") else host
    if not colon or not port.isdecimal() or int(port) > 65535 or (":" in host and not text.startswith("[")):
        raise Misconfigured(
            f"{option} is {text!r}, which is no address; write host:port, [host]:port, :port, or 0 for none"
        )
    return Address(host, int(port))
