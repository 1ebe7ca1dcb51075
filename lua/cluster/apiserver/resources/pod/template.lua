--- Templates of pods within other kinds.
---
--- Rules: kubernetes/pkg/apis/core/validation/validation.go (ValidatePodTemplateSpec).
local field = require "cluster.apiserver.field"
local metadata = require "cluster.apiserver.metadata"
local spec = require "cluster.apiserver.resources.pod.spec"

local M = {}


--- What is wrong with a template under `path` goes to `errors`.
function M.validate(template, path, errors)
  metadata.check_labels(template.metadata.labels, path .. ".labels", errors)
  spec.validate(template.spec, path .. ".spec", errors, nil)
  if template.spec.ephemeralContainers then
    errors[#errors + 1] = field.forbidden(path .. ".spec.ephemeralContainers",
      "ephemeral containers not allowed in pod template")
  end
end


return M
