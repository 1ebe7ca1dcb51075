# The functions that the scenarios are written with. Sourced by run.sh, which sets: work quick moonloop.
# shellcheck shell=bash disable=SC2154

cp=$work/cp           # folder of the control plane that is up
controlplane=spec/e2e/controlplane/controlplane.sh
load=$work/load
host_pid='' host_exec='' container_pid='' up=no

# The builds that are measured, and the one that has to do where that is enough.
declare -A binaries=([development]=$moonloop)
builds=(development) subject=development

say() { printf 'bench: %3d s  %s\n' "$SECONDS" "$*" >&2; }
die() { say "$*"; exit 1; }

record() { printf '%s\t%s\n' "$1" "$2" >>"$work/figures.tsv"; }

# record_all PREFIX: the figures that "load" prints on standard input, each under its name with the prefix.
record_all() {
  local name value
  while IFS=$'\t' read -r name value; do record "$1.$name" "$value"; done
}

# of NAME: one value out of what "load" printed.
of() { awk -F '\t' -v name="$1" '$1 == name { print $2 }'; }

prepare() {
  local commit
  commit=$(git rev-parse --short HEAD 2>/dev/null || echo unknown)
  [ -z "$(git status --porcelain -- host lua reconcilers 2>/dev/null)" ] || commit="$commit with changes"
  record meta.commit "$commit"
  record meta.date "$(date -u +%Y-%m-%d)"
  record meta.cpu "$(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo | head -n 1)"
  record meta.cores "$(nproc)"
  record meta.memory "$(awk '/^MemTotal/ { printf "%.0f GiB", $2 / 1048576 }' /proc/meminfo)"
  record meta.kernel "$(uname -sr)"
  record meta.load "$(cut -d ' ' -f 1 /proc/loadavg)"
  record meta.quick "$quick"
  (cd bench/load && GOTOOLCHAIN=local CGO_ENABLED=0 go build -trimpath -buildvcs=false -o "$load" .)
  cc -O2 -shared -fPIC -o "$work/heapsize.so" bench/heapsize.c
  "$controlplane" build >/dev/null
  find_image
}

# The image's own binary, where the image has been made.
find_image() {
  local binary=${MOONLOOP_IMAGE:-$work/image/moonloop}
  if [ -z "${MOONLOOP_IMAGE:-}" ]; then tools/image.sh rootfs "$work/image" >"$work/image.log" 2>&1 || true; fi
  if [ ! -x "$binary" ]; then
    say 'skipped: the binary of the image; there is no moonloop:latest (make docker-build)'
    return
  fi
  binaries[image]=$binary
  builds+=(image)
  # shellcheck disable=SC2034 # the scenarios ask for it
  subject=image
  record meta.image "$(date -u -r "$binary" +'%Y-%m-%d %H:%M')"
}

cleanup() {
  local code=$?
  # shellcheck disable=SC2046 # process numbers, to be split
  kill -KILL $(jobs -p) ${container_pid:+"$container_pid"} 2>/dev/null || true
  [ "$up" = no ] || "$controlplane" down "$cp" 2>/dev/null || true
  if [ "$code" != 0 ] || [ -n "${BENCH_KEEP:-}" ]; then say "logs and raw figures: $work"; else rm -rf "$work"; fi
}

# A fixed piece of work: what it takes in each scenario says how steady the machine was.
calibrate() {
  lua5.4 -e 'local t = os.clock() local x = 0 for i = 1, 1e7 do x = x + i % 7 end print(string.format("%.1f", (os.clock() - t) * 1e3))'
}

# ---- control plane

# A fresh one, so that no scenario finds what another has left.
cp_up() {
  cp_down
  "$controlplane" up "$cp" 2>/dev/null || die 'the control plane did not come up'
  up=yes
  export KUBECONFIG=$cp/kubeconfig
  "$cp/kubectl" apply -f crds >/dev/null
  KUBECTL=$cp/kubectl spec/e2e/established.sh crd/ats.cnat.programming-kubernetes.info >/dev/null
  # The garbage collector looks for new kinds every 30 s only, or when it starts.
  "$controlplane" restart "$cp" kube-controller-manager 2>/dev/null
}

cp_down() {
  [ "$up" = no ] || "$controlplane" down "$cp" 2>/dev/null
  up=no
}

cp_pid() { awk -v name="$1" '$1 == name { print $2 }' "$cp/pids"; }

# ---- what came of it

# A run that did not make exactly one pod for each has no figures.
lateness_of() { # NAMESPACE COUNT DUE FIGURE
  "$load" lateness --audit "$cp/audit.log" --namespace "$1" --due "$3" >"$work/late"
  [ "$(of pods <"$work/late")" = "$2" ] || die "$1: $(of pods <"$work/late") pods made, not $2"
  record_all "$4" <"$work/late"
}

# ---- operator

# host_start BUILD ARGUMENT...: the arguments go to "moonloop run", which works on the control plane, or on
# the server of $kubeconfig. Sets host_pid, and host_exec, when.
host_start() {
  local binary=${binaries[$1]}
  shift
  # shellcheck disable=SC2034 # scenarios/start.sh asks for it
  host_exec=$EPOCHREALTIME
  "$binary" run --kubeconfig "${kubeconfig:-$cp/kubeconfig}" "$@" >>"$work/host.log" 2>&1 &
  host_pid=$!
}

# host_start_counting: the development build, so that heap_bytes works. Unconfined: a confined one may not write that file.
host_start_counting() {
  HEAPSIZE_FILE=$work/heapsize LD_PRELOAD=$work/heapsize.so host_start development --unconfined "$@"
}

host_stop() {
  local code=0
  kill -TERM "$host_pid"
  wait "$host_pid" || code=$?
  host_pid=''
  [ "$code" = 0 ] || die "moonloop ended with $code: $(tail -n 1 "$work/host.log")"
}

# host_settle: until it has used no CPU for a second.
host_settle() {
  local before after quiet=0 i
  before=$(cpu_ms "$host_pid")
  for ((i = 0; i < 400 && quiet < 4; i++)); do
    sleep 0.25
    after=$(cpu_ms "$host_pid") || die "moonloop is gone: $(tail -n 1 "$work/host.log")"
    if [ $((after - before)) -le 0 ]; then quiet=$((quiet + 1)); else quiet=0; fi
    before=$after
  done
}

# proxy_start ARGUMENT...: one before the control plane, with $work/proxy.kubeconfig and $work/proxy.log.
proxy_start() {
  rm -f "$work/proxy.kubeconfig"
  "$load" proxy --kubeconfig "$cp/kubeconfig" --write-kubeconfig "$work/proxy.kubeconfig" --log "$work/proxy.log" "$@" &
  proxy_pid=$!
  await_file "$work/proxy.kubeconfig" "$proxy_pid"
}

proxy_stop() { end_of "$proxy_pid"; }

# await_file FILE PID: until the process has written it.
await_file() {
  until [ -s "$1" ]; do
    kill -0 "$2" 2>/dev/null || die "the process that was to write $1 ended"
    sleep 0.02
  done
}

# end_of PID: of a helper of ours, whatever it says to it.
end_of() {
  kill "$1" 2>/dev/null || true
  wait "$1" 2>/dev/null || true
}

free_port() { "$(sed -n "s/^binary='\(.*\)'$/\1/p" "$cp/settings")" free-ports 1; }

# ---- moonloop dev

dev_start() { # OPTION…: without any, nothing runs pods
  [ $# -gt 0 ] || set -- --pods none
  rm -f "$work/dev.kubeconfig"
  # shellcheck disable=SC2034 # scenarios/embedded.sh asks for it
  dev_exec=$EPOCHREALTIME
  "$moonloop" dev "$@" --write-kubeconfig "$work/dev.kubeconfig" >"$work/dev.log" 2>&1 &
  dev_pid=$!
  "$load" answered --kubeconfig "$work/dev.kubeconfig" >"$work/answered"
}

dev_stop() {
  kill -INT "$dev_pid"
  wait "$dev_pid" || die "moonloop dev ended badly: $(tail -n 1 "$work/dev.log")"
}

# ---- /proc

# cpu_ms PID: user and system time of all its threads so far.
cpu_ms() { sed 's/^.*) //' "/proc/$1/stat" | awk '{ print ($12 + $13) * 10 }'; }

# status_kib PID FIELD, as VmRSS, VmHWM or RssAnon.
status_kib() { awk -v field="$2:" '$1 == field { print $2 }' "/proc/$1/status"; }

# Records the memory that the host holds now, and the most it held so far.
record_memory() { # PREFIX
  local field
  for field in VmRSS VmHWM RssAnon; do record "$1.$field" "$(status_kib "$host_pid" "$field")"; done
  record "$1.Pss" "$(awk '$1 == "Pss:" { print $2 }' "/proc/$host_pid/smaps_rollup")"
}

# heap_bytes: what malloc has handed out, from a host that host_start_counting started.
heap_bytes() {
  local i
  rm -f "$work/heapsize"
  kill -USR2 "$host_pid"
  for ((i = 0; i < 500 && ! $(stat -c %s "$work/heapsize" 2>/dev/null || echo 0); i++)); do sleep 0.02; done
  [ -s "$work/heapsize" ] || die 'the host does not say how much it holds'
  cat "$work/heapsize"
}

# ---- audit log

# The operator's own writes for each At, and each kind of them.
writes_of() { # NAMESPACE COUNT FIGURE
  "$load" writes --audit "$cp/audit.log" --namespace "$1" >"$work/writes"
  awk -F '\t' -v count="$2" -v figure="$3" '$1 == "moonloop" {
      total += $3; gsub(" ", "_", $2); printf "%s.%s\t%.3f\n", figure, $2, $3 / count
    } END { printf "%s\t%.3f\n", figure, total / count }' "$work/writes" >>"$work/figures.tsv"
}
