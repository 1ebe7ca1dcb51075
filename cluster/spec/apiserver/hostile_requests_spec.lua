-- Requests that no client means well with: whatever a query or a body says, no answer is a mistake of the server's own.
-- The tables are small enough to be read and are multiplied: each word stands behind each name, in each request.
local host = require "cluster.host"
local testserver = require "testserver"

-- Values of any parameter.
local WORDS = {
  "", "0", "-1", "+1", "%201", "1%20", "-0", "1.0", "0x10", "1e3", "NaN", "inf", "null", "true", "[]", "{}", "=", ",",
  "!", "a=b", "a in (b", "a==b,,c", "%", "%zz", "%00", "%0a", "%ff%fe", "%F0%9F%98%80", ("x"):rep(5000), "Exact",
  "NotOlderThan", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "18446744073709551615",
  "18446744073709551616", ("9"):rep(400),
  "MQ", "W10", "e30", "bnVsbA", -- continue: 1, [], {}, null in base64; then tokens of versions -1, 1 and 10^9
  "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEsInN0YXJ0IjoiL2EifQ",
  "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiIvIn0",
  "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MTAwMDAwMDAwMCwic3RhcnQiOiIvYSJ9",
}

local NAMES = {
  "resourceVersion", "resourceVersionMatch", "timeoutSeconds", "limit", "continue", "labelSelector", "fieldSelector",
  "watch", "allowWatchBookmarks", "sendInitialEvents", "pretty", "dryRun", "fieldManager", "fieldValidation", "force",
  "gracePeriodSeconds", "propagationPolicy", "orphanDependents", "timeout", "includeObject", "",
}

local COLLECTIONS = {
  "/api/v1/namespaces/default/configmaps", "/api/v1/configmaps", "/api/v1/nodes",
  "/apis/rbac.authorization.k8s.io/v1/clusterroles", "/apis/spec.test/v1/namespaces/default/things",
}

local THING = '"apiVersion":"spec.test/v1","kind":"Thing"'

local CRD = {
  metadata = { name = "things.spec.test" },
  spec = {
    group = "spec.test", scope = "Namespaced", names = { plural = "things", kind = "Thing" },
    versions = { {
      name = "v1", served = true, storage = true, subresources = { status = {} },
      schema = { openAPIV3Schema = { type = "object", ["x-kubernetes-preserve-unknown-fields"] = true } },
    } },
  },
}


local function nested(levels, open, close)
  return open:rep(levels) .. "1" .. close:rep(levels)
end


-- Objects, patches and options of any kind; %s is what the kind wants first.
local BODIES = {
  "", " ", "null", "1", '"x"', "[]", "{}", "{", "}", "\0", "\xff\xfe", '{"a":1}', "a: &a [*a]", "a: *b", "? [a]\n: b",
  "%YAML 9", "---\n---\n", "a: !!binary x", ("- "):rep(20000), ("["):rep(20000), nested(9999, "[", "]"),
  nested(20000, '{"a":', "}"), '{"kind":1,"apiVersion":2}', '{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}}',
  '{%s"metadata":null}', '{%s"metadata":[]}', '{%s"metadata":"x"}', '{%s"metadata":{"name":1}}',
  '{%s"metadata":{"name":"a","labels":[]}}', '{%s"metadata":{"name":"a","labels":{"a":1}}}',
  '{%s"metadata":{"name":"a","resourceVersion":1}}', '{%s"metadata":{"name":"a","generation":1e400}}',
  '{%s"metadata":{"name":"a","ownerReferences":[1,null,[]]}}', '{%s"metadata":{"name":"a","finalizers":"x"}}',
  '{%s"metadata":{"name":"a","managedFields":[null]}}', '{%s"metadata":{"name":"a","deletionTimestamp":"x"}}',
  '{%s"metadata":{"name":"a","managedFields":[{"manager":"x","operation":"Apply","apiVersion":"v1",'
    .. '"fieldsType":"FieldsV1","fieldsV1":{"k:{":{},"v:{":{},"i:x":{},"i:99999999999999999999":{}}}]}}',
  '{%s"metadata":{"name":"a","annotations":' .. nested(9000, '{"a":', "}") .. "}}",
  '{%s"metadata":{"name":"a"},"data":' .. nested(9990, "[", "]") .. "}", '{%s"metadata":{"name":"a"},"data":1}',
  '{%s"metadata":{"name":"a"},"spec":[]}', '{%s"metadata":{"name":"a"},"spec":null,"status":1}',
  '{%s"metadata":{"name":"a"},"rules":1,"subjects":[1],"roleRef":[]}', '{"metadata":{"$retainKeys":[1]}}',
  '{"metadata":{"$setElementOrder/finalizers":[{}]}}', '{"metadata":{"$deleteFromPrimitiveList/finalizers":{}}}',
  '{"metadata":{"finalizers":[{"$patch":1}]}}', '[{"op":"add","path":"","value":1}]', "[null]", "[[]]", "[{}]",
  '[{"op":"replace","path":"/metadata","value":[]}]', '[{"op":"remove","path":"/metadata"}]',
  '[{"op":"move","from":"/metadata","path":"/metadata/a"}]', '[{"op":"copy","from":"/","path":"/"}]',
  '[{"op":"add","path":"/kind","value":1},{"op":"add","path":"/apiVersion","value":[]}]',
  '[{"op":"add","path":"/data","value":' .. nested(9990, '{"a":', "}") .. "}]",
  '[{"op":"add","path":"/a' .. ("/a"):rep(100000) .. '","value":1}]', '{"gracePeriodSeconds":"x"}',
  '{"gracePeriodSeconds":9223372036854775807}', '{"preconditions":1}', '{"preconditions":{"uid":1}}', '{"dryRun":[1]}',
  '{"propagationPolicy":1}', '{"orphanDependents":1}',
}

local MEDIA = {
  "application/json", "application/yaml", "application/json-patch+json", "application/merge-patch+json",
  "application/strategic-merge-patch+json", "application/apply-patch+yaml", "application/vnd.kubernetes.protobuf",
}

-- Messages that a real server, too, answers with 500, word for word (conformance/recorded). The last is 504.
local UPSTREAM = {
  "^strconv%.ParseUint: ", "^unknown patch type: ", "^expected a %[%]interface {}, but received ",
  "^list element types are not identical: ", "^unable to find api field in struct ",
  "^map: .* does not contain declared", "^failed to create typed patch object ",
  "^Timeout: Too large resource version: ",
}


local function is_upstream(message)
  for _, pattern in ipairs(UPSTREAM) do
    if message:find(pattern) then
      return true
    end
  end
  return false
end


-- Returns the fault of an answer, or nil if it has none.
local function complaint(ok, reply)
  if not ok then
    return "raised " .. tostring(reply)
  elseif not reply.code then
    return "no answer"
  elseif reply.code < 500 or reply.code == 501 then
    return nil
  end
  local answer = host.json.decode(reply.body)
  return not is_upstream(answer.message) and ("%d %s"):format(reply.code, answer.message) or nil
end


describe("a server that is asked what nobody would ask", function()
  local world

  before_each(function()
    world = testserver.new { accounts = false }
    world:must("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", CRD)
    world:pass(10)
    world:must("POST", testserver.CONFIGMAPS, { metadata = { name = "a" } })
    world:must("POST", COLLECTIONS[5], { apiVersion = "spec.test/v1", kind = "Thing", metadata = { name = "a" } })
  end)

  -- Sends it, and hangs up if it is a watch; a complaint goes to `found`, each once.
  local function try(found, method, path, body, media)
    local ok, reply = pcall(world.send, world, method, path, body, { ["content-type"] = media })
    local wrong = complaint(ok, reply)
    if ok and reply.on_close then
      reply.on_close()
    end
    if wrong and not found[wrong] then
      found[wrong] = true
      found[#found + 1] = ("%s %s %s: %s"):format(method, path:sub(1, 150), (body or ""):sub(1, 60), wrong)
    end
  end

  local function object_of(path)
    return ('{%s"metadata":{"name":"a"}}'):format(path:find("spec.test", 1, true) and THING .. "," or "")
  end

  for _, path in ipairs(COLLECTIONS) do
    it("has no 5xx for any query of " .. path, function()
      local found = {}
      local watching = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&"
      for _, name in ipairs(NAMES) do
        for _, word in ipairs(WORDS) do
          local query = name .. "=" .. word
          try(found, "GET", path .. "?" .. query)
          try(found, "GET", path .. "?watch=true&timeoutSeconds=1&" .. query)
          try(found, "GET", path .. "?" .. watching .. query)
          try(found, "GET", path:gsub("/v1/", "/v1/watch/", 1) .. "?" .. query)
          try(found, "GET", path .. "/a?" .. query)
          try(found, "DELETE", path .. "?dryRun=All&" .. query)
          try(found, "DELETE", path .. "/a?dryRun=All&" .. query)
          try(found, "POST", path .. "?dryRun=All&" .. query, object_of(path))
          try(found, "PUT", path .. "/a?dryRun=All&" .. query, object_of(path))
          try(found, "PATCH", path .. "/a?dryRun=All&" .. query, object_of(path), MEDIA[4])
        end
      end
      assert.same({}, found)
    end)
  end

  it("has no 5xx for any body", function()
    local found = {}
    local reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    for _, path in ipairs { COLLECTIONS[1], COLLECTIONS[5], reviews } do
      for _, body in ipairs(BODIES) do
        body = body:gsub("^{%%s", "{" .. (path:find("spec.test", 1, true) and THING .. "," or ""))
        for _, media in ipairs(MEDIA) do
          try(found, "PATCH", path .. "/a?dryRun=All&fieldManager=x", body, media)
        end
        for _, media in ipairs { MEDIA[1], MEDIA[2], MEDIA[7] } do
          try(found, "POST", path .. "?dryRun=All", body, media)
          try(found, "PUT", path .. "/a?dryRun=All", body, media)
          try(found, "PUT", path .. "/a/status?dryRun=All", body, media)
          try(found, "DELETE", path .. "/a?dryRun=All", body, media)
        end
      end
    end
    assert.same({}, found)
  end)

  it("says what is wrong with the version of a watch or a get", function()
    for _, path in ipairs { testserver.CONFIGMAPS .. "?watch=true&", testserver.CONFIGMAPS .. "/a?" } do
      local code, answer = world:call("GET", path .. "resourceVersion=-1")
      assert.same({ 400, "BadRequest", 'resourceVersion: Invalid value: "-1": strconv.ParseUint: parsing "-1": '
        .. "invalid syntax" }, { code, answer.reason, answer.message })
    end
  end)
end)
