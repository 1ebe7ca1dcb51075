-- The proxy that injects faults between the host and the API server; its rules are those of
-- controlplane/README.md. Only before the servers that run.sh started.
local cjson = require "cjson.safe"
local cluster = require "spec.e2e.support.cluster"
local http = require "spec.e2e.support.http"
local kubeconfig = require "spec.e2e.support.kubeconfig"
local shell = require "spec.e2e.support.shell"

local M = {}
M.__index = M

local folder = os.getenv "E2E_PROXIES"

--- Is there a server to put one before?
M.available = folder ~= nil and folder ~= ""

--- The proxy of that name, without rules; started when it is not running. `url` is where it is, and `kubeconfig` a
--- file that goes there.
---@param name string
function M.open(name)
  local admin = folder .. "/" .. name .. ".admin"
  if not shell.read(admin) then
    shell.must(shell.line { "spec/e2e/controlplane/controlplane.sh", "proxy", folder, name, cluster.kubeconfig })
  end
  local self = setmetatable({
    files = folder .. "/" .. name,
    admin = shell.read(admin):gsub("%s+$", ""),
    kubeconfig = folder .. "/" .. name .. ".kubeconfig",
  }, M)
  self.url = kubeconfig.server(self.kubeconfig)
  self:clear()
  return self
end


local function ask(self, method, path, body)
  local text, code = http.request { method = method, url = self.admin .. path, body = body and cjson.encode(body) }
  if not text or code >= 300 then
    error(("proxy: %s %s: %s %s"):format(method, path, code, text), 3)
  end
  return cjson.decode(text)
end


--- Adds rules behind those there are.
---@param rules table[]
function M:add(rules)
  ask(self, "POST", "/rules", rules)
end


--- No more faults, connections accepted, the log empty.
function M:clear()
  ask(self, "DELETE", "/rules")
  ask(self, "DELETE", "/log")
  ask(self, "POST", "/up")
end


--- How often the rule of that name befell a request.
function M:hits(name)
  for _, rule in ipairs(ask(self, "GET", "/rules")) do
    if rule.name == name then
      return rule.hits
    end
  end
  error("proxy: no rule " .. name, 2)
end


--- The requests seen, oldest first: { time, proto, method, path, status, rule }.
function M:log()
  return ask(self, "GET", "/log")
end


--- Refuses connections and cuts those that are open.
function M:down()
  ask(self, "POST", "/down")
end


--- Accepts connections again.
function M:up()
  ask(self, "POST", "/up")
end


--- Cuts the connections that are open, and shows new ones another certificate, for good: a spec that does so has a
--- proxy of its own.
---@param pair { certificate: string, key: string }
function M:show(pair)
  self:down()
  shell.write(self.files .. ".crt", pair.certificate)
  shell.write(self.files .. ".key", pair.key)
  self:up()
end


return M
