# shellcheck shell=bash disable=SC2154
# Sourced by the runners of the folders here: the folder of a run, and the servers that it starts.

# run_in NAME: makes the folder $run. When the script ends, all that it has started in the background ends, too, and the
# folder goes; KEEP=1 keeps it, and says where.
run_in() {
  run=$(mktemp -d -t "moonloop-$1.XXXXXX")
  trap finish_run EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
}

finish_run() {
  local jobs
  mapfile -t jobs < <(jobs -p)
  [ ${#jobs[@]} -eq 0 ] || kill "${jobs[@]}" 2>/dev/null || true
  wait
  if [ -n "${KEEP:-}" ]; then echo "kept: $run" >&2; else rm -rf "$run"; fi
}

# start_dev KUBECONFIG LOG OPTION…: starts $moonloop, leaves its process in $dev, and waits until it has written KUBECONFIG.
# Fails, and shows the log, when it ends before that.
start_dev() {
  local kubeconfig=$1 log=$2
  shift 2
  "$moonloop" dev --write-kubeconfig "$kubeconfig" "$@" >"$log" 2>&1 &
  dev=$!
  while [ ! -s "$kubeconfig" ]; do
    kill -0 "$dev" 2>/dev/null || { echo "moonloop dev did not start:" >&2; cat "$log" >&2; return 1; }
    sleep 0.05
  done
}
