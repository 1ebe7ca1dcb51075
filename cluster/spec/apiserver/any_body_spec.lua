--- Every built-in kind is sent bodies of every media type, by every verb: objects of its type made at random, the same
--- with something that does not belong there, and pieces of them. No answer is a mistake of the server's own, and the
--- server goes on.
local builtin = require "cluster.apiserver.schema.builtin"
local host = require "cluster.host"
local kinds = require "cluster.apiserver.resources"
local testobjects = require "testobjects"
local testserver = require "testserver"

local JSON, YAML = "application/json", "application/yaml"
local PROTOBUF = "application/vnd.kubernetes.protobuf"
local MERGE, STRATEGIC = "application/merge-patch+json", "application/strategic-merge-patch+json"
local JSON_PATCH, APPLY = "application/json-patch+json", "application/apply-patch+yaml"

-- Media types that the server does not read in bodies.
local UNREAD = { "application/cbor", "text/plain", "application/xml", "json", "a/b/c", ";", "*/*", "\xff" }

-- How many objects of each kind; for a longer search: more of them, and others.
local OBJECTS = tonumber(os.getenv "ANY_BODY_OBJECTS") or 4
local SEED = tonumber(os.getenv "ANY_BODY_SEED") or 0

-- Messages that a real server, too, answers with 500, word for word.
local UPSTREAM = {
  "^strconv%.ParseUint: ", "^expected a %[%]interface {}, but received ", "^list element types are not identical: ",
  "^unable to find api field in struct ", "^map: .* does not contain declared", "^failed to create typed patch object ",
  "^unknown patch type: ", "^resourceVersion should not be set on objects to be created",
  "^failed to merge config: ", "^target%.",
}


local function is_upstream(message)
  for _, pattern in ipairs(UPSTREAM) do
    if message:find(pattern) then
      return true
    end
  end
  return false
end


local function nested(levels, open, close)
  return open:rep(levels) .. "1" .. close:rep(levels)
end


-- Bodies that are the same for all kinds.
local PLAIN = {
  "", "\0", "null", "[]", '"x"', "{", "k8s\0", "k8s\0\10",
  "\x1f\x8b\8\0\0\0\0\0\0\3\xab\xae\5\0\x43\xbf\xa6\xa3\2\0\0\0",
  '{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}}',
  '{"metadata":{"name":"a","generation":99999999999999999}}',
  '{"metadata":{"name":"a","generation":99999999999999999999}}',
  '{"metadata":{"name":"a"},"spec":' .. nested(5000, '{"a":', "}") .. "}", nested(10001, "[", "]"), "\xd9\xd9\xf7\xa0",
  '{"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":-9}',
  '{"metadata":{"name":"a"},"spec":null}',
  '{"metadata":{"name":"a"},"spec":{"token":null,"user":null,"groups":[null]}}',
  '{"metadata":{"name":"a"},"spec":{"resourceAttributes":null,"nonResourceAttributes":{"path":null}}}',
}


describe("a server that is sent any body", function()
  local world, found

  -- Sends it; what is wrong with the answer goes to `found`, each once.
  local function try(method, path, body, media, headers)
    local all = { ["content-type"] = media }
    for name, value in pairs(headers or {}) do
      all[name] = value
    end
    local ok, reply = pcall(world.send, world, method, path, body, all)
    local wrong = not ok and "raised " .. tostring(reply) or not reply.code and "no answer" or nil
    if ok and reply.on_close then
      reply.on_close()
    end
    if not wrong and reply.code >= 500 and reply.code ~= 501 then
      local message = host.json.decode(reply.body).message
      wrong = not is_upstream(message) and ("%d %s"):format(reply.code, message) or nil
    end
    if wrong then
      found[#found + 1] = ("%s %s %s %s: %s"):format(method, path, media, body:sub(1, 300), wrong)
    end
    return reply
  end

  -- One object in all the ways there are to send it.
  local function send_all(path, text, packed, random)
    local one, dry = path .. "/a", "?dryRun=All"
    local also = random:upto(2) == 1 and "?fieldValidation=Strict" or dry
    try("POST", path .. also, text, JSON)
    try("POST", path .. also, text, YAML)
    try("PUT", one .. also, text, JSON)
    try("PUT", one .. "/status" .. also, text, JSON)
    try("PATCH", one .. also, text, MERGE)
    try("PATCH", one .. also, text, STRATEGIC)
    try("PATCH", one .. also:gsub("?", "?fieldManager=m&force=true&"), text, APPLY)
    try("PATCH", one .. "/status" .. dry, text, random:upto(2) == 1 and MERGE or STRATEGIC)
    try("PATCH", one .. dry, ('[{"op":"replace","path":"/spec","value":%s}]'):format(text), JSON_PATCH)
    try("POST", path .. dry, random:damage(text), random:upto(2) == 1 and JSON or YAML)
    try("DELETE", one .. dry, text, JSON)
    if packed then
      try("POST", path .. also, packed, PROTOBUF)
      try("PUT", one .. also, random:damage(packed), PROTOBUF)
      try("POST", path .. dry, random:damage(packed), PROTOBUF)
    end
  end

  -- The same for the parts of an object: bindings, scales, tokens and the like.
  local function send_parts(res, path, text)
    for _, part in ipairs(res.parts) do
      if part.name ~= "status" then
        try("POST", path .. "/a/" .. part.name, text, JSON)
        try("PUT", path .. "/a/" .. part.name, text, JSON)
        try("PATCH", path .. "/a/" .. part.name, text, MERGE)
      end
    end
  end

  before_each(function()
    found = {}
    world = testserver.new { accounts = false }
  end)

  local function check()
    assert.same({}, found)
    assert.equal(200, world:send("GET", "/readyz").code)
    world:must("POST", testserver.CONFIGMAPS, { metadata = { name = "alive" } })
  end

  for _, res in ipairs(kinds.all()) do
    local path = (res.group == "" and "/api/" or "/apis/" .. res.group .. "/") .. res.version
      .. (res.namespaced and "/namespaces/default/" or "/") .. res.plural

    it("answers what it says of " .. res.plural .. " in " .. res.api_version, function()
      local random, name = testobjects.new(res, SEED), builtin.name_of(res.group, res.version, res.kind)
      for _ = 1, OBJECTS do
        local object = random:object(name, "a")
        local packed = testobjects.protobuf(name, res.api_version, res.kind, object)
        send_all(path, host.json.encode(object), packed, random)
        send_all(path, host.json.encode(random:spoil(object)), nil, random)
        send_parts(res, path, host.json.encode(object))
      end
      check()
    end)

    it("refuses what is no object of " .. res.plural .. " in " .. res.api_version, function()
      for _, body in ipairs(PLAIN) do
        for _, media in ipairs { JSON, YAML, PROTOBUF } do
          try("POST", path, body, media)
        end
        try("PUT", path .. "/a", body, JSON)
        try("DELETE", path .. "/a", body, PROTOBUF)
        for _, media in ipairs { MERGE, STRATEGIC, JSON_PATCH, APPLY } do
          try("PATCH", path .. "/a?fieldManager=m", body, media)
        end
        try("POST", path, body, JSON, { ["content-encoding"] = "gzip" })
        try("DELETE", path .. "?dryRun=All", body, JSON)
      end
      for _, media in ipairs(UNREAD) do
        local code = try("POST", path, "{}", media).code
        assert.truthy(code == 415 or code == 405, media)
        code = try("PUT", path .. "/a", "{}", media).code
        assert.truthy(code == 415 or code == 405, media)
        code = try("PATCH", path .. "/a", "{}", media).code
        assert.truthy(code == 415 or code == 405, media)
      end
      check()
    end)
  end
end)
