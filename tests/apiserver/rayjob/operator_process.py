"""The operator as a process of its own that can be killed; Ray is reached through an HTTP proxy.

Arguments: kubeconfig, namespace, address of the proxy.
"""

from __future__ import annotations

import asyncio
import sys

from kuberay_op.ray.direct import DirectTransport
from kuberay_op.testing.operator import running_operator


async def work(kubeconfig: str, namespace: str, proxy: str) -> None:
    """Work until somebody ends the process."""
    async with (
        DirectTransport(proxy=proxy) as ray,
        running_operator(kubeconfig, namespaces=[namespace], ray=ray),
    ):
        await asyncio.get_running_loop().create_future()


if __name__ == "__main__":
    asyncio.run(work(*sys.argv[1:]))
