#!/usr/bin/env bash
# Waits until CRDs are established.
#
#   established.sh crd/NAME… | -f FILE
#
# kubectl wait ends with an error where a CRD has no list of conditions yet, as one that was just made: it is asked
# again, for a minute at most.
set -euo pipefail
kubectl=${KUBECTL:-kubectl} end=$((SECONDS + 60))
until answer=$("$kubectl" wait --for=condition=Established --timeout=30s "$@" 2>&1); do
  if [ $SECONDS -ge $end ]; then
    echo "$answer" >&2
    exit 1
  fi
  sleep 0.2
done
echo "$answer"
