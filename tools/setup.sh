#!/usr/bin/env bash
# Makes .venv from requirements.lock and installs our own packages into it. Quick when nothing changed.
# Needs Python 3.11 or newer; on a Debian without python3-venv it installs that package, after saying so.
set -euo pipefail
cd "$(dirname "$0")/.."

# Every folder with a pyproject.toml is a package of ours: the core, its tools, and one for each plugin.
shopt -s nullglob
packages=(.)
for file in */pyproject.toml {plugins,batchscheduler,gateway}/*/pyproject.toml; do packages+=("${file%/*}"); done
stamp=.venv/.stamp
wanted=$(cat requirements.lock tools/setup.sh "${packages[@]/%//pyproject.toml}" | sha256sum)
if [ -x .venv/bin/python ] && [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ]; then exit 0; fi

say() { printf 'setup: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

python=
for candidate in python3 python3.13 python3.12 python3.11; do
  if command -v "$candidate" >/dev/null && "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    python=$candidate
    break
  fi
done
[ -n "$python" ] || die "Python 3.11 or newer is needed and none is on PATH; install it (Debian: apt-get install python3)."

if ! "$python" -c 'import venv, ensurepip' 2>/dev/null; then
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    say "$python has no venv module; installing Debian's python3-venv"
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq python3-venv >/dev/null
  else
    die "$python has no venv module; install it (Debian: apt-get install python3-venv) and try again."
  fi
fi

# What some tests compare with or talk to: "program package". RUNLEVEL=1 keeps Debian from starting them as services.
for needed in "redis-server redis-server" "promtool prometheus"; do
  read -r program package <<< "$needed"
  if command -v "$program" >/dev/null; then continue; fi
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    say "there is no $program; installing Debian's package $package, for tests"
    { apt-get update -qq && RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$package" >/dev/null; } ||
      say "$package could not be installed; tests that need it are skipped."
  else
    say "there is no $program (Debian: apt-get install $package); tests that need it are skipped."
  fi
done

say "making .venv with $("$python" --version)"
# A .venv of another folder or Python cannot be repaired, only made again.
if [ -x .venv/bin/python ] && ! .venv/bin/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then rm -rf .venv; fi
"$python" -m venv .venv

# uv installs the rest; it comes from the same hashed list, through pip, so nothing is trusted unpinned.
bootstrap=$(mktemp)
trap 'rm -f "$bootstrap"' EXIT
awk '/^[^ #]/ {on = /^uv==/} on' requirements.lock > "$bootstrap"
.venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r "$bootstrap"

say "installing $(grep -c '==' requirements.lock) pinned packages"
.venv/bin/uv pip sync --quiet --python .venv/bin/python --require-hashes requirements.lock
editable=()
for package in "${packages[@]}"; do editable+=(-e "$package"); done
.venv/bin/uv pip install --quiet --python .venv/bin/python --no-deps --no-build-isolation "${editable[@]}"
printf '%s\n' "$wanted" > "$stamp"
say "done"
