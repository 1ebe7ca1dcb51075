# shellcheck shell=bash disable=SC2154
# From the write of the scripts' ConfigMap to the first pod that only the new script makes: an At waits
# with a schedule that every version before refused, and the new one takes. Alone, and among 1,000 others.
scenario_reload() {
  local runs=5 i
  [ "$quick" = no ] || runs=2
  cp_up
  "$load" namespace --name reload
  "$load" namespace --name others
  write_scripts 0 create
  host_start "$subject" --scripts-configmap reload/scripts
  for ((i = 1; i <= runs; i++)); do reload_once "$i" reload.alone; done
  "$load" ats --namespace others --count 1000 --due +86400s >/dev/null
  "$load" wait --namespace others --count 1000 --phase PENDING
  for ((i = runs + 1; i <= 2 * runs; i++)); do reload_once "$i" reload.among1000; done
  host_stop
}

# write_scripts NUMBER create|replace: version NUMBER takes the schedule "when NUMBER".
write_scripts() {
  sed "/^local function due(schedule)/a\\  if schedule == \"when $1\" then return 0 end" reconcilers/cnat.lua >"$work/cnat.lua"
  ! cmp -s reconcilers/cnat.lua "$work/cnat.lua" || die 'reconcilers/cnat.lua has no "local function due(schedule)"'
  "$cp/kubectl" create configmap scripts -n reload --from-file=cnat.lua="$work/cnat.lua" --dry-run=client -o yaml |
    "$cp/kubectl" "$2" -f - >/dev/null
}

reload_once() { # NUMBER FIGURE
  "$load" ats --namespace reload --first "$1" --count 1 --due "=when $1" >/dev/null
  host_settle
  write_scripts "$1" replace
  "$load" wait --audit "$cp/audit.log" --namespace reload --count "$1" --phase DONE
  "$load" first --audit "$cp/audit.log" --namespace reload --write configmaps/scripts | record_all "$2"
}
