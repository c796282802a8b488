"""A Ray dashboard that is none: jobs, Serve, tokens and every way to fail, in one process and at no cost.

::

    async def test_it(fake_ray: FakeRay) -> None:
        cluster = fake_ray.cluster("a")
        cluster.jobs.script = JobScript(pending=1, running=5)
        cluster.fault = Fault.parse("hang")

The reference is docs/reference/fake-ray.md. For a shell: ``python -m kuberay_op.testing.fake_ray --help``.
"""

from kuberay_op.testing.fake_ray.cluster import FakeCluster
from kuberay_op.testing.fake_ray.http import Fault
from kuberay_op.testing.fake_ray.jobs import JobScript
from kuberay_op.testing.fake_ray.serve import AppScript
from kuberay_op.testing.fake_ray.server import FakeRay

__all__ = ["AppScript", "FakeCluster", "FakeRay", "Fault", "JobScript"]
