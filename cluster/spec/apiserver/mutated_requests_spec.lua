-- The requests of cluster/spec/conformance with values of their bodies replaced by others, by an administrator and by
-- somebody who has all rights but those to give rights away: no answer reports a mistake of the server's own.
local cases = require "cluster.spec.conformance.lib.cases"
local embedded = require "cluster.spec.conformance.lib.embedded"
local host = require "cluster.host"
local hostlua = require "hostlua"
local player = require "cluster.spec.conformance.lib.player"

local json = host.json
local null = json.null

-- So many have to be sent, lest a change of the runner leaves all of them out.
local SENT_MIN = 1000
local SEED = 20261127
local CHANGES_MAX = 3 -- of one body

local RBAC = "/apis/rbac.authorization.k8s.io/v1/"
local BOB = { name = "bob", groups = { "system:authenticated" } }
local VERBS = { "get", "list", "watch", "create", "update", "patch", "delete" }

local VALUES = {
  null, "", "x", "\0", "a/b", "*", "1Gi", "-5", "2020-01-01T00:00:00Z", ("y"):rep(300), 0, -1, 1, 1.5, 2 ^ 53, 1e300,
  math.maxinteger, math.mininteger, true, false, {}, { [""] = "" }, { x = null }, { x = {} }, json.array {},
  json.array { null }, json.array { {} }, json.array { "" }, json.array { 1 }, json.array { json.array {} },
}


local function any_of(list)
  return list[math.random(#list)]
end


-- All places in a value, always in the same order: { container =, key = }.
local function places_in(value, places)
  local keys = {}
  for key in pairs(value) do
    keys[#keys + 1] = key
  end
  table.sort(keys)
  for _, key in ipairs(keys) do
    places[#places + 1] = { container = value, key = key }
    if type(value[key]) == "table" then
      places_in(value[key], places)
    end
  end
  return places
end


local function change(place)
  local container, key, how = place.container, place.key, math.random(10)
  if json.is_array(container) and how <= 2 then
    table.insert(container, json.copy(any_of(VALUES)))
  elseif json.is_array(container) and how == 3 then
    table.remove(container, key)
  elseif how == 1 then
    container[key] = nil
  else
    container[key] = json.copy(any_of(VALUES))
  end
end


-- The body with some of its values changed; nil when there is nothing to change.
local function mutated(text)
  local value = json.decode(text)
  if type(value) ~= "table" or next(value) == nil then
    return nil
  end
  for _ = 1, math.random(CHANGES_MAX) do
    local places = places_in(value, {})
    if #places > 0 then
      change(any_of(places))
    end
  end
  return json.encode(value)
end


-- Plays scenarios on a server, and sends a mutated request before each that has a body. Most of them change nothing.
local Mutating = setmetatable({}, { __index = embedded })
Mutating.__index = Mutating


function Mutating:send(request, body, user)
  local path, query = request.path:match("^([^?]*)%??(.*)$")
  local reply = {}
  function reply.send(_, code, _, text) reply.code, reply.body = code, text end
  function reply.start() end
  function reply.write() return 0 end
  reply.finish, reply.abort = reply.start, reply.start
  if math.random(4) > 1 then
    query = (query ~= "" and query .. "&" or "") .. "dryRun=All"
  end
  self.server:handle({
    method = request.method, path = path, query = query, body = body, user = user,
    headers = { ["content-type"] = request.headers["content-type"], ["user-agent"] = "mutant" },
  }, reply)
  hostlua.poll()
  self.sent = self.sent + 1
  if not reply.code or reply.body:find("see the server's log", 1, true) then
    self.mistakes[#self.mistakes + 1] = ("%s %s as %s: %s"):format(request.method, path, user.name, body:sub(1, 500))
  end
end


function Mutating:request(request)
  local body = request.body and request.method ~= "DELETE" and mutated(request.body)
  if body then
    self:send(request, body, math.random(2) == 1 and BOB or self.server.administrator)
  end
  return embedded.request(self, request)
end


local function new_transport()
  local self = setmetatable(embedded.new(), Mutating)
  self.sent, self.mistakes = 0, {}
  local role = { apiGroup = "rbac.authorization.k8s.io", kind = "ClusterRole", name = "bob" }
  local rule = { apiGroups = { "*" }, resources = { "*" }, verbs = VERBS }
  assert(self.server:call("POST", RBAC .. "clusterroles", { metadata = { name = "bob" }, rules = { rule } }) == 201)
  assert(self.server:call("POST", RBAC .. "clusterrolebindings", {
    metadata = { name = "bob" }, roleRef = role,
    subjects = { { apiGroup = "rbac.authorization.k8s.io", kind = "User", name = "bob" } },
  }) == 201)
  return self
end


describe("A request with other values than it should have is answered:", function()
  local transport, sent

  setup(function()
    math.randomseed(SEED)
    transport, sent = new_transport(), 0
  end)
  teardown(function() transport:close() end)

  for _, case in ipairs(cases.load {}) do
    if not case.options then
      it(case.name, function()
        transport.mistakes = {}
        player.play(case.scenario, transport)
        assert.same({}, transport.mistakes)
        sent = transport.sent
      end)
    end
  end

  it("more than a thousand of them", function()
    assert.is_true(sent >= SENT_MIN, sent)
  end)
end)
