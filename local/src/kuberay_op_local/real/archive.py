"""Writing a small image as an archive that containerd loads: one layer, a configuration, a manifest."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from pathlib import Path

from kuberay_op_local.nodes import architecture


def one_program(program: Path, arguments: list[str], *, tag: str) -> bytes:
    """An image that holds nothing but a static program; the same bytes for the same program."""
    name = program.name
    layer = _tar({name: (program.read_bytes(), 0o755)})
    config = {
        "architecture": architecture(),
        "os": "linux",
        "config": {"Entrypoint": [f"/{name}", *arguments]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
    }
    text = json.dumps(config, sort_keys=True).encode()
    config_name = f"{hashlib.sha256(text).hexdigest()}.json"
    manifest = [{"Config": config_name, "RepoTags": [tag], "Layers": ["layer.tar"]}]
    return _tar(
        {
            config_name: (text, 0o644),
            "layer.tar": (layer, 0o644),
            "manifest.json": (json.dumps(manifest).encode(), 0o644),
        }
    )


def _tar(files: dict[str, tuple[bytes, int]]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for name, (data, mode) in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(data), mode
            tar.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()
