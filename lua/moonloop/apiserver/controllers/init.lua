--- The controllers that a cluster's kube-controller-manager has and that are of use here.
local M = {}

local NAMES = { "deployment", "replicaset", "statefulset", "job", "endpoints" }


--- Starts them all on a server that answers.
function M.start(server)
  for _, name in ipairs(NAMES) do
    require("moonloop.apiserver.controllers." .. name).start(server)
  end
end


return M
