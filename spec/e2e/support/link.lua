-- A network on the other side of a link that can lose every packet: no reset, no end, no answer. Processes that run
-- `under` it reach a server of this machine through the link alone.
--
--   this machine            network "far"                     network "near"
--   server 127.0.0.1:PORT   relay at 10.255.1.1:6443, veth    veth, processes of the spec
--
-- While the link is cut, "far" has no address 10.255.1.1: it drops what is sent there, and sends nothing from there.
local dev = require "spec.host.support.dev"
local kubeconfig = require "spec.e2e.support.kubeconfig"
local shell = require "spec.e2e.support.shell"
local socket = require "socket"
local wait = require "spec.e2e.support.wait"

local M = {}
M.__index = M

--- Why there can be no link on this machine; nil where there can.
M.lacks = dev.no_namespaces
  or select(2, shell.run "unshare -Urn ip link add near type veth peer name far 2>/dev/null") ~= 0
  and "this machine has no pairs of virtual network interfaces" or nil

M.FAR, M.NEAR = "10.255.1.1", "10.255.0.1"

local function inside(pid, command)
  return ("nsenter --preserve-credentials -U -n -t %d %s"):format(pid, command)
end


-- A process that does nothing, in a network of its own.
local function hold(unshare)
  local pid = math.tointeger(tonumber(shell.must(unshare .. " sleep 1000 >/dev/null 2>&1 & echo $!")))
  local own = shell.must "readlink /proc/self/ns/net"
  wait.till("a network", 10, function()
    local name, code = shell.run(("test $(cat /proc/%d/comm) = sleep && readlink /proc/%d/ns/net"):format(pid, pid))
    return code == 0 and name ~= own
  end)
  return pid
end


local program

-- Passes on from the port of an address, in the network of a process or 0, to another.
local function relay(self, ...)
  if not program then
    program = shell.path "relay"
    shell.must(shell.line { "cc", "-O1", "-o", program, "spec/e2e/fixtures/relay.c" })
  end
  local log = shell.path "relay.log"
  local pid = math.tointeger(tonumber(shell.must(("%s >%s 2>&1 & echo $!"):format(
    shell.line { program, ... }, shell.quote(log)))))
  self.groups[#self.groups + 1] = pid
  wait.till("a relay", 10, function() return (shell.read(log) or ""):find "ready", shell.read(log) end)
  return pid
end


--- A link to the server of a kubeconfig: `kubeconfig` is a file that goes through it, for a process that runs `under`.
---@param path string
function M.open(path)
  local self = setmetatable({ groups = {} }, M)
  self.far = hold "unshare -Urn"
  self.near = hold(inside(self.far, "unshare -n"))
  self.under = inside(self.near, "")
  shell.must(inside(self.far, shell.line { "sh", "-ec", ([[
    ip link add far type veth peer name near netns %d
    ip link set lo up
    ip address add 10.255.0.2/30 dev far
    ip link set far up
    ip address add %s/32 dev lo]]):format(self.near, M.FAR) }))
  shell.must(inside(self.near, shell.line { "sh", "-ec", ([[
    ip link set lo up
    ip address add %s/30 dev near
    ip link set near up
    ip route add %s via 10.255.0.2]]):format(M.NEAR, M.FAR) }))
  local port = kubeconfig.server(path):match ":(%d+)$"
  self.server = relay(self, self.far, M.FAR, 6443, 0, "127.0.0.1", port)
  self.kubeconfig = path .. ".link"
  shell.write(self.kubeconfig, (shell.read(path):gsub("https://127%.0%.0%.1:%d+",
    ("https://%s:6443\n    tls-server-name: localhost"):format(M.FAR))))
  return self
end


--- Makes the endpoints of a host that runs `under` the link reachable from here, whatever becomes of the link.
function M:attach(moonloop)
  local port = math.tointeger(moonloop:till_log({ msg = "serving" }, 10).health_port)
  local listener = assert(socket.bind("127.0.0.1", 0))
  local _, free = listener:getsockname()
  listener:close()
  relay(self, 0, "127.0.0.1", free, self.near, "127.0.0.1", port)
  moonloop.port = math.tointeger(tonumber(free))
  return moonloop
end


--- Starts a shell line on the other side of the link, where clients of a host are that are lost with it.
function M:start_at_far(line)
  self.groups[#self.groups + 1] = math.tointeger(tonumber(shell.must(("setsid %s >/dev/null 2>&1 & echo $!"):format(
    inside(self.far, shell.line { "sh", "-c", line })))))
end


--- From now on no packet passes.
function M:cut()
  shell.must(inside(self.far, ("ip address del %s/32 dev lo"):format(M.FAR)))
end


function M:mend()
  shell.must(inside(self.far, ("ip address add %s/32 dev lo"):format(M.FAR)))
end


--- The proxy in between hangs: connections stay, are even accepted, and what is sent is acknowledged; nothing comes.
function M:hang()
  shell.must(("kill -STOP -%d"):format(self.server))
end


function M:go_on()
  shell.must(("kill -CONT -%d"):format(self.server))
end


function M:close()
  for _, pid in ipairs(self.groups) do
    shell.run(("kill -KILL -%d 2>/dev/null"):format(pid))
  end
  shell.run(("kill -KILL %d %d 2>/dev/null"):format(self.near, self.far))
end


return M
