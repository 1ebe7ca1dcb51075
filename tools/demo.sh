#!/usr/bin/env bash
# Shows the five-minute tour of README.md: an At becomes a pod that prints YAY; the script is edited while it runs, and the
# next pod shows the change. It works on copies and on loopback, and leaves no process and no file behind.
set -euo pipefail
cd "$(dirname "$0")/.."

moonloop=${MOONLOOP:-build/release/moonloop}
patience=60 # seconds for each step
place=$(mktemp -d)
pid=
leave() {
  [ -z "$pid" ] || { kill "$pid" 2>/dev/null && wait "$pid" || true; }
  rm -rf "$place"
}
trap leave EXIT

say() { printf '\n== %s\n' "$*"; }

# at NAME: a manifest of an At that is due in three seconds. It is applied by being written.
at() {
  cat >"$place/.new" <<MANIFEST
apiVersion: cnat.programming-kubernetes.info/v1alpha1
kind: At
metadata:
  name: $1
spec:
  schedule: "$(date -u -d '+3 seconds' +%Y-%m-%dT%H:%M:%SZ)"
  command: echo YAY
MANIFEST
  mv "$place/.new" "$place/ats/$1.yaml"
}

# until_said PATTERN: waits for a line of moonloop dev.
until_said() {
  local left=$((patience * 10))
  until grep -qE "$1" "$place/story"; do
    kill -0 "$pid" 2>/dev/null || { echo "demo: moonloop dev has ended" >&2; exit 1; }
    [ $((left -= 1)) -gt 0 ] || { echo "demo: no \"$1\" within ${patience}s" >&2; exit 1; }
    sleep 0.1
  done
}

mkdir "$place/ats" "$place/scripts"
cp reconcilers/cnat.lua "$place/scripts/"
at example-at

say "moonloop dev --scripts scripts/ --apply crds/ --apply ats/"
: >"$place/story"
"$moonloop" dev --scripts "$place/scripts" --apply crds --apply "$place/ats" > >(tee -a "$place/story") 2>&1 &
pid=$!
for phase in PENDING RUNNING DONE; do
  until_said "at/example-at +$phase"
done
until_said 'example-at-pod +\| YAY$'

say "while it runs, the script is edited: pods get another command"
sed -i 's/words(at\.spec\.command)/words(at.spec.command .. ", edited while it ran")/' "$place/scripts/cnat.lua"
diff reconcilers/cnat.lua "$place/scripts/cnat.lua" || true
until_said 'new version is live'

say "and a second At is applied"
at second-at
until_said 'second-at-pod +\| YAY, edited while it ran$'
until_said 'at/second-at +DONE'

say "Ctrl-C"
kill -INT "$pid"
wait "$pid"
pid=
echo "All processes have ended, and all files are gone. Now try it by hand: README.md has the steps."
