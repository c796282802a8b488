"""Volumes, mounts and Secret keys that the operator adds to Ray Pods."""

from __future__ import annotations

from typing import Final

#: Volume with the control store's embedded storage.
GCS_STORAGE_VOLUME: Final = "gcs-storage"
#: Where it is mounted.
GCS_STORAGE_PATH: Final = "/data/gcs"
#: Size of the claim when the user names none.
GCS_STORAGE_SIZE: Final = "1Gi"
#: Value of ``RAY_gcs_storage`` for embedded storage.
GCS_STORAGE_ROCKSDB: Final = "rocksdb"

#: Volume with the certificates of mTLS.
TLS_VOLUME: Final = "ray-tls"
#: Where it is mounted.
TLS_PATH: Final = "/etc/ray/tls"

#: Projected volume with a service account token, for authentication by Kubernetes.
TOKEN_VOLUME: Final = "ray-token"  # noqa: S105 - the name of a volume, not a secret
#: Where it is mounted.
TOKEN_PATH: Final = "/var/run/secrets/ray.io/serviceaccount"  # noqa: S105 - a folder, not a secret
#: Key of the token in the authentication Secret.
AUTH_SECRET_KEY: Final = "auth_token"  # noqa: S105 - the name of a key, not a secret
