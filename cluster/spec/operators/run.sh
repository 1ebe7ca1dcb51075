#!/usr/bin/env bash
# Operators that others made, built from their Go modules and deployed by their own manifests, on `moonloop dev`.
#
#   cluster/spec/operators/run.sh              all of them, some minutes; writes bench/OPERATORS.md
#   cluster/spec/operators/run.sh OPERATOR…    these, by the names of their folders; writes nothing
#   MOONLOOP=PATH                              the binary; default build/release/moonloop
#   KEEP=1                                     keeps what servers and operators have logged, and says where
#
# The last line counts checks. Exit code 1 for one that fails; those of its operator that come after it are skipped.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
. cluster/spec/runner.sh

readonly here=cluster/spec/operators
readonly cache=${MOONLOOP_CACHE:-${HOME:?}/.cache/moonloop}
readonly moonloop=${MOONLOOP:-build/release/moonloop}
operators=()
for file in $here/*/checks.sh; do operators+=("$(basename "$(dirname "$file")")"); done
for operator in "$@"; do
  [ -f "$here/$operator/checks.sh" ] || { echo "operators: there is no $operator; there are ${operators[*]}" >&2; exit 2; }
done
[ $# -eq 0 ] || operators=("$@")

# programs NAME: the folder of the programs that NAME/go.mod names as its tools, which are built unless they are cached.
# Of the ways in which Prometheus finds targets it needs the one by Kubernetes' API; the others take minutes to build.
programs() {
  local folder
  folder=$cache/operators-$1-$(cat $here/"$1"/go.{mod,sum} | sha256sum | cut -c1-16)
  if [ ! -d "$folder" ]; then
    echo "operators: building $1 (the first time this takes minutes)" >&2
    mkdir -p "$folder.$$"
    (cd "$here/$1" && CGO_ENABLED=0 GOTOOLCHAIN=local go build -trimpath -buildvcs=false -ldflags '-s -w' \
      -tags remove_all_sd,enable_kubernetes_sd -o "$folder.$$/" tool) >&2 || return
    mv -T "$folder.$$" "$folder"
  fi
  echo "$folder"
}

# sources NAME MODULE: the folder of a module that NAME/go.mod requires.
sources() { (cd "$here/$1" && GOTOOLCHAIN=local go mod download -json "$2" | sed -n 's/.*"Dir": "\(.*\)",/\1/p'); }

# version NAME MODULE: its version there.
version() { awk -v module="$2" '$1 == module { print $2 }' "$here/$1/go.mod"; }

kubectl() { KUBECONFIG=$kubeconfig KUBECACHEDIR=$run/cache timeout 60 "$kubectl" "$@"; }

# get WORD…: kubectl get, where the last word is a JSONPath.
get() { kubectl get "${@:1:$#-1}" -o "jsonpath=${!#}"; }

# is TEXT COMMAND…: its output is the text. has TEXT COMMAND…: the text is a part of its output.
is() { local said; said=$("${@:2}") && echo "$said" && [ "$said" = "$1" ]; }
has() { local said; said=$("${@:2}") && echo "$said" && [[ $said == *"$1"* ]]; }

# refused TEXT COMMAND…: it fails, and the text is a part of what it says.
refused() { local said; ! said=$("${@:2}" 2>&1) && echo "$said" && [[ $said == *"$1"* ]]; }

# note OUTCOME WORDS SECONDS: a check has ended so; without seconds when it was not tried.
note() {
  count[$1]=$((count[$1] + 1))
  printf '%s: %s: %s%s\n' "$1" "$operator" "$2" "${3:+ ($3 s)}"
  printf '| %s | %s | %s |\n' "$2" "$1" "$3" >>"$run/rows"
}

# check WORDS SECONDS COMMAND…: tries the command until it succeeds, for so long; at least once.
check() {
  local words=$1 deadline=$((SECONDS + $2)) begun=${EPOCHREALTIME/./} outcome=passed said
  if [ "$broken" = yes ]; then note skipped "$words" ""; return; fi
  until said=$("${@:3}" 2>&1); do
    if [ "$SECONDS" -ge "$deadline" ]; then outcome=failed broken=yes; break; fi
    sleep 0.1
  done
  note $outcome "$words" "$(awk "BEGIN { printf \"%.1f\", (${EPOCHREALTIME/./} - $begun) / 1e6 }")"
  [ $outcome = passed ] || tail -n 3 <<<"$said" | cut -c1-400
}

# memory FIELD: what /proc says of the server's memory, in MiB.
memory() { awk -v field="$1:" '$1 == field { printf "%d", $2 / 1024 }' "/proc/$dev/status"; }

# try: one operator on a server of its own. Its checks.sh sets $images, the options that say what its images run, and
# $versions, a sentence for the report; it has the function checks.
try() {
  local broken=no kubeconfig=$run/$operator.kubeconfig dev='' code=0 images=() versions=''
  # shellcheck disable=SC1090 # one for each operator
  . "$here/$operator/checks.sh"
  start_dev "$kubeconfig" "$run/$operator.dev" --authorization-mode RBAC --logs all "${images[@]}"
  printf '\n## %s\n\n%s\n\n| check | | seconds |\n|---|---|---|\n' "$operator" "$versions" >>"$run/rows"
  checks
  printf '\nmoonloop at the end: %d MiB resident, %d MiB at its highest.\n' "$(memory VmRSS)" "$(memory VmHWM)" >>"$run/rows"
  kill -INT "$dev" && wait "$dev" || code=$?
  [ "$code" = 0 ] || { echo "moonloop dev ended with $code: $(tail -n 1 "$run/$operator.dev")"; count[failed]=$((count[failed] + 1)); }
}

report() {
  cat <<REPORT
# Operators that others made

Written by \`make operators\`; what is checked, and how, stands in [its README](../$here/README.md).

- Machine: $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1), $(nproc) cores, Linux $(uname -r)
- Date: $(date -u +%F). Commit: $(git rev-parse --short=8 HEAD)
- $tally
REPORT
  cat "$run/rows"
}

run_in operators
unshare -Urmn true 2>/dev/null || {
  echo "operators: this machine allows no user namespaces, and operators need pods with addresses of their own"
  echo "0 passed, 0 failed, 1 skipped"
  exit 0
}
kubectl=$(spec/e2e/controlplane/controlplane.sh kubectl)
declare -A count=([passed]=0 [failed]=0 [skipped]=0)
for operator in "${operators[@]}"; do try; done
tally="${count[passed]} passed, ${count[failed]} failed, ${count[skipped]} skipped"
[ $# -gt 0 ] || report >bench/OPERATORS.md
echo "$tally"
[ "${count[failed]}" = 0 ]
