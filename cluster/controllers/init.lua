--- The controllers of kube-controller-manager that are useful here, and those of kube-apiserver.
local later = require "cluster.later"
local persistentvolume_folders = later.module "cluster.controllers.persistentvolume_folders"
local persistentvolume = later.module "cluster.controllers.persistentvolume"

local M = {}

local NAMES = {
  "deployment", "replicaset", "statefulset", "job", "cronjob", "daemonset", "horizontalpodautoscaler", "disruption",
  "endpoints", "endpointslice", "endpointslice_mirroring", "resourcequota", "certificates", "admissionpolicy",
  "tainteviction",
}

-- The names of the ones that run in kube-apiserver.
local OF_SERVER = { "flowschema", "apiservice" }


local function start_all(server, names)
  for _, name in ipairs(names) do
    require("cluster.controllers." .. name).start(server)
  end
end


--- Starts only those that an API server has without a kube-controller-manager, on a server that answers.
function M.start_of_server(server)
  start_all(server, OF_SERVER)
end


--- Starts them all on a server that answers.
--- @param folders table|nil where volumes are: see persistentvolume_folders.open; nil: nowhere, as nothing uses them
function M.start(server, folders)
  M.start_of_server(server)
  start_all(server, NAMES)
  persistentvolume.start(server, folders or persistentvolume_folders.nowhere())
end


return M
