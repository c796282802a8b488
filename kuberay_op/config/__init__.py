"""The configuration: flags in Go's syntax, a file, environment variables and feature gates.

``Config`` declares every setting once; ``resolve`` makes it from a command line, an environment and a way to
read files, and says where each value came from. Nothing here reads anything by itself.

::

    resolved = resolve(sys.argv[1:], os.environ, lambda path: Path(path).read_text("utf-8"))
    resolved.config.burst, str(resolved.sources["burst"])  # 300, "file config.yaml:7"
"""

from kuberay_op.config.draft import Source
from kuberay_op.config.goflags import Flag
from kuberay_op.config.model import SETTINGS, Config
from kuberay_op.config.resolve import FLAGS, ConfigError, Resolved, peek, resolve
from kuberay_op.config.schedulers import BATCH_SCHEDULERS, WORKLOAD_AWARE, batch_scheduler, scheduler_name
from kuberay_op.config.settings import Kind, Reading, Setting
from kuberay_op.config.settle import bind_address

__all__ = [
    "BATCH_SCHEDULERS",
    "FLAGS",
    "SETTINGS",
    "WORKLOAD_AWARE",
    "Config",
    "ConfigError",
    "Flag",
    "Kind",
    "Reading",
    "Resolved",
    "Setting",
    "Source",
    "batch_scheduler",
    "bind_address",
    "peek",
    "resolve",
    "scheduler_name",
]
