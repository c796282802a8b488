#!/usr/bin/env bash
# A real Kubernetes on this machine with the operator on it, and a first RayCluster.
set -euo pipefail
cd "$(dirname "$0")/.."
name=${DEMO_NAME:-demo}
kubectl() { kuberay-op local kubectl --name "$name" "$@"; }

kuberay-op local up --name "$name" --node kwok:3
kuberay-op local operator --name "$name"
echo "applying a RayCluster:"
kuberay-op new raycluster hello | kubectl apply -f -
kubectl wait raycluster/hello --for=jsonpath='{.status.state}'=ready --timeout=120s
kubectl get rayclusters,pods

cat <<END

This is a real API server and a real etcd; the nodes are played by kwok, so Pods become ready but run no container.
Look around:   . .venv/bin/activate; eval "\$(kuberay-op local env --name $name)"; kubectl get pods
               (no kubectl of your own? kuberay-op local kubectl --name $name get pods)
               kuberay-op local logs operator --name $name
Remove it all: kuberay-op local down --name $name
END
