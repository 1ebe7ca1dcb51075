-- One StatefulSet at a time in a cluster whose pods run nothing.
local testcluster = require "testcluster"

local M = setmetatable({}, { __index = testcluster })
M.__index = M

M.SETS = "/apis/apps/v1/namespaces/default/statefulsets"
M.SET = M.SETS .. "/web"


function M.new()
  return setmetatable(testcluster.new(), M)
end


--- The template of its pods, of an image "busybox:<version>".
function M.template(version)
  return {
    metadata = { labels = { app = "web" } },
    spec = { containers = { { name = "c", image = "busybox:" .. version } } },
  }
end


--- Makes the StatefulSet "web" of three pods. @param changes table|nil of its spec  @param annotations table|nil
function M:make(changes, annotations)
  local spec = {
    replicas = 3, serviceName = "web", selector = { matchLabels = { app = "web" } }, template = M.template(1),
  }
  for key, value in pairs(changes or {}) do
    spec[key] = value
  end
  self:must("POST", M.SETS, { metadata = { name = "web", annotations = annotations }, spec = spec })
  self:pass(5)
end


--- Changes its spec.
function M:set(changes)
  self:change(M.SET, { spec = changes })
  self:pass(10)
end


--- Gives its pods another image.
function M:roll_out(version)
  self:set { template = { spec = M.template(version).spec } }
end


function M:status()
  return self:must("GET", M.SET).status
end


--- The versions of the images of its pods, in order: "1 1 2".
function M:versions()
  local list = {}
  for i, pod in ipairs(self:pods()) do
    list[i] = pod.spec.containers[1].image:match "%d+$"
  end
  return table.concat(list, " ")
end


return M
