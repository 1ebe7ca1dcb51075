# shellcheck shell=bash disable=SC2154
# Resident memory with nothing to do, of the development build and of the image's static binary.
scenario_idle() {
  local build
  cp_up
  for build in "${builds[@]}"; do
    host_start "$build" --scripts reconcilers/cnat.lua
    host_settle
    record_memory "idle.$build"
    host_stop
    record "size.$build" "$(stat -L -c %s "${binaries[$build]}")"
  done
}
