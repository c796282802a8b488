"""kuberay-op: the KubeRay operator in Python."""

from typing import Final

#: Version of this package, as in its metadata.
__version__: Final = "0.1.0"
