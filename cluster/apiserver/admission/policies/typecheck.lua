--- Checks the expressions of a ValidatingAdmissionPolicy against the types of what it matches and of its parameters.
--- Its errors go into the policy's status and do not change how the policy works. It checks the validations and their
--- messages, and the variables that these name.
---
--- Rules and wordings: apiserver/pkg/admission/plugin/policy/validating/typechecking.go,
--- apiserver/pkg/admission/plugin/cel/composition.go.
local cel = require "cluster.cel"
local cel_types = require "cluster.apiserver.openapi.cel_types"
local expressions = require "cluster.apiserver.admission.expressions"
local host = require "cluster.host"
local matched_kinds = require "cluster.apiserver.admission.policies.matched_kinds"
local store = require "cluster.apiserver.store"

local M = {}

local NONE = {}

-- Bytes of expressions that are checked, each counted once for each kind; and of the warnings.
local CHECKED_MAX, WARNINGS_MAX = 1024 * 1024, 1024 * 1024

-- Bytes that the rest of a policy takes: with the warnings it must not be larger than what is stored.
local OTHER_FIELDS = 32 * 1024

-- Types are told apart by their names.
local last_number = 100000000


local function new_type(res)
  last_number = last_number + 1
  return cel_types.of(res, res.kind .. last_number)
end


local function params_type(spec, registry)
  local kind = spec.paramKind
  if not kind then
    return nil
  end
  local res = registry:of(kind.apiVersion or "", kind.kind or "")
  return res and new_type(res) or cel.types.dyn
end


local Run = {}
Run.__index = Run


-- Counts the bytes of a text. Returns false once they are too many to be checked.
function Run:count(text)
  self.checked = self.checked + #text
  return self.checked <= CHECKED_MAX
end


-- The kinds with an environment for each; variables are known in the order in which they stand. As in upstream, the
-- errors of a variable's own expression are not reported: the variable is of any type then.
function Run:environments(kinds, params)
  local list = {}
  for i, res in ipairs(kinds) do
    local env, add = expressions.typed_environment(new_type(res), params)
    for _, variable in ipairs(self.spec.variables or NONE) do
      local text = variable.expression
      add(variable.name, self:count(text) and env:type_of(text) or nil)
    end
    list[i] = { env = env, name = ("%s/%s, Kind=%s"):format(res.group, res.version, res.kind) }
  end
  return list
end


function Run:check(text, path)
  local texts = {}
  for _, kind in ipairs(self.kinds) do
    if not self:count(text) then
      break
    end
    local type, issues = kind.env:type_of(text)
    texts[#texts + 1] = not type and ("%s: %s\n"):format(kind.name, issues) or nil
  end
  local warning = table.concat(texts, "\n")
  self.size = self.size + #warning
  if texts[1] and self.size <= self.room then
    table.insert(self.warnings, { fieldRef = path, warning = warning })
  end
end


--- @param spec table of a policy
--- @return table list of { fieldRef, warning }; it may be empty
function M.check(spec, registry)
  local room = math.min(WARNINGS_MAX, store.SIZE_MAX - #host.json.encode(spec) - OTHER_FIELDS)
  local run = setmetatable({ spec = spec, checked = 0, size = 0, room = room, warnings = {} }, Run)
  local kinds = matched_kinds.of(spec, registry)
  run.kinds = run:environments(kinds, #kinds > 0 and params_type(spec, registry) or nil)
  for i, validation in ipairs(spec.validations or NONE) do
    local path = ("spec.validations[%d]"):format(i - 1)
    run:check(validation.expression, path .. ".expression")
    if (validation.messageExpression or "") ~= "" then
      run:check(validation.messageExpression, path .. ".messageExpression")
    end
  end
  return run.warnings
end


return M
