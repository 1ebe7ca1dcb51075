--- The controllers of kube-controller-manager that are useful here.
local persistentvolume_folders = require "cluster.controllers.persistentvolume_folders"
local persistentvolume = require "cluster.controllers.persistentvolume"

local M = {}

local NAMES = {
  "deployment", "replicaset", "statefulset", "job", "cronjob", "daemonset", "horizontalpodautoscaler", "flowschema",
  "disruption", "apiservice", "endpoints", "endpointslice", "endpointslice_mirroring", "resourcequota", "certificates",
  "admissionpolicy", "tainteviction",
}


--- Starts them all on a server that answers.
--- @param folders table|nil where volumes are: see persistentvolume_folders.open; nil: nowhere, as nothing uses them
function M.start(server, folders)
  for _, name in ipairs(NAMES) do
    require("cluster.controllers." .. name).start(server)
  end
  persistentvolume.start(server, folders or persistentvolume_folders.nowhere())
end


return M
