-- Where a container finds the program that its image stands for.
local images = require "cluster.kubelet.images"

local function container(fields)
  local made = { name = "c", image = "quay.io/prometheus/prometheus:v3.1", volumeMounts = {} }
  for key, value in pairs(fields) do
    made[key] = value
  end
  return made
end


local function mounted(path)
  return { volumeMounts = { { name = "db", mountPath = path } } }
end


describe("The program of an image", function()
  local named = images.new { prometheus = { source = "/home/me/bin/prometheus", arguments = { "--x" } } }
  local placed = images.new {
    prometheus = { source = "/home/me/bin/p2", target = "/bin//x/../prometheus", arguments = {} },
  }

  local PLACES = {
    { "is in the root", {}, "/prometheus" },
    { "is where the command looks for it", { command = { "/bin/prometheus" } }, "/bin/prometheus" },
    { "is where the command looks for it, in a clean path", { command = { "/bin/../app//prometheus" } },
      "/app/prometheus" },
    { "is in the root for a command that is another's", { command = { "/bin/sh", "-c", "x" } }, "/prometheus" },
    { "is in the path for a command that is its name", { command = { "prometheus" } }, "/usr/local/bin/prometheus" },
    { "makes way for a volume of its name", mounted "/prometheus", "/usr/local/bin/prometheus" },
    { "makes way for a volume below its name", mounted "/prometheus/data/", "/usr/local/bin/prometheus" },
    { "makes way for a folder to start in", { workingDir = "/prometheus" }, "/usr/local/bin/prometheus" },
    { "stays in the root beside a volume with a longer name", mounted "/prometheus-db", "/prometheus" },
  }
  for _, case in ipairs(PLACES) do
    it(case[1], function()
      local found = named:find(container(case[2]))
      assert.same({ source = "/home/me/bin/prometheus", target = case[3], arguments = { "--x" } }, found)
    end)
  end

  it("is where its option says", function()
    assert.equal("/bin/prometheus", placed:find(container {}).target)
    assert.equal("/bin/prometheus", placed:find(container { command = { "/x/p2" } }).target)
  end)

  local TAKEN = {
    { placed, mounted "/bin/prometheus", 'volume "db"' },
    { placed, { workingDir = "/bin/prometheus" }, "its workingDir" },
    { named, { command = { "/a/prometheus" }, volumeMounts = mounted("/a/prometheus").volumeMounts }, 'volume "db"' },
  }
  for i, case in ipairs(TAKEN) do
    it("is none, and says why, where its place is taken: " .. i, function()
      local found = case[1]:find(container(case[2]))
      assert.is_nil(found.source)
      assert.equal(("the program of image prometheus cannot be at %s: %s is there. "
        .. "--image prometheus=PROGRAM:PATH says another path"):format(found.target, case[3]), found.why)
    end)
  end

  it("is none of another image", function()
    assert.is_nil(named:find { name = "c", image = "busybox" })
  end)
end)


describe("The name of an image", function()
  it("is one in all forms that are", function()
    for _, name in ipairs {
      "busybox", "busybox:1.36", "library/busybox", "registry.k8s.io/e2e-test-images/agnhost:2.59", "a_b/c__d/e-f--g.h",
      "localhost/x", "localhost:5000/x:y", "Registry/x", "[::1]:5000/x", "10.0.0.1:80/x/y:" .. ("t"):rep(128),
      "x@sha256:" .. ("a"):rep(64), "r.io/x:v1@sha512+b64:" .. ("A"):rep(32), "1",
    } do
      assert.is_nil(images.problem_of_name(name), name)
    end
  end)

  it("is refused in the kubelet's words", function()
    local function problem(name)
      local why = images.problem_of_name(name)
      local before = ("Failed to apply default image tag %q: couldn't parse image name %q: "):format(name, name)
      assert.equal(before, why and why:sub(1, #before))
      return why:sub(#before + 1)
    end
    for _, name in ipairs {
      "x y", "x:", "x:.1", "x/", "/x", "x//y", "-x", "x-", "x..y", "x___y", "x:" .. ("t"):rep(129), "x@sha256:12",
      "r.io/x@", "-r.io/x", "r.io:port/x", "x:1:2", "ü", "x\n",
    } do
      assert.equal("invalid reference format", problem(name))
    end
    assert.equal("invalid reference format: repository name (library/Busybox) must be lowercase", problem "Busybox")
    assert.equal("invalid reference format: repository name (team/App) must be lowercase", problem "r.io/team/App:1")
    local digits = ("0123456789abcdef"):rep(4)
    assert.equal(("invalid repository name (%s), cannot specify 64-byte hexadecimal strings"):format(digits),
      problem(digits))
  end)
end)
