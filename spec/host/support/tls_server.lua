-- A TLS server that is no API server: openssl s_server, with a certificate of its own.
local mime = require "mime"
local shell = require "spec.e2e.support.shell"
local wait = require "spec.e2e.support.wait"

local M = {}
M.__index = M

--- Starts one that answers GET with the files of its folder, and any other path with an HTML page.
---@param files table<string, string>? content by name; nil: an HTML page for everything
function M.start(files)
  local folder = shell.folder "tls-server"
  for name, text in pairs(files or {}) do
    shell.write(folder .. "/" .. name, text)
  end
  shell.must(([[cd %s &&
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost \
      -addext subjectAltName=IP:127.0.0.1 -keyout server.key -out server.crt 2>/dev/null
    openssl s_server -accept 127.0.0.1:0 -cert server.crt -key server.key %s </dev/null >server.log 2>&1 &
    echo $! >server.pid]]):format(shell.quote(folder), files and "-WWW" or "-www"))
  local self = setmetatable({ folder = folder, certificate = folder .. "/server.crt" }, M)
  self.port = wait.till("openssl s_server", 10, function()
    local log = shell.read(folder .. "/server.log") or ""
    return log:match "ACCEPT 127%.0%.0%.1:(%d+)", log
  end)
  return self
end


--- Its certificate, as a kubeconfig takes it.
function M:certificate_data()
  return (mime.b64(shell.read(self.certificate)))
end


--- Ends it.
function M:stop()
  shell.run("kill " .. shell.read(self.folder .. "/server.pid"))
end


return M
