local testserver = require "testserver"

local PATH = testserver.CONFIGMAPS


describe("watches", function()
  local world
  before_each(function() world = testserver.new { accounts = false, history = 5 } end)

  local function watch(query)
    return world:send("GET", PATH .. "?watch=true" .. (query and "&" .. query or ""))
  end

  it("begin with what there is, and go on with each change", function()
    world:configmap "a"
    local stream = watch()
    world:configmap "b"
    world:must("DELETE", PATH .. "/a")
    assert.same({ "ADDED a", "ADDED b", "DELETED a" }, stream:short())
  end)

  it("begin after a revision", function()
    local made = world:configmap "a"
    world:configmap "b"
    local stream = watch("resourceVersion=" .. made.metadata.resourceVersion)
    world:configmap "c"
    assert.same({ "ADDED b", "ADDED c" }, stream:short())
  end)

  it("end the initial events with a bookmark, when asked for it", function()
    world:configmap "a"
    local stream = watch "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    local events = stream:events()
    assert.same({ "ADDED", "BOOKMARK" }, { events[1].type, events[2].type })
    assert.equal("true", events[2].object.metadata.annotations["k8s.io/initial-events-end"])
  end)

  it("remember no more than some megabytes of changes", function()
    world = testserver.new { accounts = false }
    local made = world:configmap("a", { data = { k = ("x"):rep(1000000) } })
    local late
    for i = 1, 40 do
      made.data.n = tostring(i)
      made = world:must("PUT", PATH .. "/a", made)
      late = late or i == 35 and made
    end
    local kept = world.server.store:collection "configmaps"
    assert.is_true(kept.last - kept.first < 17, kept.last - kept.first)
    assert.is_nil(kept.ring[kept.last].lines)
    assert.equal(5, #watch("resourceVersion=" .. late.metadata.resourceVersion):events())
    assert.equal("ERROR", watch("resourceVersion=6"):events()[1].type)
  end)

  it("say so when the revision is forgotten", function()
    local made = world:configmap "a"
    for i = 1, 6 do
      world:configmap("b" .. i)
    end
    local stream = watch("resourceVersion=" .. made.metadata.resourceVersion)
    local events = stream:events()
    local failure = events[1].object
    assert.same({ 1, "ERROR", 410, "Expired" }, { #events, events[1].type, failure.code, failure.reason })
    assert.is_true(stream.finished)
  end)

  it("show only what is selected: what comes and what goes", function()
    local stream = watch "labelSelector=color%3Dblue"
    world:configmap("a", { metadata = { labels = { color = "red" } } })
    world:patch("merge", PATH .. "/a", { metadata = { labels = { color = "blue" } } })
    world:patch("merge", PATH .. "/a", { data = { k = "v" } })
    local _, last = world:patch("merge", PATH .. "/a", { metadata = { labels = { color = "red" } } })
    world:must("DELETE", PATH .. "/a")
    assert.same({ "ADDED a", "MODIFIED a", "DELETED a" }, stream:short())
    local gone = stream:events()[3].object.metadata
    assert.equal(last.metadata.resourceVersion, gone.resourceVersion)
    assert.equal("blue", gone.labels.color)
  end)

  it("show only one object, and only one namespace", function()
    local one = watch "fieldSelector=metadata.name%3Db"
    local other = world:send("GET", "/api/v1/namespaces/work/configmaps?watch=1")
    local all = world:send("GET", "/api/v1/watch/configmaps")
    world:configmap "a"
    world:configmap "b"
    assert.same({ "ADDED b" }, one:short())
    assert.same({}, other:short())
    assert.same({ "ADDED a", "ADDED b" }, all:short())
  end)

  it("tell in the form asked for", function()
    local form = "application/json;as=%s;v=v1;g=meta.k8s.io"
    local rows = world:send("GET", PATH .. "?watch=true", nil, { accept = form:format "Table" })
    local partial = world:send("GET", PATH .. "?watch=true", nil, { accept = form:format "PartialObjectMetadata" })
    world:configmap("a", { data = { k = "v" } })
    assert.equal("a", rows:events()[1].object.rows[1].cells[1])
    assert.equal("PartialObjectMetadata", partial:events()[1].object.kind)
    assert.is_nil(partial:events()[1].object.data)
  end)

  it("bring bookmarks once a minute", function()
    local stream = watch "allowWatchBookmarks=true&timeoutSeconds=1000"
    world:configmap "a"
    world:pass(61)
    local last = stream:events()[3]
    assert.equal("BOOKMARK", last.type)
    assert.equal(tostring(world.server.store.revision), last.object.metadata.resourceVersion)
  end)

  it("end when their time is over", function()
    local stream = watch "timeoutSeconds=10"
    world:pass(9)
    assert.is_nil(stream.finished)
    world:pass(2)
    assert.is_true(stream.finished)
    world:configmap "a"
    assert.same({}, stream:short())
  end)

  it("cut who does not read", function()
    local stream = watch()
    stream.waiting = 5 * 1024 * 1024
    world:configmap "a"
    assert.is_true(stream.aborted)
    world:configmap "b"
    assert.same({ "ADDED a" }, stream:short())
  end)

  it("forget who has gone", function()
    local stream = watch()
    stream.on_close()
    world:configmap "a"
    assert.same({}, stream:short())
  end)

  it("leave out no event for a hundred who watch", function()
    local streams = {}
    for i = 1, 100 do
      streams[i] = watch()
    end
    for i = 1, 20 do
      world:configmap("c" .. i)
    end
    for _, stream in ipairs(streams) do
      assert.equal(20, #stream:events())
    end
  end)
end)
