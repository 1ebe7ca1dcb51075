--- The controllers of kube-controller-manager that are useful here.
local claims = require "cluster.controllers.claims"
local claims_volumes = require "cluster.controllers.claims_volumes"

local M = {}

local NAMES = {
  "deployment", "replicaset", "statefulset", "job", "cronjob", "daemonset", "autoscaler", "flowschema", "disruption",
  "apiservice", "endpoints", "resourcequota", "certificates", "admissionpolicy",
}


--- Starts them all on a server that answers.
--- @param folders table|nil where volumes are: see claims_volumes.open; nil: nowhere, as nothing runs that uses them
function M.start(server, folders)
  for _, name in ipairs(NAMES) do
    require("cluster.controllers." .. name).start(server)
  end
  claims.start(server, folders or claims_volumes.nowhere())
end


return M
