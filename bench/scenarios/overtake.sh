# shellcheck shell=bash disable=SC2154
# A host starts with 50,000 waiting Ats, of which it writes each one's status. Meanwhile somebody edits Ats, whose
# turn would come last, so that they are due: from the answer to each edit to its pod asked for, and from when a watch
# beside the operator's had it, which leaves out the server's own delay. Then the same when the host has nothing else to do.
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
