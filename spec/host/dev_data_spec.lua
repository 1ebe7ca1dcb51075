-- moonloop dev --data: what was answered with a 2xx is there again, whatever happened in between.
local dev = require "spec.host.support.dev"
local shell = require "spec.e2e.support.shell"
local wait = require "spec.e2e.support.wait"

local CONFIGMAPS = "/api/v1/namespaces/default/configmaps"

local function start(data, opts)
  return dev.start({ "--data", data, "--pods", "none" }, opts)
end


local function make(server, name, size)
  return server:must("POST", CONFIGMAPS, { metadata = { name = name }, data = { k = ("x"):rep(size or 1) } })
end


-- Names of the ConfigMaps that specs made.
local function names(server)
  local found = {}
  for _, item in ipairs(server:must("GET", CONFIGMAPS).items) do
    if item.metadata.name:find "^a" then
      found[#found + 1] = item.metadata.name
    end
  end
  return found
end


local function create_request(server, name)
  local body = ('{"metadata":{"name":"%s"}}'):format(name)
  return ("POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"
    .. "Content-Length: %d\r\n\r\n%s"):format(CONFIGMAPS, server.token, #body, body)
end


describe("moonloop dev --data", function()
  local data, file

  before_each(function()
    data = shell.path "data"
    file = data .. "/cluster.log"
  end)

  after_each(dev.stop_all)

  it("keeps objects with their uids, and goes on counting revisions", function()
    local server = start(data)
    server:must("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", shell.read "crds/at.yaml",
      { type = "application/yaml" })
    local ats = "/apis/cnat.programming-kubernetes.info/v1alpha1/namespaces/default/ats"
    wait.till("Ats to be served", 5, function() return server:get(ats) end)
    local at = server:must("POST", ats, {
      apiVersion = "cnat.programming-kubernetes.info/v1alpha1", kind = "At",
      metadata = { name = "a" }, spec = { schedule = "2020-01-01T00:00:00Z", command = "true" },
    })
    local first = make(server, "a1")
    make(server, "a2")
    server:must("DELETE", CONFIGMAPS .. "/a2")
    assert.equal(0, server:stop())
    assert.equal("600", shell.must("stat -c %a " .. file):match "%d+")

    server = start(data)
    assert.same({ "a1" }, names(server))
    assert.same(first, server:get(CONFIGMAPS .. "/a1"))
    assert.same(at.metadata.uid, server:get(ats .. "/a").metadata.uid)
    local revision = math.tointeger(tonumber(make(server, "a3").metadata.resourceVersion))
    assert.is_true(revision > math.tointeger(tonumber(at.metadata.resourceVersion)) + 3, revision)
    assert.equal("Active", server:get("/api/v1/namespaces/default").status.phase)
  end)

  it("does not keep the heartbeats of its node, but gives out no revision again", function()
    local lease = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/moonloop"
    local with_node = { "--data", data, "--pods", "fake" }
    local server = dev.start(with_node)
    local first = server:must("GET", lease)
    server.host:kill()
    assert.is_nil(shell.read(file):find("kube-node-lease/moonloop", 1, true))
    assert.is_nil(shell.read(file):find(first.metadata.uid, 1, true))
    server = dev.start(with_node)
    local second = server:must("GET", lease)
    assert.not_equal(first.metadata.uid, second.metadata.uid)
    assert.is_true(tonumber(second.metadata.resourceVersion) > tonumber(first.metadata.resourceVersion))
  end)

  it("loses nothing that was answered when it is killed", function()
    local server = start(data)
    local connection = server:connect()
    for i = 1, 400 do
      assert(connection:send(create_request(server, ("a%03d"):format(i))))
    end
    local created = 0
    while true do
      local line = connection:receive "*l"
      if not line then
        break
      elseif line:find "^HTTP/1%.1 201" then
        created = created + 1
        if created == 50 then
          shell.run("kill -KILL " .. server.host.pid) -- what it has answered by then is on its way
        end
      end
    end
    connection:close()
    server.host:till_exit(5)
    assert.is_true(created >= 50, created)

    local found = names(start(data))
    assert.is_true(#found >= created, #found .. " of " .. created)
    for i = 1, created do
      assert.equal(("a%03d"):format(i), found[i])
    end
  end)

  it("drops a last change that was not written whole", function()
    local server = start(data)
    make(server, "a1")
    make(server, "a2")
    server.host:kill()
    local text = shell.read(file)
    for _, cut in ipairs { 1, 2, 30 } do
      shell.write(file, text:sub(1, -1 - cut))
      server = start(data)
      assert.same({ "a1" }, names(server))
      server:till_said "the last change had not been written whole; it is dropped"
      server.host:kill()
    end
  end)

  it("does not guess at damage in the middle, and leaves the file as it is", function()
    local server = start(data)
    make(server, "a1")
    make(server, "a2")
    server.host:kill()
    local text = shell.read(file)
    local at = assert(text:find('"a1"', 1, true))
    local damaged = text:sub(1, at) .. "b" .. text:sub(at + 2)
    local line = at - #text:sub(1, at):match "[^\n]*$" + 1
    shell.write(file, damaged)
    local result = dev.command("--data", data)
    assert.same({ 1, "" }, { result.code, result.out })
    assert.equal(("moonloop dev: cannot keep state: %s: damaged at byte %d; move the file away to begin anew\n")
      :format(file, line), result.err)
    assert.equal(damaged, shell.read(file))
  end)

  it("is for one process at a time", function()
    local server = start(data)
    local result = dev.command("--data", data)
    assert.same({ 1, "" }, { result.code, result.out })
    assert.equal(("moonloop dev: cannot keep state: %s: another process uses it\n"):format(file), result.err)
    make(server, "a1")
    server.host:kill()
    assert.same({ "a1" }, names(start(data)))
  end)

  it("says why a folder cannot be used", function()
    local path = shell.path "file"
    shell.write(path, "")
    for _, folder in ipairs { path, path .. "/below", "/nonexistent/below" } do
      local result = dev.command("--data", folder)
      assert.equal(1, result.code)
      assert.matches("^moonloop dev: cannot keep state: " .. folder:gsub("%p", "%%%0") .. "[^\n]+\n$", result.err)
    end
  end)

  -- A limit of the file's size does what a full disk does, with another error.
  it("refuses writes when the disk is full, goes on reading, and writes again when there is room", function()
    local server = start(data, { before = "trap '' XFSZ; ulimit -S -f 400" })
    local made, code, answer = -1, 201
    while code == 201 and made < 20 do
      made = made + 1
      local object = { metadata = { name = ("a%03d"):format(made) }, data = { k = ("x"):rep(20000) } }
      code, answer = server:ask("POST", CONFIGMAPS, object)
    end
    assert.same({ 500, "InternalError" }, { code, answer.reason })
    assert.matches("cluster.log: File too large", answer.message, 1, true)
    local before = names(server)
    assert.equal(made, #before)
    local changed = { metadata = { name = "a000", labels = { changed = "yes" } }, data = { k = ("y"):rep(20000) } }
    assert.equal(500, (server:ask("PUT", CONFIGMAPS .. "/a000", changed)))
    assert.is_nil(server:get(CONFIGMAPS .. "/a000").metadata.labels)

    shell.must(("prlimit --pid %d --fsize=unlimited"):format(server.host.pid))
    make(server, "a-more", 20000)
    server:must("PUT", CONFIGMAPS .. "/a000", changed)
    assert.equal(0, server:stop())
    server = start(data)
    assert.equal(made + 1, #names(server))
    assert.equal(changed.data.k, server:get(CONFIGMAPS .. "/a000").data.k)
  end)
end)
