"""What `helm test` runs in the operator's image: a RayCluster of one head must come up, and goes again."""

import asyncio
import json
import os
import sys

from kuberay_op.controllers.resources import RAY_CLUSTERS
from kuberay_op.kube.client import Client
from kuberay_op.kube.errors import NotFound

NAME, NAMESPACE = os.environ["NAME"], os.environ["NAMESPACE"]
HEAD = {
    "name": "ray-head",
    "image": os.environ["RAY_IMAGE"],
    "resources": json.loads(os.environ["RESOURCES"]),
}
CLUSTER = {
    "apiVersion": "ray.io/v1",
    "kind": "RayCluster",
    "metadata": {"name": NAME, "namespace": NAMESPACE},
    "spec": {"headGroupSpec": {"rayStartParams": {}, "template": {"spec": {"containers": [HEAD]}}}},
}


async def ready(client: Client) -> None:
    """Wait until the cluster is ready, and tell what it says meanwhile."""
    told = None
    while True:
        status = (await client.get(RAY_CLUSTERS, NAME, NAMESPACE)).get("status") or {}
        state = status.get("state", ""), status.get("reason", "")
        if state != told:
            told = state
            sys.stdout.write(f"{NAMESPACE}/{NAME}: {' '.join(state).strip() or 'no status yet'}\n")
        if state[0] == "ready":
            return
        await asyncio.sleep(1)


async def remove(client: Client) -> None:
    """Delete the cluster if it is there, and wait until it is gone."""
    try:
        await client.delete(RAY_CLUSTERS, NAME, NAMESPACE, reason="the test is over")
        while await client.get(RAY_CLUSTERS, NAME, NAMESPACE):  # noqa: ASYNC110 (the answer is on the server)
            await asyncio.sleep(0.2)
    except NotFound:
        return


async def main() -> None:
    """Make the cluster, wait for it, and delete it whatever happened."""
    async with await Client.connect() as client:
        await remove(client)
        await client.create(RAY_CLUSTERS, CLUSTER, reason="helm test")
        try:
            async with asyncio.timeout(float(os.environ["SECONDS"])):
                await ready(client)
        except TimeoutError:
            status = (await client.get(RAY_CLUSTERS, NAME, NAMESPACE)).get("status") or {}
            for each in status.get("conditions", ()):
                sys.stdout.write(f"{each['type']} is {each['status']}: {each.get('message', '')}\n")
            sys.exit(f"{NAMESPACE}/{NAME} was not ready after {os.environ['SECONDS']} s")
        finally:
            await remove(client)


asyncio.run(main())
