-- The heartbeat of the node of `moonloop dev` while nothing happens, and the part of it that is kept.
local apiserver = require "cluster.apiserver"
local fake_runtime = require "cluster.kubelet.fake_runtime"
local host = require "cluster.host"
local journal = require "cluster.apiserver.journal"
local kubelet = require "cluster.kubelet"
local testserver = require "testserver"

local LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/moonloop"
local NODE = "/api/v1/nodes/moonloop"


describe("The heartbeat of the node", function()
  local world, node, kept

  before_each(function()
    world = testserver.new()
    kept = {}
    function world.server.store.on_commit(change)
      if not change.is_passing then
        kept[#kept + 1] = change.id .. " " .. change.entry.name
      end
      return true
    end
    node = kubelet.new(world.server, { runtime = fake_runtime.new(function() end), beats = true })
    node:start()
    world.settle()
  end)

  it("renews a Lease every ten seconds", function()
    local first = world:must("GET", LEASE)
    assert.same({ holderIdentity = "moonloop", leaseDurationSeconds = 40, renewTime = "2026-01-01T00:00:00.000000Z" },
      first.spec)
    assert.equal(world:must("GET", NODE).metadata.uid, first.metadata.ownerReferences[1].uid)
    world:pass(9)
    assert.same(first, world:must("GET", LEASE))
    world:pass(1)
    local second = world:must("GET", LEASE)
    assert.equal("2026-01-01T00:00:10.000000Z", second.spec.renewTime)
    assert.equal(first.metadata.uid, second.metadata.uid)
  end)

  it("reports the conditions every five minutes, and leaves the rest of the status alone", function()
    local before = world:must("GET", NODE)
    for _ = 1, 28 do
      world:pass(10)
    end
    assert.same(before.status, world:must("GET", NODE).status)
    world:pass(10)
    local after = world:must("GET", NODE).status
    assert.equal("2026-01-01T00:04:50Z", after.conditions[1].lastHeartbeatTime)
    after.conditions[1].lastHeartbeatTime = before.status.conditions[1].lastHeartbeatTime
    assert.same(before.status, after)
  end)

  it("makes the Lease again when somebody deletes it, and none for a node that is gone", function()
    world:must("DELETE", LEASE)
    world:pass(10)
    world:must("GET", LEASE)
    world:must("DELETE", NODE)
    world:pass(10)
    assert.equal(404, (world:call("GET", LEASE)))
  end)

  it("ends when the node shuts down", function()
    node:shut_down()
    local revision = world.server.store.revision
    world:pass(20)
    assert.equal(revision, world.server.store.revision)
  end)

  it("is not kept, but what others write of the same objects is", function()
    local count = #kept
    world:pass(10)
    world:pass(290)
    assert.equal(count, #kept)
    world:must("DELETE", LEASE)
    assert.equal("leases.coordination.k8s.io moonloop", kept[#kept])
  end)
end)


describe("A change that passes", function()
  local folder

  before_each(function()
    folder = os.tmpname()
    os.remove(folder)
  end)

  after_each(function()
    for _, path in ipairs { folder, folder .. ".copy" } do
      os.remove(path .. "/cluster.log")
      os.remove(path)
    end
  end)

  local function beat(server)
    server.store:passing(function()
      server:call("PATCH", "/api/v1/namespaces/default", { metadata = { annotations = {
        beat = tostring(server.store.revision),
      } } }, { content_type = "application/merge-patch+json", skips_admission = true })
    end)
  end

  local function text()
    local file = assert(io.open(folder .. "/cluster.log"))
    local bytes = file:read "a"
    file:close()
    return bytes
  end

  -- The revision from which a server would start if this one were killed now.
  local function killed()
    assert(host.file.make_folder(folder .. ".copy"))
    local file = assert(io.open(folder .. ".copy/cluster.log", "w"))
    file:write(text())
    file:close()
    local opened = assert(journal.open(folder .. ".copy"))
    opened.file:close()
    return opened.restored_state.revision
  end

  it("leaves the file as it is, but for a line now and then, and its revision is never given out again", function()
    local server = apiserver.new { data = folder }
    beat(server)
    local once, revision = text(), server.store.revision
    for _ = 1, 100 do
      beat(server)
    end
    assert.equal(once, text())
    assert.equal(revision + 100, server.store.revision)
    assert.is_true(killed() >= revision + 100)
    server:close()
    local again = apiserver.new { data = folder }
    assert.is_true(again.store.revision >= revision + 100)
    again:close()
  end)

  it("takes the next revisions before those that were set aside are used up", function()
    local server = apiserver.new { data = folder }
    beat(server)
    server.store.revision = server.store.revision + 20000
    beat(server)
    local revision = server.store.revision
    server:close()
    local again = apiserver.new { data = folder }
    assert.is_true(again.store.revision >= revision)
    assert.is_nil(select(2, again:call("GET", "/api/v1/namespaces/default")).metadata.annotations)
    again:close()
  end)
end)
