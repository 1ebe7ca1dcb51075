-- Kubeconfig files of other shapes than the one that run.sh hands over.
local cjson = require "cjson.safe"
local kubectl = require "spec.e2e.support.kubectl"
local mime = require "mime"
local shell = require "spec.e2e.support.shell"

local M = {}

--- The cluster of $KUBECONFIG, with its data inline, as `kubectl config view` knows it.
local function current()
  return cjson.decode(kubectl.run("config", "view", "--raw", "--flatten", "--minify", "--output", "json"))
end


--- Writes a kubeconfig with one cluster, user and context called "it"; returns its path. JSON is
--- YAML too.
---@param parts { user?: table, cluster?: table, context?: string|false }
function M.write(parts)
  local now = current()
  local path = shell.path "kubeconfig"
  shell.write(path, cjson.encode {
    apiVersion = "v1",
    kind = "Config",
    clusters = { { name = "it", cluster = parts.cluster or now.clusters[1].cluster } },
    users = { { name = "it", user = parts.user or now.users[1].user } },
    contexts = { { name = parts.context or "it", context = { cluster = "it", user = "it" } } },
    ["current-context"] = parts.context == nil and "it" or nil,
  })
  return path
end


--- Writes a kubeconfig in two files, which are complete only together: the cluster with its context, and the user.
--- Returns the list as $KUBECONFIG takes it.
function M.write_two()
  local now = current()
  local one, two = shell.path "kubeconfig-cluster", shell.path "kubeconfig-user"
  shell.write(one, cjson.encode {
    apiVersion = "v1",
    kind = "Config",
    clusters = { { name = "it", cluster = now.clusters[1].cluster } },
    contexts = { { name = "it", context = { cluster = "it", user = "it" } } },
    ["current-context"] = "it",
  })
  shell.write(two, cjson.encode {
    apiVersion = "v1",
    kind = "Config",
    users = { { name = "it", user = now.users[1].user } },
  })
  return one .. ":" .. two
end


--- The URL of the server, or of that of another kubeconfig.
---@param path string?
function M.server(path)
  return kubectl.run("config", "view", "--minify", "--output", "jsonpath={.clusters[0].cluster.server}",
    path and "--kubeconfig=" .. path)
end


--- The certificate of the server's authority, as text.
function M.authority()
  return (mime.unb64(current().clusters[1].cluster["certificate-authority-data"]))
end


--- The token of the current user; nil when it has none.
function M.token()
  return current().users[1].user.token
end


return M
