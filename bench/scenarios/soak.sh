# shellcheck shell=bash disable=SC2154
# Not among the default ones: the built image in a cgroup with the limits of deploy/deployment.yaml, for MINUTES
# (default 30) of 5 new Ats a second, each due a few seconds later and deleted after a minute, beside 2,000 that
# wait. Fails when it ended, its memory was used up or grew, or a pod was late by more than 2 s.
scenario_soak() {
  local minutes=${MINUTES:-30} standing=2000 churn broken=()
  tools/image.sh build && tools/image.sh rootfs "$work/rootfs"
  cp_up
  "$load" namespace --name standing
  "$load" namespace --name soak
  "$load" ats --namespace standing --count "$standing" --due +86400s --concurrency 32 >/dev/null
  soak_start
  "$load" wait --namespace standing --count "$standing" --phase PENDING
  "$load" churn --namespace soak --rate 5 --for "${minutes}m" --keep 60s >"$work/churn" &
  churn=$!
  "$load" observe --pid "$container_pid" --memory "$cgroup_memory" --for "${minutes}m" >"$work/observed" ||
    die "the container ended: $(tail -n 1 "$work/container.log")"
  wait "$churn" || die 'the load ended badly'
  kill -TERM "$soak_pid"
  wait "$soak_pid" || broken+=("the container ended with $?")
  container_pid=''
  "$load" lateness --audit "$cp/audit.log" --namespace soak >>"$work/observed"
  tr '=' '\t' <"$work/container.cgroup" >>"$work/observed"
  record soak.minutes "$minutes"
  cat "$work/churn" >>"$work/observed"
  record_all soak <"$work/observed"
  [ "$(of pods <"$work/observed")" = "$(of made <"$work/churn")" ] || broken+=('not one pod for each At')
  [ "$(of unfinished <"$work/churn")" = 0 ] || broken+=("$(of unfinished <"$work/churn") Ats were not DONE a minute after they were made")
  [ "$(of rss_growth <"$work/observed")" -le 2048 ] || broken+=('memory grew')
  [ "$(of oom_kill <"$work/observed")" = 0 ] || broken+=('out of memory')
  awk -F '\t' '$1 == "made_max" && $2 > 2 { late = 1 } END { exit late }' "$work/observed" || broken+=('late by more than 2 s')
  [ ${#broken[@]} = 0 ] || { cat "$work/observed" >&2; die "soak: $(IFS=';'; echo "${broken[*]}")"; }
}

# As spec/e2e/container_spec.lua: the image's root filesystem, the service account's token, an unprivileged user.
# Sets soak_pid, the one to end, container_pid, the operator's own, and cgroup_memory, the file that says what it holds.
soak_start() {
  local root=$work/rootfs server
  "$cp/kubectl" apply -f deploy/namespace.yaml >/dev/null
  "$cp/kubectl" apply -n moonloop-system -f deploy/rbac.yaml >/dev/null
  "$cp/kubectl" apply -n moonloop-system -k reconcilers >/dev/null
  service_account "$root/var/run/secrets/kubernetes.io/serviceaccount"
  server=$(sed -n 's,^ *server: https://,,p' "$cp/kubeconfig")
  env -i PATH="$PATH" KUBERNETES_SERVICE_HOST="${server%:*}" KUBERNETES_SERVICE_PORT="${server##*:}" \
    tools/cgroup-run.sh $((30 * 1024 * 1024)) 100 "$work/container.cgroup" chroot --userspec=65532:65532 "$root" \
    /moonloop run --scripts-configmap moonloop-system/moonloop-scripts </dev/null >"$work/container.log" 2>&1 &
  soak_pid=$!
  until grep -q 'script is live' "$work/container.log"; do
    kill -0 "$soak_pid" 2>/dev/null || die "the container did not start: $(tail -n 1 "$work/container.log")"
    sleep 0.1
  done
  container_pid=$(pgrep -P "$soak_pid" | head -n 1)
  for cgroup_memory in /sys/fs/cgroup/{memory/,}"moonloop-run-$soak_pid"/memory.{usage_in_bytes,current}; do
    [ ! -r "$cgroup_memory" ] || return 0
  done
  die 'the container has no cgroup'
}

service_account() { # FOLDER
  mkdir -p "$1"
  "$cp/kubectl" create token moonloop -n moonloop-system --duration 24h >"$1/token"
  printf moonloop-system >"$1/namespace"
  sed -n 's/^ *certificate-authority-data: //p' "$cp/kubeconfig" | base64 -d >"$1/ca.crt"
  chmod -R a+rX "$work/rootfs/var"
}
