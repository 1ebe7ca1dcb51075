--- Options in the query of a request: one function for each type of options.
---
--- Each takes a request and returns a table, or nil and a status. Unknown names are ignored, as the server does.
--- Rules: apimachinery/pkg/apis/meta/v1/validation/validation.go, …/internalversion/{defaults,validation}.
local field = require "cluster.apiserver.field"
local host = require "cluster.host"
local metadata = require "cluster.apiserver.metadata"
local status = require "cluster.apiserver.status"

local M = {}

local FIELD_VALIDATION = { [""] = true, Ignore = true, Strict = true, Warn = true }
local PROPAGATION = { Foreground = true, Background = true, Orphan = true }


local function first(query, name)
  local values = query[name]
  return values and values[1]
end


-- As conversion of queries has it: everything but these two words is true.
local function boolean(query, name)
  local text = first(query, name)
  if text == nil then
    return nil
  end
  text = text:lower()
  return text ~= "false" and text ~= "0"
end


local function integer(query, name)
  local text = first(query, name)
  if text == nil then
    return nil
  end
  local number = text:find("^[-+]?%d+$") and math.tointeger(tonumber(text))
  if not number then
    local why = text:find("^[-+]?%d+$") and "value out of range" or "invalid syntax"
    return nil, status.bad_request(("strconv.ParseInt: parsing %s: %s"):format(field.quote(text), why))
  end
  return number
end


local function check_dry_run(values, errors)
  for _, value in ipairs(values or {}) do
    if value ~= "All" then
      errors[#errors + 1] = field.not_supported("dryRun", host.json.array(host.json.copy(values)), { "All" })
      return
    end
  end
end


local function write_options(request, kind, errors)
  local query = request.query
  local options = {
    manager = first(query, "fieldManager") or "",
    validation = first(query, "fieldValidation") or "",
    dry_run = query.dryRun ~= nil,
  }
  metadata.check_manager(options.manager, "fieldManager", errors)
  check_dry_run(query.dryRun, errors)
  if not FIELD_VALIDATION[options.validation] then
    errors[#errors + 1] = field.not_supported("fieldValidation", options.validation, { "", "Ignore", "Strict", "Warn" })
  end
  if #errors > 0 then
    return nil, status.invalid("meta.k8s.io", kind, "", errors)
  end
  if options.validation == "" then
    options.validation = "Warn"
  end
  return options
end


local PLAIN_WRITE = { manager = "", validation = "Warn", dry_run = false }


--- Options of create: { manager =, validation = "Ignore"|"Warn"|"Strict", dry_run = bool }.
function M.create(request)
  if not next(request.query) then
    return PLAIN_WRITE
  end
  return write_options(request, "CreateOptions", {})
end


--- Options of update: as for create.
function M.update(request)
  if not next(request.query) then
    return PLAIN_WRITE
  end
  return write_options(request, "UpdateOptions", {})
end


--- Options of patch: as for create, and `force`.
--- @param apply boolean whether the patch is a server-side apply
function M.patch(request, apply)
  local force, errors = boolean(request.query, "force"), {}
  if apply and (first(request.query, "fieldManager") or "") == "" then
    errors[1] = field.required("fieldManager", "is required for apply patch")
  elseif not apply and force ~= nil then
    errors[1] = field.forbidden("force", "may not be specified for non-apply patch")
  end
  local options, failure = write_options(request, "PatchOptions", errors)
  if options then
    options.force = force or false
  end
  return options, failure
end


local function delete_from_query(request)
  local query = request.query
  local grace, failure = integer(query, "gracePeriodSeconds")
  if failure then
    return nil, failure
  end
  return {
    gracePeriodSeconds = grace,
    orphanDependents = boolean(query, "orphanDependents"),
    propagationPolicy = first(query, "propagationPolicy"),
    dryRun = query.dryRun,
  }
end


local function check_delete(options)
  local errors, policy = {}, options.propagationPolicy
  if options.orphanDependents ~= nil and policy then
    errors[1] = field.invalid("propagationPolicy", policy,
      "orphanDependents and deletionPropagation cannot be both set")
  end
  if policy and not PROPAGATION[policy] then
    errors[#errors + 1] = field.not_supported("propagationPolicy", policy,
      { "Foreground", "Background", "Orphan", "nil" })
  end
  check_dry_run(options.dryRun, errors)
  if #errors > 0 then
    return nil, status.invalid("meta.k8s.io", "DeleteOptions", "", errors)
  end
  return {
    grace = options.gracePeriodSeconds,
    orphan = options.orphanDependents,
    policy = policy,
    preconditions = options.preconditions or {},
    dry_run = #(options.dryRun or {}) > 0,
  }
end


--- Options of a deletion, out of the body when there is one (`body`, a DeleteOptions table) or the query:
--- { grace = seconds or nil, orphan = bool or nil, policy = string or nil, preconditions = {}, dry_run = bool }.
function M.delete(request, body)
  local options, failure = body, nil
  if not options then
    options, failure = delete_from_query(request)
  end
  if failure then
    return nil, failure
  end
  return check_delete(options)
end


local function check_list(options, errors)
  local match, path = options.match, "resourceVersionMatch"
  if match ~= "" then
    if options.version == "" then
      errors[#errors + 1] = field.forbidden(path, path .. " is forbidden unless resourceVersion is provided")
    end
    if options.continue ~= "" then
      errors[#errors + 1] = field.forbidden(path, path .. " is forbidden when continue is provided")
    end
    if match ~= "Exact" and match ~= "NotOlderThan" then
      errors[#errors + 1] = field.not_supported(path, match, { "Exact", "NotOlderThan", "" })
    end
    if match == "Exact" and options.version == "0" then
      errors[#errors + 1] = field.forbidden(path, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"')
    end
  end
  if options.initial ~= nil then
    errors[#errors + 1] = field.forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list")
  end
end


local function check_watch(options, errors)
  local match, path = options.match, "resourceVersionMatch"
  if options.initial ~= nil and match ~= "NotOlderThan" then
    errors[#errors + 1] = field.forbidden(path, "sendInitialEvents requires setting " .. path .. " to NotOlderThan")
  end
  if match == "" then
    return
  end
  if options.initial == nil then
    errors[#errors + 1] = field.forbidden(path, path .. " is forbidden for watch unless sendInitialEvents is provided")
  end
  if match ~= "NotOlderThan" then
    errors[#errors + 1] = field.not_supported(path, match, { "NotOlderThan" })
  end
  if options.continue ~= "" then
    errors[#errors + 1] = field.forbidden(path, path .. " is forbidden when continue is provided")
  end
end


-- A watch from nowhere in particular starts with what there is.
local function default_watch(options)
  if options.initial == nil and options.match == "" and (options.version == "" or options.version == "0") then
    options.initial = true
    options.match = "NotOlderThan"
  end
end


local function read_list(query)
  local timeout, limit, failure
  timeout, failure = integer(query, "timeoutSeconds")
  if failure then
    return nil, failure
  end
  limit, failure = integer(query, "limit")
  if failure then
    return nil, failure
  end
  return {
    labels = first(query, "labelSelector"),
    fields = first(query, "fieldSelector"),
    bookmarks = boolean(query, "allowWatchBookmarks") or false,
    version = first(query, "resourceVersion") or "",
    match = first(query, "resourceVersionMatch") or "",
    timeout = timeout,
    limit = limit or 0,
    continue = first(query, "continue") or "",
    initial = boolean(query, "sendInitialEvents"),
  }
end


--- Options of list, watch and deletecollection: labels, fields (texts of selectors, or nil), bookmarks, version
--- (resourceVersion as it came, "" when it did not), match, timeout (seconds or nil), limit (0: none), continue,
--- initial (sendInitialEvents, with what the server assumes for a watch).
--- @param watching boolean whether the request is a watch
function M.list(request, watching)
  local options, failure = read_list(request.query)
  if failure then
    return nil, failure
  end
  local errors = {}
  if watching then
    default_watch(options)
    check_watch(options, errors)
  else
    check_list(options, errors)
  end
  if #errors > 0 then
    return nil, status.invalid("meta.k8s.io", "ListOptions", "", errors)
  end
  return options
end


return M
