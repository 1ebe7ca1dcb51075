--- Acting as somebody else: the Impersonate-* headers.
---
--- Rules and wordings: apiserver/pkg/endpoints/filters/impersonation/{constrained_impersonation,mode}.go.
local denial = require "cluster.apiserver.auth.denial"
local host = require "cluster.host"
local status = require "cluster.apiserver.status"

local M = {}

local EXTRA = "^impersonate%-extra%-(.*)$"
local ACCOUNT, NODE = "^system:serviceaccount:([^:]+):([^:]+)$", "^system:node:(.+)$"
local ANONYMOUS = "system:anonymous"

-- Headers that came several times are joined by this.
local function values_of(header)
  local list = {}
  for value in ((header or "") .. ", "):gmatch("(.-), ") do
    list[#list + 1] = value ~= "" and value or nil
  end
  return list
end


local function unescape(text)
  return (text:gsub("%%(%x%x)", function(hex) return string.char(tonumber(hex, 16)) end))
end


local function extra_of(headers)
  local extra, any = {}, false
  for name, value in pairs(headers) do
    local key = name:match(EXTRA)
    if key then
      extra[unescape(key):lower()] = host.json.array(values_of(value))
      any = true
    end
  end
  return any and extra or nil
end


-- As Go prints it.
local function go_user(wanted)
  local groups = {}
  for i, group in ipairs(wanted.groups) do
    groups[i] = ("%q"):format(group)
  end
  return ('&user.DefaultInfo{Name:"", UID:%q, Groups:[]string%s, Extra:map[string][]string%s}'):format(
    wanted.uid or "", groups[1] and "{" .. table.concat(groups, ", ") .. "}" or "(nil)",
    wanted.extra and "{}" or "(nil)")
end


-- Reads which user the headers ask for: nil if they name none, nil and a status if they make no sense.
local function read(headers)
  local wanted = {
    name = headers["impersonate-user"], uid = headers["impersonate-uid"],
    groups = values_of(headers["impersonate-group"]), extra = extra_of(headers),
  }
  if wanted.name and wanted.name ~= "" then
    return wanted
  elseif wanted.uid or wanted.groups[1] or wanted.extra then
    return nil, status.bad_request(("requested %s without impersonating a user name"):format(go_user(wanted)))
  end
  return nil
end


local function only_name(wanted)
  return not wanted.uid and not wanted.groups[1] and not wanted.extra
end


-- Ways to be allowed, in the order in which they are tried: the verb, and whom it is for. Each but the last also
-- wants leave for what is done in the other's name.
local MODES = {
  { name = "arbitrary-node", fits = function(wanted) return only_name(wanted) and wanted.name:find(NODE) end },
  { name = "serviceaccount", fits = function(wanted) return only_name(wanted) and wanted.name:find(ACCOUNT) end },
  { name = "user-info", fits = function(wanted)
    return not wanted.name:find(NODE) and not wanted.name:find(ACCOUNT)
  end },
  { fits = function() return true end },
}


-- The questions to ask for a mode: a list of attributes.
local function questions(mode, wanted)
  local list = {}
  local verb = mode.name and "impersonate:" .. mode.name or "impersonate"
  local group = mode.name and "authentication.k8s.io" or ""
  local function ask(resource, name, in_group, more)
    local attributes = { is_resource = true, verb = verb, group = in_group, resource = resource, name = name }
    for key, value in pairs(more or {}) do
      attributes[key] = value
    end
    list[#list + 1] = attributes
  end
  local namespace, account = wanted.name:match(ACCOUNT)
  if account then
    ask("serviceaccounts", account, group, { namespace = namespace })
  elseif mode.name == "arbitrary-node" then
    ask("nodes", wanted.name:match(NODE), group)
  else
    ask("users", wanted.name, group)
  end
  if wanted.uid then
    ask("uids", wanted.uid, "authentication.k8s.io")
  end
  for _, name in ipairs(wanted.groups) do
    ask("groups", name, group)
  end
  for key, values in pairs(wanted.extra or {}) do
    for _, value in ipairs(values) do
      ask("userextras", value, "authentication.k8s.io", { subresource = key })
    end
  end
  return list
end


local function on_behalf(mode, request)
  return {
    is_resource = request.is_resource, verb = ("impersonate-on:%s:%s"):format(mode.name, request.verb),
    group = request.group, resource = request.resource, subresource = request.subresource, name = request.name,
    namespace = request.namespace, path = request.path,
  }
end


-- nil when the mode allows it, else the status that says why not.
local function check(auth, user, mode, wanted, request)
  local list = questions(mode, wanted)
  if mode.name then
    table.insert(list, 1, on_behalf(mode, request))
  end
  for _, attributes in ipairs(list) do
    local allowed, reason = auth:authorize(user, attributes)
    if not allowed then
      return denial.status(user, attributes, reason)
    end
  end
  return nil
end


local function with_group(groups, name, unless)
  for _, group in ipairs(groups) do
    if group == name or group == unless then
      return groups
    end
  end
  groups[#groups + 1] = name
  return groups
end


-- The groups of a service account are known, and so are those of a node.
local function become(wanted)
  local namespace = wanted.name:match(ACCOUNT)
  if namespace and not wanted.groups[1] then
    wanted.groups = { "system:serviceaccounts", "system:serviceaccounts:" .. namespace }
  end
  if wanted.name == ANONYMOUS then
    with_group(wanted.groups, "system:unauthenticated")
  else
    with_group(wanted.groups, "system:authenticated", "system:unauthenticated")
  end
  return wanted
end


--- Returns the user that a request acts as.
--- @param auth table  @param user table the one who sent it  @param request table with headers
--- @return table|nil user the same one if nobody is impersonated; nil and a status if it is not allowed
function M.apply(auth, user, request)
  local wanted, failure = read(request.headers)
  if failure then
    return nil, failure
  elseif not wanted then
    return user
  end
  for _, mode in ipairs(MODES) do
    if mode.fits(wanted) then
      local denied = check(auth, user, mode, wanted, request)
      if not denied then
        return become(wanted)
      end
      failure = failure or denied
    end
  end
  return nil, failure
end


return M
