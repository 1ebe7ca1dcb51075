# shellcheck shell=bash disable=SC2154
# How long a webhook of a script takes: asked at a rate, on connections that are kept and on new ones, and while the
# script is edited twice a second; and what it adds to a write of the API server.
scenario_webhooks() {
  local runs=3 count=5000 port i
  [ "$quick" = no ] || { runs=1 count=1000; }
  cp_up
  "$load" namespace --name judged
  port=$(free_port)
  write_judge 0
  host_start "$subject" --scripts "$work/judge" --namespace judged --webhook-bind-address "127.0.0.1:$port" \
    --webhook-url https://127.0.0.1 --webhook-namespace judged
  register_judge "$port"
  for ((i = 0; i < runs; i++)); do
    judge "$port" 100 $((count / 5)) kept
    judge "$port" 100 $((count / 5)) fresh --fresh
    judge "$port" 1000 "$count" kept
    judge "$port" 1000 "$count" fresh --fresh
    edit_judge &
    editor=$!
    judge "$port" 1000 "$count" swapped
    end_of "$editor"
    "$load" reviewed --namespace judged --first $((i * 10000)) --count 500 --label asked | record_all webhooks.admission
  done
  record_memory webhooks
  host_stop
}

# write_judge EDITION: says it twice in each answer, from two places, so that a mixture of two would be seen.
write_judge() {
  mkdir -p "$work/judge"
  cat >"$work/judge.lua" <<LUA
local moonloop = require "moonloop"
local EDITION = "edition $1"
return moonloop.controller {
  name = "judge",
  reconciles = moonloop.kind("cnat.programming-kubernetes.info/v1alpha1", "At"),
  webhooks = { object_selector = { matchLabels = { asked = "true" } } },
  validate = function(at)
    if #at.spec.command > 100 then return { { field = "spec.command", message = "at most 100" } } end
    return nil, { EDITION, "edition $1" }
  end,
  reconcile = function() end,
}
LUA
  mv "$work/judge.lua" "$work/judge/judge.lua"
}

edit_judge() {
  local edition
  for ((edition = 1; ; edition++)); do
    write_judge "$edition"
    sleep 0.5
  done
}

# register_judge PORT: as a user does it, until the API server calls.
register_judge() {
  local i
  "$moonloop" manifests "$work/judge" --crds crds/at.yaml --no-rights --webhook-url "https://127.0.0.1:$1" |
    "$cp/kubectl" apply -f - >/dev/null 2>&1
  for ((i = 0; i < 300; i++)); do
    "$cp/kubectl" get secret moonloop-webhook-cert -n judged -o 'jsonpath={.data.ca\.crt}' 2>/dev/null |
      base64 -d >"$work/judge.ca"
    if [ -s "$work/judge.ca" ] && "$load" reviewed --namespace judged --first $((900000 + 2 * i)) --count 1 \
      --label asked >/dev/null 2>&1; then return; fi
    sleep 0.1
  done
  die 'the API server does not reach the webhook'
}

judge() { # PORT RATE COUNT FIGURE FLAG…
  local before
  before=$(cpu_ms "$host_pid")
  "$load" reviews --url "https://127.0.0.1:$1/validate/judge" --ca "$work/judge.ca" --rate "$2" --count "$3" "${@:5}" |
    record_all "webhooks.$2.$4"
  record "webhooks.$2.$4.cpu" "$(awk -v ms=$(($(cpu_ms "$host_pid") - before)) -v n="$3" 'BEGIN { printf "%.6f", ms / 1e3 / n }')"
}
