# shellcheck shell=bash disable=SC2154
# A host starts with 50,000 waiting Ats and writes the status of each. Meanwhile somebody edits Ats, whose turn would
# come last, so that they are due. Measured from the answer to each edit until its pod is asked for, and from the moment
# when another watch had the edit, which leaves out the server's own delay. Then the same when the host is idle otherwise.
scenario_overtake() {
  local count=50000 edits=40
  [ "$quick" = no ] || { count=5000; edits=8; }
  cp_up
  "$load" namespace --name overtake
  "$load" ats --namespace overtake --count "$count" --due +864000s --concurrency 32 >/dev/null
  host_start "$subject" --scripts reconcilers/cnat.lua
  "$load" wait --namespace overtake --count $((count / 100)) --phase PENDING
  overtake_edit flood $((count - edits)) "$edits"
  "$load" wait --namespace overtake --count $((count - edits)) --phase PENDING --timeout 10m
  host_settle
  overtake_edit calm 0 $((2 * edits))
  host_stop
  record overtake.count "$count"
}

overtake_edit() { # flood|calm FIRST PODS-THEN
  local mark
  mark=$(wc -c <"$cp/audit.log")
  "$load" edits --namespace overtake --first "$2" --count "$edits" --every 100ms >"$work/seen"
  "$load" wait --audit "$cp/audit.log" --namespace overtake --count "$3"
  tail -c +$((mark + 1)) "$cp/audit.log" >"$work/audit.part"
  "$load" overtake --audit "$work/audit.part" --namespace overtake --seen "$work/seen" >"$work/overtake"
  [ "$(of pods <"$work/overtake")" = "$edits" ] || die "$(of pods <"$work/overtake") pods made, not $edits"
  [ "$1" = calm ] || [ "$(of after <"$work/overtake")" -gt "$edits" ] || die 'the flood was over before the last edit'
  record_all "overtake.$1" <"$work/overtake"
}
