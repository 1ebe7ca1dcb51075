local collection = require "cluster.apiserver.collection"
local host = require "cluster.host"
local store = require "cluster.apiserver.store"

local RES = {
  id = "things", api_version = "v1", kind = "Thing", head = '"kind":"Thing","apiVersion":"v1",', item_head = "",
}


local function thing(name, namespace, fields)
  local object = {
    kind = "Thing", apiVersion = "v1", metadata = { name = name, namespace = namespace, uid = "u-" .. name },
  }
  for key, value in pairs(fields or {}) do
    object[key] = value
  end
  return object
end


local function keys(found, namespace, from)
  local list = {}
  found:each(namespace, from, function(entry) list[#list + 1] = entry.namespace .. "/" .. entry.name end)
  return list
end


describe("the store", function()
  local kept
  before_each(function() kept = store.new { history = 3 } end)

  it("gives each change a revision of its own", function()
    local a = kept:create(RES, thing("a", "n"))
    local b = kept:create(RES, thing("b", "n"))
    assert.equal(a.revision + 1, b.revision)
    assert.equal(tostring(b.revision), store.object(RES, b).metadata.resourceVersion)
    local gone = kept:delete(RES, a, store.object(RES, a))
    assert.equal(b.revision + 1, gone.revision)
    assert.is_nil(kept:get("things", "n", "a"))
  end)

  it("gives everybody an object of his own", function()
    local entry = kept:create(RES, thing("a", "n", { spec = { x = 1 } }))
    store.object(RES, entry).spec.x = 2
    assert.equal(1, store.object(RES, entry).spec.x)
    assert.same(store.object(RES, entry), host.json.decode(store.object_text(RES, entry)))
  end)

  it("tells everybody who subscribed, also when one of them fails", function()
    local heard = {}
    kept:subscribe(function() error "a mistake" end)
    kept:subscribe(function(event) heard[#heard + 1] = event.entry.name end)
    assert.equal("a", kept:create(RES, thing("a", "n")).name)
    assert.same({ "a" }, heard)
  end)

  it("tells a subscriber of the resources that it named, and of no other", function()
    local heard, others = {}, setmetatable({ id = "others" }, { __index = RES })
    kept:subscribe(function(event) heard[#heard + 1] = event.entry.name end, { things = true })
    kept:subscribe(function(event) heard[#heard + 1] = event.id end)
    kept:create(RES, thing("a", "n"))
    kept:create(others, thing("b", "n"))
    kept:subscribe(function() heard[#heard + 1] = "late" end, { others = true })
    kept:create(others, thing("c", "n"))
    assert.same({ "a", "things", "others", "others", "late" }, heard)
  end)

  it("tells subscribers what was before and after", function()
    local events = {}
    kept:subscribe(function(event) events[#events + 1] = event end)
    local a = kept:create(RES, thing("a", "n"))
    local b = kept:update(RES, a, thing("a", "n", { spec = {} }))
    kept:delete(RES, b, store.object(RES, b))
    assert.same({ "ADDED", "MODIFIED", "DELETED" }, { events[1].type, events[2].type, events[3].type })
    assert.is_nil(events[1].previous)
    assert.equal(a, events[2].previous)
    assert.equal(b, events[3].previous)
  end)

  it("does nothing that could not be kept", function()
    kept.on_commit = function() return nil, "disk full" end
    local entry, failure = kept:create(RES, thing("a", "n"))
    assert.is_nil(entry)
    assert.equal(500, failure.code)
    assert.is_nil(kept:get("things", "n", "a"))
    assert.equal(1, kept.revision)
  end)

  it("forgets the oldest changes of a resource", function()
    local first = kept:create(RES, thing("a", "n")).revision
    for i = 1, 3 do
      kept:create(RES, thing("b" .. i, "n"))
    end
    local found = kept:collection("things")
    assert.is_nil(found:since(first - 1))
    assert.equal(3, #found:since(first))
    kept:compact(first + 1)
    assert.is_nil(found:since(first))
    assert.equal(2, #found:since(first + 1))
  end)

  it("can be dumped and restored", function()
    kept:create(RES, thing("a", "n", { spec = { list = host.json.array {} } }))
    kept:create(RES, thing("b"))
    local records, revision = kept:dump()
    local other = store.new()
    local left = other:restore(records, function(id) return id == "things" and RES or nil end)
    other:start_at(revision)
    assert.same({}, left)
    assert.same({ records, revision }, { other:dump() })
    assert.is_nil(other:collection("things"):since(revision - 1))
    assert.equal(1, #store.new():restore({ { id = "others", text = "{}" } }, function() return nil end))
  end)
end)


describe("a collection", function()
  local found
  before_each(function()
    found = collection.new("things", 10, 0)
    for _, key in ipairs { "b/2", "a/3", "b/1", "a-b/1", "a/1" } do
      local namespace, name = key:match("(.*)/(.*)")
      found:put { namespace = namespace, name = name }
    end
  end)

  it("is ordered as keys are, bytewise", function()
    assert.same({ "a-b/1", "a/1", "a/3", "b/1", "b/2" }, keys(found))
    assert.same({ "a/1", "a/3" }, keys(found, "a"))
  end)

  it("can be walked from a key on", function()
    assert.same({ "a/3", "b/1", "b/2" }, keys(found, nil, "a/2"))
    assert.same({ "a/3" }, keys(found, "a", "1\0"))
    assert.equal(3, found:count_after(nil, "a/1"))
    assert.equal(1, found:count_after("a", "1"))
  end)

  it("keeps its order when names come and go", function()
    found:remove { namespace = "a", name = "1" }
    found:put { namespace = "a", name = "0" }
    found:put { namespace = "a", name = "1" }
    assert.same({ "a/0", "a/1", "a/3" }, keys(found, "a"))
    for _, name in ipairs { "0", "1", "3" } do
      found:remove { namespace = "a", name = name }
    end
    assert.same({ "a-b/1", "b/1", "b/2" }, keys(found))
    assert.equal(3, found:size())
    assert.equal(0, found:size "a")
  end)

  it("knows how it was", function()
    local kept = store.new()
    local a = kept:create(RES, thing("a", "n", { spec = { x = 1 } }))
    kept:create(RES, thing("b", "n"))
    local at = kept.revision
    kept:delete(RES, kept:get("things", "n", "b"), thing("b", "n"))
    kept:update(RES, a, thing("a", "n", { spec = { x = 2 } }))
    kept:create(RES, thing("c", "n"))
    local past = kept:collection("things"):at(at)
    assert.same({ "n/a", "n/b" }, keys(past))
    assert.equal(1, store.object(RES, past:get("n", "a")).spec.x)
    assert.same({ "n/a", "n/c" }, keys(kept:collection("things")))
  end)
end)
