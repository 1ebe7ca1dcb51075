--- The pods of a world: none runs a process, each does what the test sets.
local fake_runtime = require "cluster.kubelet.fake_runtime"
local kubelet = require "cluster.kubelet"

local M = {}

local POD = { apiVersion = "v1", kind = "Pod" }
local CODES = { Succeeded = 0, Failed = 1 }

local HABITS = {
  run = function() return nil end,
  succeed = function() return { after = 0, code = 0 } end,
  fail = function() return { after = 0, code = 1 } end,
}


function M.add(world, server, habit, guard, settle)
  local decide = type(habit) == "function" and habit or HABITS[habit]
  local runtime = fake_runtime.new(decide)
  kubelet.new(server, { runtime = runtime }):start()

  --- Ends a pod that runs. @param how string|integer|nil "Succeeded" (default), "Failed", or an exit code
  function world.finish_pod(name, how, namespace)
    guard()
    local code = how == nil and 0 or CODES[how] or how
    local pod = world.get(POD, name, namespace)
    if not pod or runtime:finish(pod, code) == 0 then
      error(("finish_pod: no container of pod %s runs"):format(name), 0)
    end
    settle()
  end
end


return M
