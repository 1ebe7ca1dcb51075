--- The controllers of kube-controller-manager that are useful here.
local claims = require "cluster.apiserver.controllers.claims"

local M = {}

local NAMES = {
  "deployment", "replicaset", "statefulset", "job", "cronjob", "daemonset", "autoscaler", "flowschema", "disruption",
  "apiservice", "endpoints", "resourcequota", "certificates", "admissionpolicy",
}
local NOWHERE = "/var/lib/moonloop/volumes"


--- Starts them all on a server that answers.
--- @param options table|nil { volumes = the folder in which volumes are made, remove = function(path) for one of them }
function M.start(server, options)
  options = options or {}
  for _, name in ipairs(NAMES) do
    require("cluster.apiserver.controllers." .. name).start(server)
  end
  claims.start(server, { folder = options.volumes or NOWHERE, remove = options.remove or function() end })
end


return M
