-- A script that makes something outside of the cluster: it has the finalizer before it asks, one token for each object,
-- and cleans up.
local cjson = require "cjson"
local host = require "cluster.host"
local moonloop = require "moonloop"
local testing = require "moonloop.testing"

local Thing = moonloop.kind("example.com/v1", "Thing")
local Secret = moonloop.kind("v1", "Secret")

local FINALIZER = "moonloop.dev/account"

describe("An account", function()
  local world, accounts, tokens, is_up

  before_each(function()
    world = testing.world { now = "2026-07-01T10:00:00Z" }
    accounts, tokens, is_up = {}, {}, true
    world.http(function(request)
      local name = request.method == "PUT" and cjson.decode(request.body).name or "a"
      local thing = world.get(Thing, name)
      assert(thing.metadata.finalizers[1] == FINALIZER, "asked before the finalizer was there")
      local uid = assert(request.url:match "^https://billing%.example%.com/accounts/(.+)$")
      if not is_up then
        return nil, "connection refused"
      elseif request.method == "DELETE" then
        accounts[uid] = nil
        return { status = 204 }
      end
      tokens[request.headers.Authorization] = true
      accounts[uid] = cjson.decode(request.body).name
      return { status = 200, body = '{"number": 7}' }
    end)
  end)

  local function make(name)
    world.apply { apiVersion = "example.com/v1", kind = "Thing", metadata = { name = name or "a" }, spec = {} }
  end

  it("is made with a token that is made once", function()
    make()
    world.expect(Thing, "a", { status = { account = 7, message = "" } })
    world.patch(Thing, "a", { metadata = { labels = { x = "y" } } })
    world.restart()
    local token = host.base64.decode(world.get(Secret, "a-token").data.token)
    assert.same({ ["Bearer " .. token] = true }, tokens)
    assert.equal("a", accounts[world.get(Thing, "a").metadata.uid])
    assert.equal(1, world.metric("calls_total", { method = "PUT" })) -- of the process that began last
    assert.equal(7, world.metric("account_number", { name = "a" }))
  end)

  it("is made when the service is back", function()
    is_up = false
    make()
    world.expect(Thing, "a", { status = { message = "connection refused" } })
    is_up = true
    world.advance "1m"
    world.expect(Thing, "a", { status = { account = 7 } })
  end)

  it("is counted with the others, under what became of it, as long as it is there", function()
    local function counted(state)
      return world.metric("accounts", { state = state })
    end
    make()
    is_up = false
    make "b"
    make "c"
    assert.same({ 1, 2 }, { counted "open", counted "refused" })
    is_up = true
    world.advance "1m"
    assert.same({ 3 }, { counted "open", counted "refused" })
    world.delete(Thing, "a")
    world.patch(Thing, "b", { metadata = { labels = { x = "y" } } })
    assert.same({ 2 }, { counted "open" })
  end)

  it("goes with its object, however long the service is away", function()
    make()
    is_up = false
    world.delete(Thing, "a")
    world.advance "5m"
    assert.truthy(world.get(Thing, "a"))
    is_up = true
    world.advance "10s"
    world.expect(Thing, "a", false)
    assert.same({}, accounts)
    assert.is_nil(world.metric "account_number")
  end)
end)
