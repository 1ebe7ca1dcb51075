-- A server for specs with its controllers, and a kubelet whose pods run nothing.
local controllers = require "cluster.controllers"
local fake_runtime = require "cluster.kubelet.fake_runtime"
local kubelet = require "cluster.kubelet"
local testserver = require "testserver"

local M = setmetatable({}, { __index = testserver })
M.__index = M

M.PODS = "/api/v1/namespaces/default/pods"


-- Containers whose image is cluster.missing_image do not start; when cluster.is_deaf, others do not end when told to.
local function hamper(self)
  local start = self.runtime.start
  function self.runtime.start(runtime, run)
    if run.container.image == self.missing_image then
      return nil, "ErrImagePull", "there is no such image"
    end
    local handle = start(runtime, run)
    if self.is_deaf then
      function handle.stop() end -- runtime:finish ends it
    end
    return handle
  end
end


--- @param decide function|nil (pod, container) -> what becomes of it, see fake.new; nil: all run until told to end
--- @param folders table|nil that of controllers.start
--- @param max_pods integer|nil how many the node takes; nil: any number
function M.new(decide, folders, max_pods)
  local self = setmetatable(testserver.new(), M)
  controllers.start(self.server, folders)
  self.runtime = fake_runtime.new(decide or function() end)
  hamper(self)
  kubelet.new(self.server, { runtime = self.runtime, max_pods = max_pods }):start()
  self.settle()
  return self
end


--- Lets seconds pass one by one, so that what follows from a change has its own time.
function M:pass(seconds)
  self.settle()
  for _ = 1, seconds do
    testserver.pass(self, 1)
  end
end


--- The pods there are, in the order of their names.
function M:pods()
  return self:must("GET", M.PODS).items
end


function M:pod(name)
  return self:must("GET", M.PODS .. "/" .. name)
end


--- Names of the pods that are not about to go.
function M:present()
  local names = {}
  for _, pod in ipairs(self:pods()) do
    if not pod.metadata.deletionTimestamp then
      names[#names + 1] = pod.metadata.name
    end
  end
  return names
end


--- The condition of a type, or nil.
function M.condition(object, type)
  for _, condition in ipairs((object.status or {}).conditions or {}) do
    if condition.type == type then
      return condition
    end
  end
end


--- A merge patch that has to succeed.
function M:change(path, patch)
  local code, answer = self:patch("merge", path, patch)
  assert(code == 200, answer.message)
  return answer
end


--- Records what happens to the pods from now on: "+name" for a new one, "ready name", "-name" for a deleted one.
--- @return table the list, in order; it grows
function M:record()
  local list, was_ready, res = {}, {}, self.server.registry:find("", "v1", "pods")
  self.server.store:subscribe(function(event)
    if event.id ~= "pods" then
      return
    end
    local name = event.entry.name
    local ready = M.condition(self.server.store.object(res, event.entry), "Ready")
    if event.type == "ADDED" then
      list[#list + 1], was_ready[name] = "+" .. name, false
    elseif event.entry.deleting and not (event.previous and event.previous.deleting) then
      list[#list + 1] = "-" .. name
    elseif ready and ready.status == "True" and not was_ready[name] then
      list[#list + 1], was_ready[name] = "ready " .. name, true
    end
  end)
  return list
end


--- Messages of the Events with this reason on an object, in the order they came.
function M:messages(name, reason)
  local messages = {}
  for _, event in ipairs(self:must("GET", "/api/v1/namespaces/default/events").items) do
    if event.involvedObject.name == name and event.reason == reason then
      messages[#messages + 1] = event.message
    end
  end
  return messages
end


return M
