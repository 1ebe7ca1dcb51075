--- Templates of pods as objects of their own.
---
--- Rules: kubernetes/pkg/registry/core/podtemplate/strategy.go.
local defaults = require "cluster.apiserver.resources.pod.defaults"
local describe = require "cluster.apiserver.resources.describe"
local template = require "cluster.apiserver.resources.pod.template"


local function validate(object)
  local errors = {}
  template.validate(object.template, "template", errors)
  return errors
end


return describe.kind {
  plural = "podtemplates", kind = "PodTemplate",
  strategy = {
    defaults = function(object)
      defaults.spec(object.template.spec)
    end,
    validate = validate,
    validate_update = validate,
  },
}
