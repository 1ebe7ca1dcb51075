-- Puts objects on the server before a program runs. Global functions: the runner calls them by name.
local server = require "cluster.apiserver.running"
local host = require "cluster.host"

local GROUPS = "/apis/%s/v1/namespaces/default/%s"
local THINGS, BEATS = GROUPS:format("attacks.test", "things"), GROUPS:format("bystander.test", "beats")
local MAPS = "/api/v1/namespaces/%s/configmaps"


local function call(method, path, body, query)
  local code, answer = server:call(method, path, body, query)
  if code >= 300 then
    error(("%s %s: %s"):format(method, path, host.json.encode(answer)), 0)
  end
  return answer
end


local function define(group, kind, scope)
  local plural = kind:lower() .. "s"
  call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {
    apiVersion = "apiextensions.k8s.io/v1", kind = "CustomResourceDefinition",
    metadata = { name = plural .. "." .. group },
    spec = {
      group = group, scope = scope, names = { kind = kind, plural = plural },
      versions = { {
        name = "v1", served = true, storage = true, subresources = { status = {} },
        schema = { openAPIV3Schema = { type = "object", ["x-kubernetes-preserve-unknown-fields"] = true } },
      } },
    },
  })
end


local function precious(namespace)
  return { apiVersion = "v1", kind = "ConfigMap", metadata = { name = "precious", namespace = namespace },
    data = { worth = "much" } }
end


-- Before anything runs.
function Build()
  define("attacks.test", "Thing", "Namespaced")
  define("attacks.test", "Part", "Namespaced")
  define("attacks.test", "Realm", "Cluster")
  define("bystander.test", "Beat", "Namespaced")
  call("POST", "/api/v1/namespaces", { apiVersion = "v1", kind = "Namespace", metadata = { name = "others" } })
  for _, namespace in ipairs { "default", "others" } do
    call("POST", MAPS:format(namespace), precious(namespace))
    call("POST", ("/api/v1/namespaces/%s/secrets"):format(namespace), { apiVersion = "v1", kind = "Secret",
      metadata = { name = "secret" }, data = { key = "RVNDQVBFRA==" } })
  end
end


-- The objects of one program: what it reconciles, and what the bystander does.
function Fill(count)
  call("POST", BEATS, { apiVersion = "bystander.test/v1", kind = "Beat", metadata = { name = "beat" } })
  for number = 1, count do
    call("POST", THINGS, { apiVersion = "attacks.test/v1", kind = "Thing",
      metadata = { name = "t" .. number, labels = { app = "thing" } },
      spec = { n = 0, text = "text", list = { 1, 2, 3 }, nested = { a = { b = { c = "d" } } } } })
  end
end


-- Somebody edits the first object.
function Touch(number)
  local thing = call("GET", THINGS .. "/t1")
  thing.spec.n = number
  call("PUT", THINGS .. "/t1", thing)
end


-- Raises when something was changed that no program may change.
function Check()
  for _, namespace in ipairs { "default", "others" } do
    local map = call("GET", MAPS:format(namespace) .. "/precious")
    assert(map.data.worth == "much", "the precious ConfigMap of namespace " .. namespace .. " was changed")
  end
  local beat = call("GET", BEATS .. "/beat")
  assert(beat.status == nil, "the bystander's object has a status")
end
