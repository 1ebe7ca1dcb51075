--- /healthz, /livez and /readyz.
---
--- Rules: apiserver/pkg/server/healthz/healthz.go.
local respond = require "cluster.apiserver.respond"

local M = {}

-- The checks that this server can speak of. Others of a real one watch over things that are not here.
local CHECKS = {
  healthz = { "ping", "log", "etcd" },
  livez = { "ping", "log", "etcd" },
  readyz = { "ping", "log", "etcd", "etcd-readiness", "informer-sync", "shutdown" },
}


local function is_one_of(list, name)
  for _, item in ipairs(list) do
    if item == name then
      return true
    end
  end
  return false
end


local function quoted(names)
  local list = {}
  for i, name in ipairs(names) do
    list[i] = '"' .. name .. '"'
  end
  return table.concat(list, ", ")
end


local function verbose(checks, kind, excluded)
  local lines, unknown = {}, {}
  for _, check in ipairs(checks) do
    lines[#lines + 1] = "[+]" .. check .. (is_one_of(excluded, check) and " excluded: ok" or " ok")
  end
  for _, name in ipairs(excluded) do
    if not is_one_of(checks, name) then
      unknown[#unknown + 1] = name
    end
  end
  if #unknown > 0 then
    lines[#lines + 1] = "warn: some health checks cannot be excluded: no matches for " .. quoted(unknown)
  end
  lines[#lines + 1] = kind .. " check passed\n"
  return table.concat(lines, "\n")
end


--- Answers one of them, or one of their checks: /livez/ping.
function M.serve(request, reply)
  local kind, check = request.parts[1], request.parts[2]
  if check then
    if request.parts[3] or not is_one_of(CHECKS[kind], check) then
      return respond.plain(reply, 404, "404 page not found\n")
    end
    return reply:send(200, "text/plain; charset=utf-8", "ok")
  end
  if not request.query.verbose then
    return respond.plain(reply, 200, "ok")
  end
  respond.plain(reply, 200, verbose(CHECKS[kind], kind, request.query.exclude or {}))
end


return M
