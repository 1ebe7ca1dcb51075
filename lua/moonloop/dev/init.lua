--- What `moonloop dev` has in Lua, beside the embedded API server in the same state: controllers, the node that runs
--- pods, what was given with --apply, and the story of it all for the terminal.
---
--- The C side (host/run/dev.c) calls these with JSON.
local apply = require "moonloop.dev.apply"
local audit_log = require "moonloop.dev.audit_log"
local controllers = require "moonloop.apiserver.controllers"
local kubelet = require "moonloop.apiserver.kubelet"
local logs = require "moonloop.apiserver.kubelet.logs"
local narrator = require "moonloop.dev.narrator"
local server = require "moonloop.apiserver.running"

local M = {}

local node


-- What runs containers, and where their logs are.
local function open_runtime(settings)
  if settings.pods == "fake" then
    return require("moonloop.apiserver.kubelet.fake").new()
  end
  local kept = logs.new(settings.directory, narrator.heard)
  return require("moonloop.apiserver.kubelet.process").new { directory = settings.directory, logs = kept }, kept
end


--- @param settings table { pods = "process" | "fake" | "none", directory = an existing folder of its own, ca = PEM,
---   audit_log = a file, or nil }
function M.start(settings)
  server.settings.ca = settings.ca
  if settings.audit_log then
    audit_log.start(server, settings.audit_log)
  end
  narrator.start(server)
  apply.start(server)
  controllers.start(server)
  if settings.pods ~= "none" then
    local runtime, kept = open_runtime(settings)
    node = kubelet.new(server, { runtime = runtime, logs = kept })
    node:start()
  end
end


--- Applies what is new or has changed in the manifests of one --apply.
--- @param given table { path =, files = { { name =, text = }, … } }
function M.apply(given)
  apply.files(server, given.path, given.files)
end


--- How many manifests are not applied because something is wrong with them.
M.failed = apply.failed


--- Whether pods are on their way to an end, or to their start, or something is still to be applied.
function M.is_busy()
  local is_busy = apply.is_busy()
  server.store:collection("pods"):each(nil, nil, function(entry)
    local phase = entry.fields["status.phase"]
    local runs_to_an_end = phase == "Running" and entry.fields["spec.restartPolicy"] ~= "Always"
    is_busy = is_busy or node ~= nil and (entry.deleting or phase == "Pending" or runs_to_an_end)
    return not is_busy
  end)
  return is_busy
end


--- Kills what runs, and writes out what is kept.
function M.stop()
  if node then
    node:stop()
  end
  server:close()
end


return M
