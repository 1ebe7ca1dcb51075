#!/usr/bin/env bash
# Builds the control plane of the end-to-end specs, and starts and stops it.
# README.md has the details; with no verb it prints its usage.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
readonly here
readonly cache=${MOONLOOP_CACHE:-${HOME:?}/.cache/moonloop}

# The control plane that a verb is about: main sets dir, read_settings the others.
dir='' binary='' kubectl='' etcd_port='' etcd_peer_port='' apiserver_port=''

usage() {
  cat >&2 <<USAGE
usage: controlplane.sh build                    build the binary, unless it is cached, and print its path
       controlplane.sh kubectl                  the same with the current kubectl alone
       controlplane.sh up DIR                   start a control plane; DIR/kubeconfig is its administrator's
       controlplane.sh proxy DIR [NAME [KUBECONFIG]]
                                                put a fault-injecting proxy before it, or before another API server, that
                                                of KUBECONFIG: DIR/NAME.kubeconfig, DIR/NAME.admin
       controlplane.sh restart DIR COMPONENT    stop one component (see status) and start it again, data kept
       controlplane.sh status DIR               what runs; exit code 1 where that is not all of it
       controlplane.sh down DIR                 stop it
The binary is kept in \${MOONLOOP_CACHE:-~/.cache/moonloop}.
USAGE
  exit 2
}

say() { printf 'controlplane: %s\n' "$*" >&2; }
fail() { say "$@"; exit 1; }

# ---- build

# path_of NAME FOLDER: where the binary of a folder's program is kept, named after everything that goes into it.
path_of() {
  local hash
  hash=$(cd "$here" && cat go.mod go.sum "$2"/*.go | sha256sum | cut -c1-16)
  printf '%s/%s-%s\n' "$cache" "$1" "$hash"
}

require_go() {
  local needs has instead
  instead='or use a cluster you have: KUBECONFIG=... make e2e'
  needs=$(sed -n 's/^go //p' "$here/go.mod")
  command -v go >/dev/null || fail "building the control plane needs Go $needs, and there is none on PATH: install it, $instead"
  has=$(cd / && GOTOOLCHAIN=local go env GOVERSION)
  has=${has#go} has=${has%% *}
  [ "$(printf '%s\n%s\n' "$needs" "$has" | sort -V | head -n 1)" = "$needs" ] ||
    fail "building the control plane needs Go $needs, and this is $has: install a newer one, $instead"
}

# kubectl and the API server compare versions, so the binary has to know its own.
linker_flags() {
  local version package
  version=$(sed -n 's,^\tk8s.io/kubernetes v,,p' "$here/go.mod")
  printf -- '-s -w'
  for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
    printf -- ' -X %s.gitVersion=v%s' "$package" "$version"
    printf -- ' -X %s.gitMajor=%s' "$package" "$(cut -d. -f1 <<<"$version")"
    printf -- ' -X %s.gitMinor=%s' "$package" "$(cut -d. -f2 <<<"$version")"
  done
}

# build_program NAME FOLDER: builds it, unless it is cached, and prints its path.
build_program() {
  local binary
  binary=$(path_of "$1" "$2")
  if [ ! -x "$binary" ]; then
    require_go
    mkdir -p "$cache"
    say "building $binary (the first time this takes minutes, and loads the Kubernetes sources)"
    # The rename makes it safe for two builds to run at a time.
    (cd "$here" && GOTOOLCHAIN=local CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "$(linker_flags)" -o "$binary.$$" "$2")
    mv "$binary.$$" "$binary"
    say "built in $SECONDS s"
  fi
  printf '%s\n' "$binary"
}

build() { build_program controlplane .; }

# The control plane's binary has kubectl, too, and takes twice as long to start.
build_kubectl() { build_program kubectl ./kubectl; }

# ---- files in DIR

# An authority, and the API server's certificate; proxies show the same.
write_server_certificate() {
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 3650 -subj '/CN=controlplane-ca' \
    -keyout "$dir/ca.key" -out "$dir/ca.crt" 2>/dev/null
  sign server '/CN=kube-apiserver' serverAuth \
    'DNS:localhost,DNS:kubernetes.default,DNS:kubernetes.default.svc,IP:127.0.0.1,IP:10.0.0.1'
}

write_certificates() {
  write_server_certificate
  sign client '/O=system:masters/CN=cert-admin' clientAuth 'DNS:cert-admin'
  # Service account tokens are signed with a key of their own.
  openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:prime256v1 -out "$dir/service-account.key" 2>/dev/null
  openssl pkey -in "$dir/service-account.key" -pubout -out "$dir/service-account.pub"
}

# sign NAME SUBJECT USE NAMES writes DIR/NAME.key and DIR/NAME.crt.
sign() {
  openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj "$2" \
    -keyout "$dir/$1.key" -out "$dir/$1.csr" 2>/dev/null
  printf 'extendedKeyUsage=%s\nsubjectAltName=%s\n' "$3" "$4" >"$dir/$1.ext"
  openssl x509 -req -in "$dir/$1.csr" -days 3650 -CA "$dir/ca.crt" -CAkey "$dir/ca.key" -CAcreateserial \
    -extfile "$dir/$1.ext" -out "$dir/$1.crt" 2>/dev/null
  rm "$dir/$1.csr" "$dir/$1.ext"
}

# write_kubeconfig FILE PORT TOKEN
write_kubeconfig() {
  cat >"$1" <<KUBECONFIG
apiVersion: v1
kind: Config
clusters:
- name: controlplane
  cluster:
    server: https://127.0.0.1:$2
    certificate-authority-data: $(base64 -w 0 "$dir/ca.crt")
users:
- name: user
  user:
    token: $3
contexts:
- name: controlplane
  context:
    cluster: controlplane
    user: user
current-context: controlplane
KUBECONFIG
}

# Each component is a user of its own, so that the audit log tells them apart.
write_users() {
  local admin manager kubelet
  admin=$(openssl rand -hex 16) manager=$(openssl rand -hex 16) kubelet=$(openssl rand -hex 16)
  cat >"$dir/tokens.csv" <<TOKENS
$admin,admin,admin,"system:masters"
$manager,system:kube-controller-manager,controller-manager,"system:masters"
$kubelet,fake-kubelet,fake-kubelet,"system:masters"
TOKENS
  write_kubeconfig "$dir/kubeconfig" "$apiserver_port" "$admin"
  write_kubeconfig "$dir/kube-controller-manager.kubeconfig" "$apiserver_port" "$manager"
  write_kubeconfig "$dir/kubelet.kubeconfig" "$apiserver_port" "$kubelet"
}

# The audit policy: one line for each request, with its user, verb, object and time, when it was answered.
write_audit_policy() {
  cat >"$dir/audit-policy.yaml" <<POLICY
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: None
  nonResourceURLs: ["/readyz*", "/livez*", "/healthz*"]
- level: Metadata
POLICY
}

# The current kubectl, for this cluster whatever KUBECONFIG says; --kubeconfig still chooses another.
write_kubectl() {
  cat >"$dir/kubectl" <<KUBECTL
#!/bin/sh
export KUBECONFIG='$dir/kubeconfig' KUBECACHEDIR='$dir/kubectl-cache'
exec '$kubectl' "\$@"
KUBECTL
  chmod +x "$dir/kubectl"
}

write_settings() {
  local ports
  mapfile -t ports < <("$binary" free-ports 3)
  [ "${#ports[@]}" = 3 ] || fail 'found no free ports'
  cat >"$dir/settings" <<SETTINGS
binary='$binary'
kubectl='$kubectl'
etcd_port=${ports[0]}
etcd_peer_port=${ports[1]}
apiserver_port=${ports[2]}
SETTINGS
  read_settings
}

# Sets the programs and the ports, as they were when this control plane was started.
read_settings() {
  [ -f "$dir/settings" ] || fail "$dir holds no control plane: start one with 'controlplane.sh up $dir'"
  # shellcheck source=/dev/null
  . "$dir/settings"
}

# ---- processes: DIR/pids has a line "NAME PID START" for each that was started

# launch NAME COMMAND...: in a session of its own, so that a terminal's Ctrl-C does not reach it.
launch() {
  local name=$1
  shift
  setsid "$binary" "$@" </dev/null >>"$dir/$name.log" 2>&1 8>&- &
  printf '%s %s %s\n' "$name" "$!" "$(start_of "$!")" >>"$dir/pids"
  disown # or bash itself would report its death
}

launch_component() {
  case $1 in
  etcd)
    launch etcd etcd --data-dir="$dir/etcd" \
      --client-url="http://127.0.0.1:$etcd_port" --peer-url="http://127.0.0.1:$etcd_peer_port"
    ;;
  kube-apiserver)
    launch kube-apiserver kube-apiserver \
      --etcd-servers="http://127.0.0.1:$etcd_port" \
      --bind-address=127.0.0.1 --advertise-address=127.0.0.1 --secure-port="$apiserver_port" \
      --endpoint-reconciler-type=none \
      --service-cluster-ip-range=10.0.0.0/16 \
      --cert-dir="$dir" --tls-cert-file="$dir/server.crt" --tls-private-key-file="$dir/server.key" \
      --client-ca-file="$dir/ca.crt" --token-auth-file="$dir/tokens.csv" --authorization-mode=RBAC \
      --service-account-issuer=https://kubernetes.default.svc \
      --service-account-key-file="$dir/service-account.pub" \
      --service-account-signing-key-file="$dir/service-account.key" \
      --audit-policy-file="$dir/audit-policy.yaml" --audit-log-path="$dir/audit.log" --audit-log-maxsize=100000
    ;;
  kube-controller-manager)
    # The limits on its own requests are raised so that it is never what a test waits for.
    launch kube-controller-manager kube-controller-manager \
      --kubeconfig="$dir/kube-controller-manager.kubeconfig" --secure-port=0 --leader-elect=false \
      --kube-api-qps=2000 --kube-api-burst=4000 --root-ca-file="$dir/ca.crt" \
      --cluster-signing-cert-file="$dir/ca.crt" --cluster-signing-key-file="$dir/ca.key" \
      --controllers=garbage-collector-controller,namespace-controller,serviceaccount-controller,root-ca-certificate-publisher-controller,statefulset-controller,deployment-controller,replicaset-controller,resourcequota-controller,validatingadmissionpolicy-status-controller,certificatesigningrequest-approving-controller,certificatesigningrequest-signing-controller,certificatesigningrequest-cleaner-controller,endpoints-controller,endpointslice-controller,endpointslice-mirroring-controller,taint-eviction-controller
    ;;
  kubelet)
    launch kubelet kubelet --kubeconfig="$dir/kubelet.kubeconfig" --run-for="${CONTROLPLANE_RUN_FOR:-0s}"
    ;;
  *)
    fail "no component $1: there are etcd, kube-apiserver, kube-controller-manager and kubelet"
    ;;
  esac
}

# pids_of [NAME] prints the processes that were started, or those of one name.
pids_of() {
  [ ! -f "$dir/pids" ] || awk -v name="${1:-}" 'name == "" || $1 == name { print $2 }' "$dir/pids"
}

# start_of PID prints when it was started, in ticks since the machine was.
start_of() { { sed 's/.*) //' "/proc/$1/stat" | cut -d ' ' -f 20; } 2>/dev/null; }

# ours PID: it runs, and it is what was started here, not a later process with the same number.
ours() { alive "$1" && grep -qxE "[^ ]+ $1 $(start_of "$1")" "$dir/pids"; }

# alive PID: one of its threads runs. The first may be a zombie while others still hold the process's ports and files. When
# all are zombies, the process has let go of them, and waits only for its parent to take note.
alive() { grep -qs '^State:[[:space:]]*[^ZX[:space:]]' /proc/"$1"/task/*/status; }

# stop SECONDS PID...: TERM until it ends, and KILL for what is left after that time. The second TERM
# makes Kubernetes' own components end without waiting for their clients, for whom nothing is lost here.
stop() {
  local deadline=$((SECONDS + $1)) pid mine=()
  shift
  for pid in "$@"; do
    if ours "$pid"; then kill -TERM "$pid" 2>/dev/null || true; mine+=("$pid"); fi
  done
  for pid in "${mine[@]}"; do
    while alive "$pid" && [ "$SECONDS" -lt "$deadline" ]; do sleep 0.03; kill -TERM "$pid" 2>/dev/null || true; done
    while alive "$pid"; do kill -KILL "$pid" 2>/dev/null || true; sleep 0.02; done
  done
}

# An API server whose etcd has gone does not end for minutes: etcd is the last.
stop_all() {
  [ -f "$dir/pids" ] || return 0
  # shellcheck disable=SC2046 # process numbers, to be split; here and below
  stop 4 $(pids_of kube-apiserver) $(awk '$1 != "etcd" && $1 != "kube-apiserver" { print $2 }' "$dir/pids")
  # shellcheck disable=SC2046
  stop 3 $(pids_of etcd)
  rm -rf "$dir/pids" "$dir/etcd"
}

wait_ready() {
  "$binary" wait-ready --kubeconfig "$dir/kubeconfig" --timeout 60s --pids "$(pids_of | paste -sd,)" 2>"$dir/wait-ready.log" ||
    { explain_failure; return 1; }
}

# A controller manager ends where the API server is not healthy within ten seconds, which a busy machine may need.
wait_healthy() {
  local deadline=$((SECONDS + 60))
  until curl --silent --fail --output /dev/null --cacert "$dir/ca.crt" "https://127.0.0.1:$apiserver_port/healthz"; do
    [ "$SECONDS" -lt "$deadline" ] && ours "$(pids_of kube-apiserver)" || return 0 # wait_ready says what is wrong
    sleep 0.1
  done
}

# Shows the log of what ended; where nothing did, the API server's.
explain_failure() {
  local name pid culprit=kube-apiserver
  while read -r name pid _; do
    ours "$pid" || { culprit=$name; break; }
  done <"$dir/pids"
  tail -n 1 "$dir/wait-ready.log" >&2
  say "the end of $dir/$culprit.log:"
  tail -n 20 "$dir/$culprit.log" >&2
}

# ---- verbs

up() {
  local started component
  started=$(date +%s%N)
  if [ -f "$dir/pids" ] && (status) >/dev/null 2>&1; then
    say "already up in $dir"
    return
  fi
  binary=$(build)
  kubectl=$(build_kubectl)
  exec 8>"$cache/controlplane.lock" # one at a time: they need the processors
  flock 8
  stop_all
  umask 077 # the folder holds keys and tokens
  rm -f "$dir"/*.log "$dir"/*.kubeconfig "$dir"/*.admin
  trap 'say "did not come up, stopping it"; stop_all' EXIT
  write_settings
  write_certificates
  write_users
  write_audit_policy
  write_kubectl
  for component in etcd kube-apiserver; do launch_component "$component"; done
  wait_healthy
  for component in kube-controller-manager kubelet; do launch_component "$component"; done
  wait_ready
  exec 8>&-
  trap - EXIT
  say "up in $((($(date +%s%N) - started) / 1000000)) ms: export KUBECONFIG=$dir/kubeconfig"
}

restart() {
  local component=$1
  read_settings
  [ -n "$(pids_of "$component")" ] || fail "$component was not started in $dir"
  # shellcheck disable=SC2046
  stop 4 $(pids_of "$component")
  sed -i "/^$component /d" "$dir/pids"
  launch_component "$component"
  wait_ready
}

# of_kubeconfig FILE PATH: what stands at a place of its current context's cluster or user.
of_kubeconfig() {
  KUBECONFIG=$1 "$kubectl" config view --raw --flatten --minify -o "jsonpath={$2}"
}

# proxy NAME KUBECONFIG. From the kubeconfig it takes the server, its authority, and the user's token.
proxy() {
  local name=$1 kubeconfig=$2 ports token
  case $name in etcd | kube-* | kubelet | ca | client | server | *[!A-Za-z0-9_-]*) fail "a proxy cannot be called '$name'" ;; esac
  if [ -f "$dir/settings" ]; then read_settings; else binary=$(build) kubectl=$(build_kubectl); fi
  [ -z "$(pids_of "$name")" ] || fail "a proxy called $name was already started in $dir"
  [ -f "$kubeconfig" ] || fail "there is no $kubeconfig"
  umask 077
  [ -f "$dir/server.crt" ] || write_server_certificate
  cp "$dir/server.crt" "$dir/$name.crt"
  cp "$dir/server.key" "$dir/$name.key"
  token=$(of_kubeconfig "$kubeconfig" .users[0].user.token)
  [ -n "$token" ] || fail "the user of $kubeconfig has no token: a client certificate cannot pass through a proxy"
  of_kubeconfig "$kubeconfig" .clusters[0].cluster.certificate-authority-data | base64 -d >"$dir/$name.upstream.crt"
  mapfile -t ports < <("$binary" free-ports 2)
  launch "$name" proxy --listen="127.0.0.1:${ports[0]}" --admin="127.0.0.1:${ports[1]}" \
    --upstream="$(of_kubeconfig "$kubeconfig" .clusters[0].cluster.server)" --upstream-ca="$dir/$name.upstream.crt" \
    --cert="$dir/$name.crt" --key="$dir/$name.key"
  write_kubeconfig "$dir/$name.kubeconfig" "${ports[0]}" "$token"
  "$binary" wait-ready --kubeconfig "$dir/$name.kubeconfig" --timeout 10s --pids "$(pids_of "$name")" 2>/dev/null ||
    { tail -n 20 "$dir/$name.log" >&2; fail "the proxy did not start"; }
  printf 'http://127.0.0.1:%s\n' "${ports[1]}" | tee "$dir/$name.admin"
}

status() {
  local name pid all=0
  [ -f "$dir/pids" ] || { echo "down: $dir"; return 1; }
  while read -r name pid _; do
    if ours "$pid"; then echo "running: $name (process $pid)"; else echo "ended: $name (process $pid)"; all=1; fi
  done <"$dir/pids"
  return $all
}

main() {
  local verb=${1:-} argument=${3:-}
  case $verb:$# in
  build:1) build; return ;;
  kubectl:1) build_kubectl; return ;;
  up:2 | down:2 | status:2 | proxy:[2-4] | restart:3) ;;
  *) usage ;;
  esac
  [ "$verb" != up ] || mkdir -p "$2"
  [ -d "$2" ] || { [ "$verb" = down ] && return; fail "there is no folder $2"; }
  dir=$(cd "$2" && pwd)
  case $verb in
  up) up ;;
  down) stop_all; say "down: $dir" ;;
  status) status ;;
  restart) restart "$argument" ;;
  proxy) proxy "${argument:-proxy}" "${4:-$dir/kubeconfig}" ;;
  esac
}

main "$@"; exit # on one line: bash reads a script as it runs it, and this one may be edited meanwhile
