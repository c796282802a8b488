#!/usr/bin/env bash
# A real Kubernetes on this machine with the operator on it, and a first RayCluster.
# With DEMO_NODE=real, as root: a real node, our image, both Helm charts, real Ray and a RayJob.
set -euo pipefail
cd "$(dirname "$0")/.."
name=${DEMO_NAME:-demo}
node=${DEMO_NODE:-kwok:3}
kubectl() { kuberay-op local kubectl --name "$name" "$@"; }
helm() { kuberay-op local helm --name "$name" "$@"; }

on_kwok() {
  kuberay-op local operator --name "$name"
  echo "applying a RayCluster:"
  kuberay-op new raycluster hello | kubectl apply -f -
  kubectl wait raycluster/hello --for=jsonpath='{.status.state}'=ready --timeout=120s
  kubectl get rayclusters,pods
  echo
  echo "This is a real API server and a real etcd; the nodes are played by kwok, so Pods become ready but run no container."
}

on_a_real_node() {
  local ray=${DEMO_RAY_VERSION:-2.60.0}
  kuberay-op local load --name "$name" --build operator
  kuberay-op local load --name "$name" --build ray --arg RAY_VERSION="$ray"
  helm upgrade --install kuberay-operator charts/kuberay-operator --wait --timeout 3m
  helm upgrade --install ray-cluster charts/ray-cluster --set image.tag="$ray" --set worker.replicas=1
  echo "waiting for Ray:"
  until kubectl wait raycluster/ray-cluster-kuberay --for=jsonpath='{.status.state}'=ready --timeout=10s 2>/dev/null; do
    kuberay-op why raycluster ray-cluster-kuberay --kubeconfig "$(kubeconfig)" | head -1 || true
  done
  kubectl get rayclusters,pods
  echo "running a RayJob on it:"
  kubectl apply -f - <<JOB
apiVersion: ray.io/v1
kind: RayJob
metadata: {name: demo-job}
spec:
  submissionMode: HTTPMode
  clusterSelector: {ray.io/cluster: ray-cluster-kuberay}
  entrypoint: >-
    python -c "import ray; ray.init(); print('the answer is', ray.get(ray.remote(lambda: 6 * 7).remote()))"
JOB
  kubectl wait rayjob/demo-job --for=jsonpath='{.status.jobDeploymentStatus}'=Complete --timeout=300s
  kubectl get rayjob demo-job
  echo "what it printed:"
  kubectl exec "$(kubectl get pods -l ray.io/node-type=head -o name)" -c ray-head -- \
    ray job logs "$(kubectl get rayjob demo-job -o jsonpath='{.status.jobId}')" --address http://127.0.0.1:8265 | tail -3
  echo
  echo "This is a real node with real Ray. The dashboard: kuberay-op local kubectl --name $name port-forward service/ray-cluster-kuberay-head-svc 8265"
}

kubeconfig() { kuberay-op local env --name "$name" | sed -n 's/^export KUBECONFIG=//p'; }

kuberay-op local up --name "$name" --node "$node"
if [ "$node" = real ]; then on_a_real_node; else on_kwok; fi

cat <<END
Look around:   . .venv/bin/activate; eval "\$(kuberay-op local env --name $name)"; kubectl get pods
               (no kubectl of your own? kuberay-op local kubectl --name $name get pods)
               kuberay-op local logs operator --name $name
Remove it all: kuberay-op local down --name $name
END
