"""Feature gates of plugins: known before the flag is read, whoever switches the plugin on."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from kuberay_op.cli import main
from kuberay_op.config import peek
from kuberay_op.declarative.manifest import API_VERSION
from kuberay_op.errors import Misconfigured
from kuberay_op.loader.choose import Wanted
from kuberay_op.loader.gates import known_gates
from kuberay_op.loader.load import load_plugins


def manifest(plugin: str, **gate: Any) -> dict[str, Any]:
    gated = {"featureGate": {"description": "A gate.", **gate}} if gate else {}
    return {"apiVersion": API_VERSION, "kind": "Plugin", "name": plugin, "summary": "A plugin.", **gated}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "plugins"
    path.mkdir()
    for raw in (
        manifest("quotas", name="Quotas"),
        manifest("more-quotas", name="Quotas"),
        manifest("notes", name="Notes", stage="beta", default=True),
        manifest("cron", name="RayCronJob"),
        manifest("plain"),
    ):
        (path / f"{raw['name']}.yaml").write_text(yaml.safe_dump(raw))
    return path


def test_gates_of_all_plugins_are_known_once(folder: Path) -> None:
    gates = known_gates([folder])
    assert (gates.enabled("Quotas"), gates.enabled("Notes")) == (False, True)
    assert {"Quotas", "Notes"} <= set(gates.as_dict()) - set(known_gates().as_dict())
    assert gates.with_overrides("AllAlpha=true").enabled("Quotas"), "groups reach them"


def test_a_gate_switches_its_plugin(folder: Path) -> None:
    wanted = Wanted(enabled={"quotas": True, "cron": True, "notes": True})
    gates = known_gates([folder])
    on = gates.with_overrides("Quotas=true,RayCronJob=true,Notes=false")
    for given, expected in ((gates, ["notes"]), (on, ["cron", "quotas"])):
        chosen = load_plugins(wanted, given, folders=[folder]).chosen.manifests
        assert [name for name in chosen if name in wanted.enabled] == expected


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match="there is no such folder"):
        known_gates([tmp_path / "nowhere"])


def test_one_setting_can_be_read_before_the_rest() -> None:
    files = {"c.yaml": "pluginFolders: from-file\nburst: not a number\n"}
    read = files.__getitem__
    assert peek("plugin_folders", ["--plugin-folders=a,b", "--nonsense"], {}, read) == "a,b"
    assert peek("plugin_folders", ["--config", "c.yaml"], {}, read) == "from-file"
    assert peek("plugin_folders", [], {}, read) == ""


def test_the_operator_s_flags_know_them(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def show(*flags: str) -> int:
        arguments = ["config", "show", "--output=json", f"--plugin-folders={folder}", *flags]
        monkeypatch.setattr(sys, "argv", ["kuberay-op", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        return int(ended.value.code or 0)

    assert show("--feature-gates=Quotas=true") == 0
    shown = json.loads(capsys.readouterr().out)
    (gates,) = [entry["value"] for entry in shown["settings"] if entry["name"] == "gates"]
    assert "Quotas=true" in gates
    assert show("--feature-gates=Quota=true") == 1
    assert "did you mean Quotas?" in capsys.readouterr().err
