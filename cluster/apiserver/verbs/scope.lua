--- The part of a collection that a list, watch or deletecollection selects.
local names = require "cluster.names"
local selector = require "cluster.apiserver.selector"
local status = require "cluster.apiserver.status"

local M = {}


-- Returns a function that says why objects of the kind cannot be selected by a field; it returns nil if they can.
local function field_check(res)
  return function(name)
    local strategy = res.strategy
    local own = strategy and strategy.field_names
    if name == "metadata.name" or name == "metadata.namespace" and (res.namespaced or res.builtin and not own) then
      return nil
    end
    if strategy and strategy.field_names and strategy.field_names[name] then
      return nil
    end
    if not res.builtin then
      return "field label not supported: " .. name
    elseif strategy and strategy.field_names then
      local whose = strategy.fields_of and " for " .. strategy.fields_of or ""
      return ("field label not supported%s: %s"):format(whose, name)
    end
    return ('"%s" is not a known field selector: only "metadata.name", "metadata.namespace"'):format(name)
  end
end


--- The selector of a request. A name in the path, or one in a field selector, is the same thing.
--- @param options table as options.list returns it
--- @return table|nil selector as selector.new returns it; nil and a status
function M.selector(request, options)
  local res = request.res
  local converts = res.convert and res.convert.webhook
  local found, why = selector.new(options.labels, options.fields, field_check(res), converts and res or nil)
  if not found then
    return nil, status.bad_request(why)
  end
  local name = request.name
  if not name then
    if found.name and names.path_segment(found.name) then
      found.name = nil
    end
    return found
  end
  if options.fields and options.fields ~= "" then
    if found.name ~= name then
      return nil, status.bad_request("fieldSelector metadata.name doesn't match requested name")
    end
    return found
  end
  local match, empty = found.match, found.empty
  return {
    empty = false,
    name = name,
    by_form = found.by_form,
    match = function(entry)
      return entry.name == name and (empty or match(entry))
    end,
  }
end


--- The namespace the request is about, or nil for all of a namespaced resource; "" for resources without.
function M.namespace(request)
  if not request.res.namespaced then
    return ""
  end
  return request.namespace
end


return M
