# shellcheck shell=bash disable=SC2154
# What 1,000 lifecycles cost at least: bare_operator, which sends what cnat sends with libcurl and does nothing
# else, next to the operator. In turn, each on a server that is new.
scenario_floor() {
  local runs=3 count=1000 i bare
  [ "$quick" = no ] || runs=1
  bare=$(floor_build)
  if [ -z "$bare" ]; then
    say 'skipped: no bare_operator'
    return
  fi
  # shellcheck disable=SC1091
  . bench/scenarios/lifecycles.sh
  for ((i = 0; i < runs; i++)); do
    floor_once "$bare" "$count"
    lifecycles_once "$subject" "$count"
  done
}

floor_build() {
  local build
  build=$(dirname "$moonloop")
  cmake --build "$build" --target bare_operator >"$work/floor.log" 2>&1 || true
  find "$build" -name bare_operator -type f -perm -u+x | head -n 1
}

floor_once() { # BINARY COUNT
  cp_up
  "$load" namespace --name lives
  TOKEN=$(sed -n 's/^ *token: //p' "$KUBECONFIG") \
    "$1" "$(sed -n 's/^ *server: //p' "$KUBECONFIG")" "$cp/ca.crt" lives "$2" >"$work/floor" &
  host_pid=$!
  host_settle
  "$load" ats --namespace lives --count "$2" --due 2026-01-01T00:00:00Z --concurrency 32 >/dev/null
  wait "$host_pid" || die 'bare_operator failed'
  host_pid=''
  record_all floor <"$work/floor"
}
