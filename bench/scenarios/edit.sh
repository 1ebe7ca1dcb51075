# shellcheck shell=bash disable=SC2154
# A script of 220 lines in two files is edited that runs over 100 and then over 10,000 waiting Ats: from the moment when its file
# is replaced until the host says that the new version is live. With `--rollout guarded` and `immediate` in turn: the difference is the plan that is
# made of each version. And `moonloop plan` of the same script over all of them, `moonloop check` of it, and how long a host over all of
# them takes to answer `status`, `why` and `top`.
scenario_edit() {
  local few=100 many=10000 few_edits=30 edits=10 rollout
  [ "$quick" = no ] || { many=1000; few_edits=3; edits=3; }
  cp_up
  mkdir -p "$work/edit"
  cp reconcilers/database_engines.lua "$work/edit/"
  { echo 'local _ = require "database_engines"'; cat reconcilers/cnat.lua; } >"$work/edit/base"
  "$load" namespace --name edit
  "$load" ats --namespace edit --count "$few" --due +86400s >/dev/null
  "$load" wait --namespace edit --count 0 --phase PENDING
  for rollout in guarded immediate; do edit_some "$rollout" few "$few_edits"; done
  "$load" ats --namespace edit --first $((few + 1)) --count $((many - few)) --due +86400s --concurrency 32 >/dev/null
  for rollout in guarded immediate; do edit_some "$rollout" many "$edits"; done
  edit_check
  edit_plan
  record edit.count "$many"
}

edit_some() { # guarded|immediate few|many EDITS
  local i edits=$3
  cp "$work/edit/base" "$work/edit/cnat.lua"
  : >"$work/host.log"
  host_start "$subject" --scripts "$work/edit/cnat.lua" --rollout "$1"
  until grep -q '"script is live"' "$work/host.log"; do sleep 0.05; done
  host_settle
  for ((i = 1; i <= edits; i++)); do
    edit_once "$i" | record_all "edit.$2"
    host_settle
  done
  record_memory "edit.$2.$1"
  [ "$2" = few ] || [ "$1" = guarded ] || edit_ask
  host_stop
}

# The time in the log line is of the host's own clock, which is this machine's.
edit_once() { # NUMBER; prints the figure
  local began live
  { cat "$work/edit/base"; echo "-- edit $1"; } >"$work/edit/next"
  began=$EPOCHREALTIME
  mv "$work/edit/next" "$work/edit/cnat.lua"
  until [ "$(grep -c '"new version is live"' "$work/host.log")" = "$1" ]; do sleep 0.02; done
  live=$(sed -n '/"new version is live"/s/.*"ts":"\([^"]*\)".*/\1/p' "$work/host.log" | tail -n 1)
  printf '%s\t%s\n' "$rollout" "$(awk -v live="$(date -d "$live" +%s.%N)" -v began="$began" 'BEGIN { print live - began }')"
}

# Of a command, the process included.
edit_time() { # FIGURE COMMAND…
  local figure=$1 began
  shift
  began=$EPOCHREALTIME
  "${binaries[$subject]}" "$@" >"$work/edit/answer" || die "moonloop $* ended with $?: $(cat "$work/edit/answer")"
  record "$figure" "$(awk -v now="$EPOCHREALTIME" -v began="$began" 'BEGIN { print now - began }')"
}

edit_ask() {
  local i
  for ((i = 0; i < 10; i++)); do
    edit_time edit.ask.status status --pid "$host_pid"
    edit_time edit.ask.why why At edit/at-00001 --pid "$host_pid"
    edit_time edit.ask.top top --once --pid "$host_pid"
  done
}

edit_check() {
  local i
  for ((i = 0; i < 10; i++)); do edit_time edit.check check reconcilers/database.lua; done
}

edit_plan() {
  local i began pid
  for ((i = 0; i < 3; i++)); do
    began=$EPOCHREALTIME
    "${binaries[$subject]}" plan --scripts reconcilers/cnat.lua --kubeconfig "$cp/kubeconfig" >"$work/plan" &
    pid=$!
    while status_kib "$pid" VmHWM >"$work/plan.now" 2>/dev/null && [ -s "$work/plan.now" ]; do
      cp "$work/plan.now" "$work/plan.most"
      sleep 0.05
    done
    wait "$pid" || die "the plan ended with $?: $(cat "$work/plan")"
    record edit.plan.seconds "$(awk -v now="$EPOCHREALTIME" -v began="$began" 'BEGIN { print now - began }')"
    record edit.plan.VmHWM "$(cat "$work/plan.most")"
  done
}
