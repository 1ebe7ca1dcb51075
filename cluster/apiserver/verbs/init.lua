--- Requests about resources: finds the description of the resource and the verb that answers.
---
--- Rules: apiserver/pkg/endpoints/installer.go (the list of paths and methods),
--- apiextensions-apiserver/pkg/apiserver/customresource_handler.go (the same for custom kinds).
local absent = require "cluster.apiserver.verbs.absent"
local host = require "cluster.host"
local names = require "cluster.names"
local respond = require "cluster.apiserver.respond"
local later = require "cluster.later"
local scale = later.module "cluster.apiserver.verbs.scale"
local status = require "cluster.apiserver.status"

local M = {}

-- Bytes of a body that are read.
local BODY_MAX = 3 * 1024 * 1024
local TRIES = 5 -- of a write whose object changed while it waited

local MAIN = {
  get = require "cluster.apiserver.verbs.get",
  list = require "cluster.apiserver.verbs.list",
  watch = require "cluster.apiserver.verbs.watch",
  create = require "cluster.apiserver.verbs.create",
  update = require "cluster.apiserver.verbs.update",
  patch = require "cluster.apiserver.verbs.patch",
  delete = require "cluster.apiserver.verbs.delete",
  deletecollection = require "cluster.apiserver.verbs.deletecollection",
}

local STATUS = { get = MAIN.get, update = MAIN.update, patch = MAIN.patch }

-- Verbs that are for a whole collection; all but create also when no namespace is given.
local COLLECTION = { list = true, watch = true, create = true, deletecollection = true }
local EVERYWHERE = { list = true, watch = true }


local function page_not_found(request, reply)
  request.answered = true
  respond.plain(reply, 404, "404 page not found\n")
end


-- The answer for what is not served.
local function missing(request, reply)
  if absent.group(request.group) then
    return respond.failure(request, reply, status.no_such_path())
  end
  page_not_found(request, reply)
end


-- True if the path fits the scope of the kind.
local function scope_fits(request, res)
  if request.namespace and not res.namespaced then
    return res.id == "namespaces"
  elseif res.namespaced and not request.namespace then
    return not request.name and (res.builtin or EVERYWHERE[request.verb])
  end
  return true
end


local verb_sets = setmetatable({}, { __mode = "k" })

local function has_verb(res, verb)
  if not res.verbs then
    return true
  end
  local set = verb_sets[res]
  if not set then
    set = {}
    for _, name in ipairs(res.verbs) do
      set[name] = true
    end
    verb_sets[res] = set
  end
  return set[verb] == true
end


-- The handler of a request about a whole object or a collection; nil if there is no such verb here.
local function main_handler(request, res)
  local verb = request.verb
  if not MAIN[verb] or not has_verb(res, verb) or request.method == "HEAD" then
    return nil
  end
  local everywhere = res.namespaced and not request.namespace
  if everywhere and not EVERYWHERE[verb] then
    return nil
  elseif COLLECTION[verb] and request.name and verb == "create" then
    return nil
  elseif not COLLECTION[verb] and not request.name then
    return nil
  end
  local own = res.strategy and res.strategy.handlers
  return own and own[verb] or MAIN[verb]
end


-- The handlers of a part of an object, or nil and a failure.
local function part_handlers(request, res)
  local name, id = request.subresource, res.id
  local registered = request.server.subresources[id]
  local own = registered and registered[name]
    or res.strategy and res.strategy.subresources and res.strategy.subresources[name]
  if own then
    return own
  end
  local listed = res.subresources and res.subresources[name]
  if listed and name == "status" then
    return STATUS
  elseif listed and name == "scale" then
    return scale
  elseif listed or absent.part(id, name) then
    return nil, status.not_implemented(res.plural .. "/" .. name)
  elseif res.builtin then
    return nil, status.no_such_path()
  end
  return nil, status.not_found(res, request.name)
end


local function pick(request, res)
  if not request.subresource then
    local handler = main_handler(request, res)
    if handler then
      return handler
    elseif res.builtin and request.verb ~= "watch" then
      return nil, status.method_not_allowed()
    end
    return nil, status.method_not_supported(res, request.verb ~= "" and request.verb or request.method:lower())
  end
  local handlers, failure = part_handlers(request, res)
  if not handlers then
    return nil, failure
  end
  if request.rest and not handlers.rest then
    return nil, status.no_such_path()
  end
  request.any_form = handlers.any_form
  local handler = handlers[request.verb] or handlers.connect
  return handler, not handler and status.method_not_allowed()
end


-- Names that cannot stand in a path are refused before anything is looked up.
local function check_name(request)
  local messages = request.name and names.path_segment(request.name)
  if messages then
    return status.bad_request(("Name parameter invalid: %q: %s"):format(request.name, table.concat(messages, ";")))
  end
end


-- Runs a handler, and again when the object changed while the request waited for a webhook, as
-- GuaranteedUpdate of apiserver/pkg/storage/etcd3/store.go does. A request with an object of an in-process caller runs
-- only once, because the first run uses the object up.
local function run(handler, request, reply)
  local warnings, code, answer = request.warnings, nil, nil
  for _ = 1, TRIES do
    request.is_stale, request.warnings = false, warnings and host.json.copy(warnings)
    code, answer = handler(request, reply)
    if not request.is_stale or request.object then
      break
    end
  end
  return code, answer
end


--- Answers a request about a resource.
function M.serve(request, reply)
  local res = request.server.registry:find(request.group, request.version, request.resource)
  if not res or not scope_fits(request, res) or request.verb == "proxy" then
    return missing(request, reply)
  end
  request.res = res
  request.space = res.namespaced and request.namespace or ""
  local handler, failure = pick(request, res)
  if res.deprecated and (handler or request.verb == "watch") then -- a watch comes by the route of lists
    respond.warn(request, res.deprecated)
  end
  if handler and #request.body > BODY_MAX then
    failure = status.too_large("limit is " .. BODY_MAX)
  end
  failure = failure or check_name(request)
  if failure then
    return respond.failure(request, reply, failure)
  elseif not request.any_form and not respond.negotiate(request, reply) then
    return
  end
  local code, answer = run(handler, request, reply)
  if not code then
    return respond.failure(request, reply, answer)
  elseif code ~= true then
    respond.answer(request, reply, code, answer)
  end
end


return M
