#!/usr/bin/env bash
# Fails when `make generate` changes a file: what is generated must be committed as generated.
set -euo pipefail
cd "$(dirname "$0")/.."
fingerprint() { { git diff HEAD; git ls-files --others --exclude-standard -z | xargs -0 -r sha256sum; } | sha256sum; }
before=$(fingerprint)
tools/generate.sh
if [ "$(fingerprint)" != "$before" ]; then
  git --no-pager diff --stat >&2
  echo "drift: generated files were not up to date; run 'make generate' and commit the result." >&2
  exit 1
fi
