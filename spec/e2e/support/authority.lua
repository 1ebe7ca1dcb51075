-- Authorities of a spec's own, and certificates of theirs.
local shell = require "spec.e2e.support.shell"

local M = {}
M.__index = M

local REQUEST = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 "

--- A new one. `certificate` is its own, as text.
---@param name string
function M.new(name)
  local self = setmetatable({ files = shell.path "authority" }, M)
  shell.must((REQUEST .. "-subj /CN=%s -keyout %s.key -out %s.crt"):format(name, self.files, self.files))
  self.certificate = shell.read(self.files .. ".crt")
  return self
end


--- A certificate for a server.
---@param names string? "DNS:api.test"; left out: IP:127.0.0.1
---@return { certificate: string, key: string } pair as texts
function M:sign(names)
  local path, own = shell.path "server", self.files
  shell.must((REQUEST .. "-subj /CN=server -addext subjectAltName=%s -CA %s.crt -CAkey %s.key -keyout %s.key "
    .. "-out %s.crt"):format(names or "IP:127.0.0.1", own, own, path, path))
  return { certificate = shell.read(path .. ".crt"), key = shell.read(path .. ".key") }
end


return M
