--- anyOf, oneOf, allOf and not.
---
--- Rules and wordings: kube-openapi/pkg/validation/validate/schema_props.go. If all alternatives fail, the errors
--- are those of the alternative that matched most rules.
local field = require "cluster.apiserver.field"

local M = {}


local function any_of(checks)
  return function(value, run, depth, old)
    local best, best_matches
    for i = 1, #checks do
      local errors, matches = run:alone(checks[i], value, depth, old)
      if #errors == 0 then
        run.matches = run.matches + matches
        return
      elseif not best or matches > best_matches then
        best, best_matches = errors, matches
      end
    end
    run:plain_error(field.quote(run:path(depth)) .. " must validate at least one schema (anyOf)")
    run:merge(best, best_matches)
  end
end


local function one_of(checks)
  return function(value, run, depth, old)
    local valid, best, best_matches, first = 0, nil, nil, nil
    for i = 1, #checks do
      local errors, matches = run:alone(checks[i], value, depth, old)
      if #errors == 0 then
        valid = valid + 1
        first = first or matches
      elseif not best or matches > best_matches then
        best, best_matches = errors, matches
      end
    end
    if valid == 1 then
      run.matches = run.matches + first
      return
    end
    local found = valid == 0 and "Found none valid" or ("Found %d valid alternatives"):format(valid)
    run:plain_error(field.quote(run:path(depth)) .. " must validate one and only one schema (oneOf). " .. found)
    if valid == 0 then
      run:merge(best, best_matches)
    end
  end
end


local function all_of(checks)
  return function(value, run, depth, old)
    local valid = 0
    for i = 1, #checks do
      local errors, matches = run:alone(checks[i], value, depth, old)
      valid = #errors == 0 and valid + 1 or valid
      run:merge(errors, matches)
    end
    if valid < #checks then
      run:plain_error(field.quote(run:path(depth)) .. " must validate all the schemas (allOf)"
        .. (valid == 0 and ". None validated" or ""))
    end
  end
end


local function none_of(check)
  return function(value, run, depth, old)
    local errors = run:alone(check, value, depth, old)
    if #errors == 0 then
      run:plain_error(field.quote(run:path(depth)) .. " must not validate the schema (not)")
    end
  end
end


local function compile_all(schemas, compile)
  local checks = {}
  for i, schema in ipairs(schemas) do
    checks[i] = compile(schema)
  end
  return checks
end


--- The check of a schema's logical_schemas, nil when it has none. `compile` makes the check of a schema.
function M.check(schema, compile)
  local list = {}
  for _, junctor in ipairs { { "anyOf", any_of }, { "oneOf", one_of }, { "allOf", all_of } } do
    local schemas = schema[junctor[1]]
    if schemas and #schemas > 0 then
      list[#list + 1] = junctor[2](compile_all(schemas, compile))
    end
  end
  if schema["not"] then
    list[#list + 1] = none_of(compile(schema["not"]))
  end
  if #list == 0 then
    return nil
  end
  return function(value, run, depth, old)
    for i = 1, #list do
      list[i](value, run, depth, old)
    end
  end
end


return M
