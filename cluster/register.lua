--- Registers the webhooks of the operator's scripts at the embedded API server: in `moonloop dev` and in test worlds
--- they take effect by themselves. On a cluster somebody applies what `moonloop manifests` prints.
---
--- The C side (cluster/host/local_webhooks.c) calls set whenever a version of a script has gone live.
local host = require "cluster.host"
local local_webhooks = require "cluster.local_webhooks"
local webhook = require "cluster.apiserver.webhook"

local M = {}

--- nil, or function(kinds): called with what set was given, once it is registered.
M.on_registered = nil

local APPLY, MERGE = "application/apply-patch+yaml", "application/merge-patch+json"
local REQUESTER = { user_agent = "moonloop-webhooks" }

local conversions = {} -- path of a definition → its spec.conversion, as it was registered last
local by_server = setmetatable({}, { __mode = "k" }) -- server → path of what is registered → its kind


local function send(server, method, path, body, content_type)
  local code, answer = server:call(method, path, body, {
    user_agent = REQUESTER.user_agent, content_type = content_type, skips_admission = true,
  })
  if code >= 300 and code ~= 404 then
    host.log("error", "a webhook of a script cannot be registered", { path = path, error = answer.message })
  end
end


--- Calls a webhook, in this process. @return integer code, string content_type, string body
function M.call(path, review)
  local answer, why = local_webhooks.answer { path = path, review = review }
  if not answer then
    return 500, "text/plain", why
  end
  return answer.code, answer.content_type, answer.body
end


webhook.inside = M.call


-- Another version of the script may convert otherwise than what the server remembers.
local function forget_forms(server, id)
  server.store:collection(id):each(nil, nil, function(entry)
    entry.forms, entry.form_fields = nil, nil
  end)
end


-- The merge patch for a definition whose script no longer converts.
local function without_conversion()
  return { spec = { conversion = { strategy = "None", webhook = host.json.null } } }
end


local function conversion_at(url)
  local called = { clientConfig = { url = url }, conversionReviewVersions = host.json.array { "v1" } }
  return { strategy = "Webhook", webhook = called }
end


--- The spec.conversion of the definition at this path, if a script converts its objects; else nil.
function M.conversion(path)
  return conversions[path]
end


--- Makes these the webhooks of our scripts, and takes away what was registered before and is not among them.
--- @param webhooks table { objects = list of configurations, and of definitions with their spec.conversion only,
---   kinds = list of "group/Kind" whose webhooks these are }
function M.set(webhooks)
  local server = require "cluster.apiserver.running"
  local before, now = by_server[server] or {}, {}
  for _, object in ipairs(webhooks.objects) do
    local res = server.registry:of(object.apiVersion, object.kind)
    local path = server.registry.path(res, nil, object.metadata.name)
    now[path] = object.kind
    if object.kind == "CustomResourceDefinition" then
      local client = object.spec.conversion.webhook.clientConfig
      conversions[path] = conversion_at(client.url)
      client.service = host.json.null -- a manifest has one, for a cluster
      send(server, "PATCH", path, object, MERGE)
      forget_forms(server, object.metadata.name)
    else
      send(server, "PATCH", path .. "?fieldManager=moonloop-webhooks&force=true", object, APPLY)
    end
  end
  for path, kind in pairs(before) do
    if now[path] then
      goto continue
    elseif kind == "CustomResourceDefinition" then
      send(server, "PATCH", path, without_conversion(), MERGE)
      conversions[path] = nil
    else
      send(server, "DELETE", path)
    end
    ::continue::
  end
  by_server[server] = now
  if M.on_registered then
    M.on_registered(webhooks.kinds)
  end
end


return M
