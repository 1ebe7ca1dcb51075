--- Label and field selectors together, as a test for entries of the store.
local field_selector = require "cluster.apiserver.selector.fields"
local label_selector = require "cluster.apiserver.selector.labels"
local store = require "cluster.apiserver.store"

local M = {}


--- Both selectors together.
--- @param labels string|nil  @param fields string|nil
--- @param check function(field) -> nil or a message: whether the kind knows the field
--- @return table|nil selector, or nil and why:
---   empty     nothing is asked: every entry matches
---   name      the only name that can match, or nil
---   match     function(entry) -> bool
---   by_form   whether it looks at objects as a webhook converts them: they have to be ready (versioned_storage.lua)
--- @param res table? whose version the fields are those of, where a webhook converts its objects
function M.new(labels, fields, check, res)
  local requirements, why = label_selector.parse(labels or "")
  if not requirements then
    return nil, why
  end
  local terms
  terms, why = field_selector.parse(fields or "")
  if not terms then
    return nil, why
  end
  for _, term in ipairs(terms) do
    why = check(term.field)
    if why then
      return nil, why
    end
  end
  local by_form = res ~= nil and field_selector.asks_kind(terms)
  local function match(entry)
    local values = entry.fields
    if by_form then
      values = store.fields(res, entry)
    end
    return label_selector.match(requirements, entry.labels) and field_selector.match(terms, entry, values)
  end
  return {
    empty = #requirements == 0 and #terms == 0, name = field_selector.exact(terms, "metadata.name"), match = match,
    by_form = by_form,
  }
end


return M
