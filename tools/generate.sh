#!/usr/bin/env bash
# Writes everything that is made from our own types and declarations.
set -euo pipefail
cd "$(dirname "$0")/.."
.venv/bin/python tools/kubernetes_schema.py
.venv/bin/kuberay-op crds --output-dir charts/kuberay-operator/crds
.venv/bin/python tools/api_reference.py
.venv/bin/python tools/plugin_docs.py
.venv/bin/python tools/config_docs.py
.venv/bin/python tools/validation_docs.py
.venv/bin/python tools/dashboards.py
.venv/bin/python tools/chart_files.py
.venv/bin/python tools/chart_values.py
