#!/usr/bin/env bash
# The reference's own end-to-end suites, unmodified, against an operator on a real node with real Ray.
#   tools/conformance.sh [ours|reference] [arguments of python -m tests.upstream]
# Needs root. Results are kept in tests/upstream/results, the page is docs/conformance.md.
set -euo pipefail
cd "$(dirname "$0")/.."
operator=${1:-ours}
shift || true
name=conformance
ray=2.52.0  # what the suites name
export PATH="$PWD/.venv/bin:$PATH"

cleanup() { kuberay-op local down --name "$name"; }
trap cleanup EXIT
kuberay-op local up --name "$name" --node real
eval "$(kuberay-op local env --name "$name")"
kuberay-op local load --name "$name" --build ray --arg RAY_VERSION="$ray" --tag "$ray"
kuberay-op local load --name "$name" --build ray --arg RAY_VERSION="$ray" --tag 2.51.0  # another name is enough
kuberay-op local load --name "$name" --build redis --tag 7.4
kuberay-op local load --name "$name" --build submitter

case $operator in
  ours)
    kuberay-op local load --name "$name" --build operator
    kuberay-op local helm --name "$name" install kuberay-operator charts/kuberay-operator --wait --timeout 3m
    python -m tests.upstream --operator ours --kubeconfig "$KUBECONFIG" "$@"
    ;;
  reference)
    kuberay-op crds | kuberay-op local kubectl --name "$name" apply --server-side -f -
    program=$(python -m kuberay_op.testing.reference)
    "$program" --enable-leader-election=false --metrics-addr=0 --health-probe-bind-address=0 >reference.log 2>&1 &
    trap 'kill $!; cleanup' EXIT
    python -m tests.upstream --operator reference --kubeconfig "$KUBECONFIG" "$@"
    ;;
  *)
    echo "usage: tools/conformance.sh ours|reference [--suite S] [--test S/T] [--jobs N]" >&2
    exit 2
    ;;
esac
python -m tests.upstream --page
