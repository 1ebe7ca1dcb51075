# shellcheck shell=bash disable=SC2154
# Many Ats due in the same second: how late each pod is, next to a bare client that makes the same pods
# on the same server with nothing in between. Pairs, in turn the one and the other first.
scenario_lateness() {
  local pairs=5 i
  [ "$quick" = no ] || pairs=1
  cp_up
  for ((i = 0; i < pairs; i++)); do lateness_pair 200 6 "$i"; done
  [ "$quick" = yes ] || pairs=3
  for ((i = 0; i < pairs; i++)); do lateness_pair 1000 12 "$i"; done
}

lateness_pair() { # COUNT SECONDS-AHEAD NUMBER
  local order=(host "bare 32" "bare $1") who
  [ $(($3 % 2)) = 0 ] || order=("bare $1" "bare 32" host)
  for who in "${order[@]}"; do
    # shellcheck disable=SC2086
    lateness_${who%% *} "$1" "$2" "$3" ${who#* }
  done
}

lateness_host() { # COUNT SECONDS-AHEAD NUMBER
  local namespace=late-host-$1-$3 due
  "$load" namespace --name "$namespace"
  host_start "$subject" --scripts reconcilers/cnat.lua
  host_settle
  due=$("$load" ats --namespace "$namespace" --count "$1" --due "+$2s" | of due)
  "$load" wait --audit "$cp/audit.log" --namespace "$namespace" --count "$1" --phase DONE
  host_stop
  lateness_of "$namespace" "$1" "$due" "late.$1.host"
  writes_of "$namespace" "$1" writes.waited
}

lateness_bare() { # COUNT SECONDS-AHEAD NUMBER CONCURRENCY
  local namespace=late-bare-$1-$3-$4 due kind=some
  [ "$4" != "$1" ] || kind=all
  "$load" namespace --name "$namespace"
  due=$("$load" pods --namespace "$namespace" --count "$1" --due +2s --concurrency "$4" | of due)
  "$load" wait --audit "$cp/audit.log" --namespace "$namespace" --count "$1" --resource pods --phase Succeeded
  lateness_of "$namespace" "$1" "$due" "late.$1.bare-$kind"
}
