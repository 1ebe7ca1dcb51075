-- Which version of cnat is at work? Its next pod tells by its image.
local cluster = require "spec.e2e.support.cluster"
local wait = require "spec.e2e.support.wait"

local M = {}

local function run(ns)
  local name = cluster.unique "probe"
  cluster.at(ns, name, cluster.PAST)
  return cluster.till_pod(ns, name .. "-pod", 5).spec.containers[1].image, name
end


--- Has an At run to its end; returns the image of its pod.
function M.image(ns)
  local image, name = run(ns)
  cluster.till_phase(ns, name, "DONE")
  return image
end


--- Has Ats run until a pod has that image; returns the seconds until then.
function M.till_image(ns, image)
  local begun = wait.now()
  wait.till("a pod with the image " .. image, 10, function()
    local is = run(ns)
    return is == image, is
  end)
  return wait.now() - begun
end


return M
