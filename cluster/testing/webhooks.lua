--- The round trip of an object through the versions of its kind, by the script under test.
local busted = require "busted" -- a failure, not an error, in what it reports
local expect = require "cluster.testing.expect"
local host = require "cluster.host"
local local_webhooks = require "cluster.local_webhooks"
local register = require "cluster.register" -- the API server calls the webhooks of the script

local M = {}


-- The script that converts objects of this kind. @return table { name =, apiVersion =, versions = }
local function converter_of(object)
  local group = object.apiVersion:match "^(.*)/" or ""
  for _, script in ipairs(local_webhooks.scripts()) do
    if script.kind == object.kind and (script.apiVersion:match "^(.*)/" or "") == group and #script.versions > 0 then
      return script, group
    end
  end
  error(("no script converts %s of %s"):format(object.kind, group), 0)
end


local function convert(script, object, api_version)
  local review = {
    apiVersion = "apiextensions.k8s.io/v1", kind = "ConversionReview",
    request = { uid = host.uuid(), desiredAPIVersion = api_version, objects = host.json.array { object } },
  }
  local code, _, body = register.call("/convert/" .. script.name, review)
  local answer = code == 200 and host.json.decode(body)
  if not answer then
    error(host.escape(body), 0)
  elseif answer.response.result.status ~= "Success" then
    error(host.escape(answer.response.result.message), 0)
  end
  return answer.response.convertedObjects[1]
end


-- The versions to which an object can go: from the reconciled version to each, from another one to that.
local function versions_of(script, object, group)
  if object.apiVersion ~= script.apiVersion then
    return { script.apiVersion }
  end
  local versions = {}
  for i, version in ipairs(script.versions) do
    versions[i] = ("%s/%s"):format(group, version)
  end
  return versions
end


-- The difference in either direction: what went missing, or else what came to be.
local function differences(before, after)
  return expect.difference(before, after) or expect.difference(after, before)
end


function M.add(world, guard)
  --- Fails unless the object is the same after it was converted to each other version and back.
  function world.round_trip(object)
    guard()
    local script, group = converter_of(object)
    for _, api_version in ipairs(versions_of(script, object, group)) do
      local there = convert(script, object, api_version)
      local back = convert(script, there, object.apiVersion)
      if not host.json.equal(object, back) then
        busted.fail(("%s is another one after it was %s (- before, + after):\n%s"):format(object.kind, api_version,
          differences(object, back) or "  numbers, or lists and maps, of another type"), 0)
      end
    end
  end
end


return M
