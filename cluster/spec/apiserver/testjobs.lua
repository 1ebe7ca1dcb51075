-- One Job at a time in a cluster whose pods run nothing.
local testcluster = require "testcluster"

local M = setmetatable({}, { __index = testcluster })
M.__index = M

M.JOBS = "/apis/batch/v1/namespaces/default/jobs"
M.JOB = M.JOBS .. "/work"


--- A cluster. cluster.outcome(pod) says how its container ends; else the container runs until it is told to end.
function M.new()
  local self
  self = setmetatable(testcluster.new(function(pod)
    return self.outcome and self.outcome(pod)
  end), M)
  return self
end


--- From now on containers end with that code, after so many seconds.
function M:all_end(code, after)
  self.outcome = function()
    return { after = after, code = code }
  end
end


--- Makes the Job "work". @param changes table|nil of its spec  @param policy string|nil restartPolicy of its pods
function M:make(changes, policy)
  local spec = {
    template = {
      metadata = { labels = { app = "work" } },
      spec = { restartPolicy = policy or "Never", containers = { { name = "c", image = "busybox:1" } } },
    },
  }
  for key, value in pairs(changes or {}) do
    spec[key] = value
  end
  self:must("POST", M.JOBS, { metadata = { name = "work" }, spec = spec })
  self:pass(1)
end


function M:job()
  return self:must("GET", M.JOB)
end


--- Ends the first pods that run, with that exit code.
function M:finish(count, code)
  for _, pod in ipairs(self:pods()) do
    if count > 0 and self.runtime:finish(pod, code) > 0 then
      count = count - 1
    end
  end
  assert(count == 0, "not so many pods run")
  self:pass(1)
end


--- The conditions of the Job that are true, in order.
function M:truths()
  local list = {}
  for _, condition in ipairs(self:job().status.conditions or {}) do
    list[#list + 1] = condition.status == "True" and condition.type or nil
  end
  return list
end


--- The counts of the Job's status.
function M:counts()
  local status = self:job().status
  return { active = status.active or 0, succeeded = status.succeeded or 0, failed = status.failed or 0 }
end


return M
