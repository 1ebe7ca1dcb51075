-- Webhooks on this machine: those of a host, with its flags and what a user does to have the API server call them; and
-- those of somebody else.
local Authority = require "spec.e2e.support.authority"
local api = require "spec.e2e.support.api"
local cjson = require "cjson.safe"
local host = require "spec.e2e.support.host"
local kubeconfig = require "spec.e2e.support.kubeconfig"
local kubectl = require "spec.e2e.support.kubectl"
local shell = require "spec.e2e.support.shell"
local wait = require "spec.e2e.support.wait"

local M = {}

--- Starts a server of somebody else: webhook_server.lua, whose answer depends on the path of the URL.
---@param name string of its files
---@return table server authority (of its certificate), files, port, and stop()
function M.serve(name)
  local server = { authority = Authority.new(name), files = shell.path(name) }
  local files, pair = server.files, server.authority:sign()
  shell.write(files .. ".crt", pair.certificate)
  shell.write(files .. ".key", pair.key)
  local pid = shell.must(("lua5.4 spec/e2e/support/webhook_server.lua %s >%s.log 2>&1 & echo $!"):format(files, files))
  function server.stop()
    shell.run("kill " .. pid)
  end
  server.port = wait.till("the webhook's server", 10, function()
    return tonumber(shell.read(files .. ".port") or ""), shell.read(files .. ".log")
  end)
  return server
end


--- The flags of a host that serves them, with its certificate in a Secret of the namespace.
---@param ns string
---@param ... string more flags
---@return string[]
function M.flags(ns, ...)
  return {
    "--webhook-bind-address", "127.0.0.1:0", "--webhook-url", "https://127.0.0.1", "--webhook-namespace", ns, ...,
  }
end


--- A kubeconfig of a service account with the rights that `moonloop rbac` prints for a script, and no others.
---@param definition table that of its kind
---@param script string path
---@param ns string
---@return string path
function M.restricted(definition, script, ns)
  local crd, rights = shell.path "crd.json", shell.path "rights.yaml"
  definition.apiVersion, definition.kind = "apiextensions.k8s.io/v1", "CustomResourceDefinition"
  shell.write(crd, cjson.encode(definition))
  local printed = host.command {
    "rbac", script, "--crds", crd, "--service-account", ns .. "/moonloop", "--webhook-bind-address", "127.0.0.1:0",
  }
  assert(printed.code == 0, printed.err)
  shell.write(rights, printed.out)
  kubectl.run("apply", "-f", rights)
  local token = kubectl.run("create", "token", "moonloop", "--namespace", ns):match "%S+"
  return kubeconfig.write { user = { token = token } }
end


--- Prints the manifests of a script, and applies them. Returns the port that the host serves on.
---@param moonloop table from host.start
---@param script string path
---@param crds string? path of the definitions of its kinds; without, only their conversion is applied
---@return integer
function M.register(moonloop, script, crds)
  local port = math.tointeger(moonloop:till_log({ msg = "serving webhooks" }).webhook_port)
  local printed = host.command {
    "manifests", script, "--no-rights", "--webhook-url", "https://127.0.0.1:" .. port,
    table.unpack(crds and { "--crds", crds } or {}),
  }
  assert(printed.code == 0, printed.err)
  local path = shell.path "manifests.yaml"
  shell.write(path, printed.out)
  if crds then
    kubectl.run("apply", "-f", path)
  else
    kubectl.run("apply", "--server-side", "--force-conflicts", "-f", path)
  end
  return port
end


local CALLING = { "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "CustomResourceDefinition" }

--- Waits until the host has written whom to trust into an object of each of these kinds; of all that call us, if none
--- is named.
function M.till_trusted(moonloop, ...)
  for _, kind in ipairs(... and { ... } or CALLING) do
    moonloop:till_log({ msg = "caBundle was written", kind = kind }, 20)
  end
end


--- Deletes the configurations of a controller.
function M.forget(controller)
  for _, kind in ipairs { "mutating", "validating" } do
    api.request("DELETE", ("/apis/admissionregistration.k8s.io/v1/%swebhookconfigurations/moonloop-%s"):format(kind,
      controller))
  end
end


return M
