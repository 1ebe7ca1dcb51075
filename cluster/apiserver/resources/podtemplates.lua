--- Templates of pods as objects of their own.
---
--- Rules: kubernetes/pkg/registry/core/podtemplate/strategy.go.
local defaults = require "cluster.apiserver.resources.pod.defaults"
local template = require "cluster.apiserver.resources.pod.template"
local text = require "cluster.apiserver.tables.text"


local function validate(object)
  local errors = {}
  template.validate(object.template, "template", errors)
  return errors
end


local function cells(obj)
  local names, images = text.containers(obj.template and obj.template.spec)
  local metadata = obj.template and obj.template.metadata or {}
  return { obj.metadata.name, names, images, text.labels(metadata.labels) }
end


return {
  defaults = function(object)
    defaults.spec(object.template.spec)
  end,
  validate = validate,
  validate_update = validate,
  cells = cells,
}
