-- The terminal of moonloop dev: what it prints, how much of it, and what it says at the end.
local testserver = require "testserver"

local PODS, SERVICES = "/api/v1/namespaces/default/pods", "/api/v1/namespaces/default/services"
local AGENT = { ["user-agent"] = "moonloop/0.1" }
local LIMIT = 50 -- lines about objects of one kind in a second


-- A module as it is when moonloop dev starts.
local function fresh(name)
  package.loaded[name] = nil
  return require(name)
end


describe("the terminal of moonloop dev", function()
  local world, printer, stdout, printed

  before_each(function()
    world, printer, stdout, printed = testserver.new(), fresh "cluster.dev.event_printer", io.stdout, {}
    rawset(io, "stdout", {
      flush = function() end,
      write = function(_, ...) printed[#printed + 1] = table.concat { ... } end,
    })
  end)

  after_each(function() rawset(io, "stdout", stdout) end)

  -- Returns the lines since the last call, without times.
  local function told()
    local text = table.concat(printed):gsub("%d%d:%d%d:%d%d  ", ""):gsub(" +", " ")
    printed = {}
    return text
  end

  local function by(manager)
    return "?fieldManager=" .. manager
  end

  local function make_services(count, manager)
    for i = 1, count do
      world:must("POST", SERVICES .. by(manager), { metadata = { name = "s" .. i }, spec = { clusterIP = "None" } })
    end
  end

  local function make_pod(name)
    local containers = { { name = "c", image = "i" } }
    return world:must("POST", PODS, { metadata = { name = name }, spec = { containers = containers } })
  end

  local function print_lines(pod, first, last)
    for i = first, last do
      printer.container_line(pod, "c", ("2026-01-01T00:00:00Z F %d\n"):format(i))
    end
  end

  describe("about objects", function()
    before_each(function() printer.start(world.server, {}) end)

    it("has what a script makes and deletes, of any kind", function()
      make_services(1, "moonloop-web")
      world:patch("merge", SERVICES .. "/s1", { metadata = { labels = { a = "b" } } })
      world:must("DELETE", SERVICES .. "/s1")
      assert.equal("service/s1 created\nservice/s1 deleted\n", told())
    end)

    it("has not what others make", function()
      for _, manager in ipairs { "kubectl", "moonloop-dev" } do
        make_services(1, manager)
        world:must("DELETE", SERVICES .. "/s1")
      end
      assert.equal("", told())
    end)

    it("has their phase in place of the word created", function()
      local pod = { metadata = { name = "p" }, spec = { containers = { { name = "c", image = "i" } } } }
      world:must("POST", PODS .. by "moonloop-web", pod)
      assert.equal("pod/p Pending\n", told())
    end)

    it("has no namespace before the names of those that are in none", function()
      local roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
      world:must("POST", roles .. by "moonloop-web", { metadata = { name = "r", labels = { a = "b" } } })
      world:must("DELETE", roles .. "/r")
      assert.equal("clusterrole/r created\nclusterrole/r deleted\n", told())
    end)

    it("has so many lines a second about one kind, and then their number", function()
      make_services(LIMIT + 20, "moonloop-web")
      assert.equal(LIMIT, select(2, told():gsub("\n", "")))
      make_pod "p"
      assert.equal("pod/p Pending\n", told())
      world:pass(1)
      assert.equal("services … 20 lines more; see kubectl get services\n", told())
      world:must("DELETE", SERVICES .. "/s1")
      assert.equal("service/s1 deleted\n", told())
    end)

    it("has so many warnings a second", function()
      for i = 1, LIMIT + 7 do
        world:must("POST", "/api/v1/namespaces/default/events", { metadata = { name = "e" .. i }, type = "Warning",
          reason = "Bad", involvedObject = { kind = "Pod", namespace = "default", name = "p" } })
      end
      assert.equal(LIMIT, select(2, told():gsub("pod/p ! Bad", "")))
      world:pass(1)
      assert.equal("events ! … 7 warnings more; see kubectl get events\n", told())
    end)
  end)

  describe("about containers", function()
    local pod
    before_each(function() pod = make_pod "web-1" end)

    it("has their first lines, and then how many follow, ever more rarely", function()
      printer.start(world.server, {})
      print_lines(pod, 1, 12)
      assert.matches("web%-1 | 1\n.*web%-1 | 10\n$", told())
      world:pass(1)
      assert.equal("web-1 | … 2 lines more; see kubectl logs\n", told())
      print_lines(pod, 13, 20)
      world:pass(1)
      assert.equal("", told())
      world:pass(1)
      assert.equal("web-1 | … 10 lines more; see kubectl logs\n", told())
      world:pass(60)
      assert.equal("", told())
    end)

    it("has the first lines of each", function()
      printer.start(world.server, {})
      print_lines(pod, 1, 10)
      local other = make_pod "web-2"
      told()
      print_lines(other, 1, 1)
      assert.equal("web-2 | 1\n", told())
    end)

    it("has all that --logs asks for, by the beginning of a pod's name", function()
      printer.start(world.server, { "db", "web" })
      print_lines(pod, 1, 100)
      assert.equal(100, select(2, told():gsub("\n", "")))
    end)

    it("has a thousand lines of it in a second", function()
      printer.start(world.server, { "all" })
      print_lines(pod, 1, 1500)
      assert.equal(1000, select(2, told():gsub("\n", "")))
      world:pass(1)
      assert.equal("web-1 | … 500 lines more; see kubectl logs\n", told())
    end)

    it("has nothing of others where --logs says none", function()
      printer.start(world.server, { "web-2", "none" })
      print_lines(pod, 1, 20)
      print_lines(make_pod "web-2", 1, 1)
      world:pass(1)
      assert.equal("pod/web-2 Pending\nweb-2 | 1\n", told())
    end)
  end)

  describe("at the end", function()
    local writes
    before_each(function()
      writes = fresh "cluster.dev.script_writes"
      writes.start(world.server)
    end)

    local function summary()
      writes.tell(printer.print_line)
      return told()
    end

    it("has what scripts made, changed, deleted, and failed to write", function()
      for _, name in ipairs { "a", "b" } do
        world:must("POST", testserver.CONFIGMAPS, { metadata = { name = name } }, AGENT)
      end
      world:must("PUT", testserver.CONFIGMAPS .. "/a", { metadata = { name = "a" }, data = { k = "v" } }, AGENT)
      world:must("DELETE", testserver.CONFIGMAPS .. "/a", nil, AGENT)
      world:call("POST", SERVICES, { metadata = { name = "s" } }, AGENT)
      assert.equal("writes of scripts 2 made, 1 changed, 1 deleted, 1 failed\n"
        .. " configmaps 2 made, 1 changed, 1 deleted\n services 1 failed\n", summary())
    end)

    it("has nothing of others, of Events, and of what the host tries again", function()
      world:configmap "a"
      world:call("POST", testserver.CONFIGMAPS, { metadata = { name = "a" } }, AGENT)
      world:call("DELETE", testserver.CONFIGMAPS .. "/b", nil, AGENT)
      world:call("GET", testserver.CONFIGMAPS .. "/a", nil, AGENT)
      world:must("POST", "/api/v1/namespaces/default/events", { metadata = { name = "e" },
        involvedObject = { kind = "Pod", namespace = "default", name = "p" } }, AGENT)
      assert.equal("", summary())
    end)

    it("has nine lines at most", function()
      for _, plural in ipairs { "secrets", "configmaps", "serviceaccounts", "endpoints", "limitranges",
        "resourcequotas" } do
        world:must("POST", "/api/v1/namespaces/default/" .. plural, { metadata = { name = "a" } }, AGENT)
      end
      for _, path in ipairs { "clusterroles", "namespaces/default/roles" } do
        world:must("POST", "/apis/rbac.authorization.k8s.io/v1/" .. path, { metadata = { name = "a" } }, AGENT)
      end
      world:must("POST", "/api/v1/namespaces", { metadata = { name = "a" } }, AGENT)
      local text = summary()
      assert.equal(9, select(2, text:gsub("\n", "")))
      assert.matches("\n 2 more kinds \n$", text)
    end)
  end)
end)
