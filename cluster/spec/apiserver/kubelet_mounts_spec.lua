-- The order of a container's mounts: of two at the same place the later one hides the other.
local testfolder = require "testfolder"

local ETC = { "/etc/hostname", "/etc/hosts", "/etc/resolv.conf" }


-- A volume's mounts at these paths, and `more` others.
local function volume_mounts(paths, more)
  local list = {}
  for i, path in ipairs(paths) do
    list[i] = { name = "v", mountPath = path }
  end
  for i = 1, more or 0 do
    list[#list + 1] = { name = "v", mountPath = ("/more-%d/x"):format(i) }
  end
  return list
end


describe("A container's mounts", function()
  local mounts

  -- The interpreter of specs starts no processes.
  setup(function()
    package.loaded["cluster.process"] = { user = function() return 0, 0 end }
    mounts = require "cluster.kubelet.mounts"
  end)

  teardown(function()
    package.loaded["cluster.process"], package.loaded["cluster.kubelet.mounts"] = nil, nil
  end)

  -- In their order. @param fields table of the container  @param program table? of its image
  local function planned(fields, program)
    local place = { base = testfolder.new(), path = "", folder = "/pod", writers = {}, immutable = {} }
    local container = { name = "c", securityContext = { runAsUser = 4711 } }
    for name, value in pairs(fields) do
      container[name] = value
    end
    local spec = { dnsPolicy = "Default", containers = { container }, volumes = { { name = "v", emptyDir = {} } } }
    local run = { pod = { metadata = { name = "p", namespace = "ns" }, spec = spec }, container = container,
      variables = {} }
    return assert(mounts.plan(place, run, program)).container.mounts
  end

  -- By path: the folder that is mounted last there, and how many are.
  local function seen(fields, program)
    local by_path, counts = {}, {}
    for _, mount in ipairs(planned(fields, program)) do
      by_path[mount.target], counts[mount.target] = mount.source, (counts[mount.target] or 0) + 1
    end
    return by_path, counts
  end

  it("give it files in /etc", function()
    local by_path = seen {}
    for _, path in ipairs(ETC) do
      assert.equal("/pod" .. path, by_path[path])
    end
    assert.equal("/pod/passwd/c", by_path["/etc/passwd"])
  end)

  -- A table's keys have another order in each process, and so has a sorted list where elements are equal.
  for _, path in ipairs { "/etc/hostname", "/etc/hosts", "/etc/resolv.conf", "/etc/passwd", "/bin/tool" } do
    it("have a volume in place of the file at " .. path, function()
      for more = 0, 20 do
        local program = { source = "/usr/bin/tool", target = "/bin/tool" }
        local by_path, counts = seen({ volumeMounts = volume_mounts({ path .. "/" }, more) }, program)
        assert.equal("/pod/volumes/v", by_path[path])
        assert.equal(1, counts[path])
      end
    end)
  end

  it("have the termination message over a volume", function()
    for more = 0, 20 do
      local list = volume_mounts({ "/dev/log" }, more)
      assert.equal("/pod/words/c", (seen { volumeMounts = list, terminationMessagePath = "/dev/log" })["/dev/log"])
    end
  end)

  it("have those of the same path in the order of the container", function()
    local list, order = {}, {}
    for i = 1, 12 do
      list[i] = { name = "v", mountPath = "/data" .. ("/"):rep(i), subPath = tostring(i) }
    end
    for _, mount in ipairs(planned { volumeMounts = list }) do
      order[#order + 1] = mount.target == "/data" and tonumber(mount.subpath) or nil
    end
    assert.same({ 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 }, order)
  end)

  it("have parents before their parts", function()
    local order = {}
    for _, mount in ipairs(planned { volumeMounts = volume_mounts { "/a/b/c", "/a", "/a/b" } }) do
      order[#order + 1] = mount.target:match "^/a.*$"
    end
    assert.same({ "/a", "/a/b", "/a/b/c" }, order)
  end)
end)
