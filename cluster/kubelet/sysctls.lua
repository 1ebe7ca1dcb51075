--- The sysctls of a pod: those that a kubelet allows, and those that the pod's network gets.
---
--- Rules: kubernetes/pkg/kubelet/sysctl (safe_sysctls.go, allowlist.go).
local names = require "cluster.apiserver.resources.pod.security"

local M = {}

local SAFE = {
  ["kernel.shm_rmid_forced"] = true,
  ["net.ipv4.ip_local_port_range"] = true,
  ["net.ipv4.ip_local_reserved_ports"] = true,
  ["net.ipv4.ip_unprivileged_port_start"] = true,
  ["net.ipv4.ping_group_range"] = true,
  ["net.ipv4.tcp_fin_timeout"] = true,
  ["net.ipv4.tcp_keepalive_intvl"] = true,
  ["net.ipv4.tcp_keepalive_probes"] = true,
  ["net.ipv4.tcp_keepalive_time"] = true,
  ["net.ipv4.tcp_rmem"] = true,
  ["net.ipv4.tcp_syncookies"] = true,
  ["net.ipv4.tcp_wmem"] = true,
}


local function asked_by(pod)
  return (pod.spec.securityContext or {}).sysctls or {}
end


--- Why a kubelet does not run a pod, or nil.
function M.problem(pod)
  for _, sysctl in ipairs(asked_by(pod)) do
    local name = names.with_dots(sysctl.name)
    if not SAFE[name] then
      return ("forbidden sysctl: %q not allowlisted"):format(name)
    end
  end
end


--- The sysctls of a pod's network, as cluster.network has them.
function M.of_network(pod)
  local lines = {}
  for _, sysctl in ipairs(asked_by(pod)) do
    local name = names.with_dots(sysctl.name)
    if name:find("net.", 1, true) == 1 then
      lines[#lines + 1] = ("%s=%s\n"):format(name:gsub("%.", "/"), (sysctl.value:gsub("%c", " ")))
    end
  end
  return table.concat(lines)
end


return M
