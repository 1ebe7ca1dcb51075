--- Webhooks of a spec's own, in place of the module that calls them: a function answers, and it may let the request
--- wait.
local host = require "cluster.host"

local M = {}
M.__index = M

local CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/%swebhookconfigurations"


--- Calls of webhooks go to `answer` from now on.
--- @param answer function(request, url, host) that returns a response's fields, or nil and a text, why there is none;
---   it may yield
function M.install(answer)
  local client = {}
  function client.post(_, url, body, _, name)
    local review = host.json.decode(body)
    local response, why = answer(review.request, url, name)
    if not response then
      return nil, why, false
    end
    response.uid = response.uid or review.request.uid
    local text = host.json.encode { apiVersion = review.apiVersion, kind = review.kind, response = response }
    return 200, "application/json", text
  end
  package.loaded["cluster.http"] = { client = function() return client end }
end


--- There are none any more.
function M.remove()
  package.loaded["cluster.http"] = nil
end


--- A response that changes the object.
function M.patch(operations)
  return { allowed = true, patchType = "JSONPatch", patch = host.base64.encode(host.json.encode(operations)) }
end


--- Stores a configuration with one hook. @param kind string "mutating" or "validating"  @param more table of the hook
function M.configure(server, kind, more)
  local hook = {
    name = kind .. ".example.com", clientConfig = { url = "https://127.0.0.1:1/" .. kind }, sideEffects = "None",
    rules = { { apiGroups = { "*" }, apiVersions = { "*" }, operations = { "*" }, resources = { "configmaps" } } },
    admissionReviewVersions = { "v1" },
  }
  for key, value in pairs(more or {}) do
    hook[key] = value
  end
  server:must("POST", CONFIGURATIONS:format(kind), { metadata = { name = kind }, webhooks = { hook } })
end


--- Sends a request that may wait, as server:send does.
--- @return table { reply =, go_on = function() lets it go on after each wait }
function M.send(server, ...)
  local sent = {}
  local run = coroutine.create(function(...)
    sent.reply = server:send(...)
  end)
  function sent.go_on(...)
    local ok, why = coroutine.resume(run, ...)
    assert(ok, why)
  end
  sent.go_on(...)
  return sent
end


return M
