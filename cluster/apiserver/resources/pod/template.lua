--- Templates of pods within other kinds.
---
--- Rules: kubernetes/pkg/apis/core/validation/validation.go (ValidatePodTemplateSpec).
local field = require "cluster.apiserver.field"
local metadata = require "cluster.apiserver.metadata"
local spec = require "cluster.apiserver.resources.pod.spec"

local M = {}


--- Checks a template under `path` and adds what is wrong with it to `errors`.
function M.validate(template, path, errors)
  metadata.check_labels(template.metadata.labels, path .. ".labels", errors)
  spec.validate(template.spec, path .. ".spec", errors, nil)
  if template.spec.ephemeralContainers then
    errors[#errors + 1] = field.forbidden(path .. ".spec.ephemeralContainers",
      "ephemeral containers not allowed in pod template")
  end
end


return M
