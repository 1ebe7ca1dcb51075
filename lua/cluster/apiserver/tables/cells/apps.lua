--- Cells of the kinds of apps.
---
--- Each function takes an object and the time (seconds since 1970) and returns the cells in the order of
--- kinds.lua. Rules: kubernetes/pkg/printers/internalversion/printers.go.
local age = require "cluster.apiserver.tables.age"
local text = require "cluster.apiserver.tables.text"

local M = {}


function M.Deployment(obj, now)
  local spec, status = obj.spec, obj.status or {}
  local names, images = text.containers(spec.template.spec)
  return {
    obj.metadata.name, ("%d/%d"):format(status.readyReplicas or 0, spec.replicas or 0), status.updatedReplicas or 0,
    status.availableReplicas or 0, age.of(obj, now), names, images, text.selector(spec.selector, ""),
  }
end


function M.ReplicaSet(obj, now)
  local spec, status = obj.spec, obj.status or {}
  local names, images = text.containers(spec.template and spec.template.spec)
  return {
    obj.metadata.name, spec.replicas or 0, status.replicas or 0, status.readyReplicas or 0, age.of(obj, now),
    names, images, text.selector(spec.selector),
  }
end


function M.StatefulSet(obj, now)
  local spec, status = obj.spec, obj.status or {}
  local names, images = text.containers(spec.template.spec)
  return {
    obj.metadata.name, ("%d/%d"):format(status.readyReplicas or 0, spec.replicas or 0), age.of(obj, now), names, images,
  }
end


-- "deployment.apps/web" of the owner that controls, or "<none>".
local function controller_of(obj)
  for _, owner in ipairs(obj.metadata.ownerReferences or {}) do
    if owner.controller == true then
      local group = owner.apiVersion:match("^(.*)/")
      return (owner.kind .. (group and "." .. group or "")):lower() .. "/" .. owner.name
    end
  end
  return "<none>"
end


function M.ControllerRevision(obj, now)
  return { obj.metadata.name, controller_of(obj), obj.revision, age.of(obj, now) }
end


return M
