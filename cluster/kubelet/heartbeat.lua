--- The node's heartbeat: a Lease that is renewed every ten seconds, and every five minutes the times in the node's
--- conditions. A node that was deleted has none.
---
--- Nothing of it is kept in a data folder (Store:passing), and no webhook or policy is asked about it. Rules:
--- component-helpers/apimachinery/lease/controller.go, kubernetes/pkg/kubelet/{kubelet,kubelet_node_status}.go.
local host = require "cluster.host"

local M = {}
M.__index = M

local RENEW_SECONDS <const>, LEASE_SECONDS <const> = 10, 40
local RENEWALS <const> = 30 -- from one report of the conditions to the next
local LEASES <const> = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
local STRATEGIC <const> = "application/strategic-merge-patch+json"


function M:call(method, path, body, content_type)
  return self.server:call(method, path, body, {
    user = self.user, user_agent = "kubelet", content_type = content_type, skips_admission = true,
  })
end


local function write_lease(self, node)
  local path = LEASES .. "/" .. self.node
  local now = host.timestamp_micro()
  local code, lease = self:call("GET", path)
  if code == 200 then
    lease.spec = { holderIdentity = self.node, leaseDurationSeconds = LEASE_SECONDS, renewTime = now }
    return self:call("PUT", path, lease)
  end
  self:call("POST", LEASES, {
    apiVersion = "coordination.k8s.io/v1", kind = "Lease",
    metadata = { name = self.node, ownerReferences = host.json.array { {
      apiVersion = "v1", kind = "Node", name = self.node, uid = node.metadata.uid,
    } } },
    spec = { holderIdentity = self.node, leaseDurationSeconds = LEASE_SECONDS, renewTime = now },
  })
end


local function write_conditions(self, node)
  local conditions = host.json.array {}
  for i, condition in ipairs((node.status or {}).conditions or {}) do
    conditions[i] = { type = condition.type, lastHeartbeatTime = host.timestamp() }
  end
  self:call("PATCH", ("/api/v1/nodes/%s/status"):format(self.node), { status = { conditions = conditions } }, STRATEGIC)
end


local function beat(self)
  local code, node = self:call("GET", "/api/v1/nodes/" .. self.node)
  if code ~= 200 then
    return
  end
  write_lease(self, node)
  self.count = self.count + 1
  if self.count % RENEWALS == 0 then
    write_conditions(self, node)
  end
end


local function arm(self)
  self.timer = host.after(RENEW_SECONDS, function()
    arm(self)
    self.server.store:passing(function() beat(self) end)
  end)
end


--- Begins with the first one.
--- @param server table  @param node string its name  @param user table as auth has it: who writes
--- @return table with `stop`
function M.start(server, node, user)
  local self = setmetatable({ server = server, node = node, user = user, count = 0 }, M)
  server.store:passing(function() beat(self) end)
  arm(self)
  return self
end


--- Ends it.
function M:stop()
  self.timer:stop()
end


return M
