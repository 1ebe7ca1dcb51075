--- Where a kubeconfig file's current context leads.
local files = require "cluster.spec.conformance.lib.files"
local host = require "cluster.host"

local M = {}


local function named(list, name, field)
  for _, entry in ipairs(list or {}) do
    if entry.name == name then
      return entry[field]
    end
  end
  error(("the kubeconfig has no %s %s"):format(field, name), 0)
end


--- Reads the file.
---@return table { server =, ca = PEM text, token = } token may be nil
function M.read(path)
  local text = assert(files.read(path), "cannot read " .. path)
  local config = assert(host.yaml.decode(text))[1]
  local context = named(config.contexts, config["current-context"], "context")
  local cluster = named(config.clusters, context.cluster, "cluster")
  local user = named(config.users, context.user, "user")
  local ca = cluster["certificate-authority-data"]
  return {
    server = cluster.server:gsub("/$", ""),
    ca = ca and assert(host.base64.decode(ca)) or files.read(cluster["certificate-authority"] or "") or "",
    token = user.token,
  }
end


return M
