-- Scripts from --scripts PATH: a folder, a single file, and a ConfigMap as the kubelet mounts it.
local cluster = require "spec.e2e.support.cluster"
local host = require "spec.e2e.support.host"
local probe = require "spec.e2e.support.probe"
local scripts = require "spec.e2e.support.scripts"
local shell = require "spec.e2e.support.shell"
local wait = require "spec.e2e.support.wait"

-- Three ways to keep cnat.lua in a path: how it begins, and how a new version gets there.
local layouts = {
  {
    name = "a folder in which the file is written in place",
    begin = function(text)
      local folder = scripts.folder { ["cnat.lua"] = text }
      return folder, function(new)
        shell.write(folder .. "/cnat.lua", new)
      end
    end,
  },
  {
    name = "a single file that an editor saves by a rename",
    begin = function(text)
      local path = scripts.folder { ["cnat.lua"] = text } .. "/cnat.lua"
      return path, function(new)
        shell.save(path, new)
      end
    end,
  },
  {
    name = "a mounted ConfigMap whose ..data link is swapped",
    begin = function(text)
      local folder = shell.folder "mount"
      local count = 0
      local function put(new)
        count = count + 1
        local version = "..version-" .. count
        shell.must("cd " .. shell.quote(folder) .. " && mkdir " .. version)
        shell.write(("%s/%s/cnat.lua"):format(folder, version), new)
        shell.must(("cd %s && ln -s %s ..data_tmp && mv -T ..data_tmp ..data && rm -rf ..version-%d"):format(
          shell.quote(folder), version, count - 1))
      end
      put(text)
      shell.must(("ln -s ..data/cnat.lua %s/cnat.lua"):format(shell.quote(folder)))
      return folder, put
    end,
  },
}

for _, layout in ipairs(layouts) do
  describe("--scripts with " .. layout.name, function()
    local ns, moonloop, put

    before_each(function()
      local path
      ns = cluster.namespace "path"
      path, put = layout.begin(scripts.cnat)
      moonloop = host.start { name = "path", scripts = path, namespaces = ns }
      moonloop:till_ready()
    end)

    after_each(function()
      host.stop_all()
      cluster.forget(ns)
    end)

    it("shows a new version in the next pod within a second", function()
      assert.equal("busybox", probe.image(ns))
      put(scripts.cnat_with_image "busybox:1.37")
      assert.is_true(probe.till_image(ns, "busybox:1.37") < wait.patient(1))
      put(scripts.cnat_with_image "busybox:1.38")
      assert.is_true(probe.till_image(ns, "busybox:1.38") < wait.patient(1))
    end)

    it("refuses a syntax error with file and line, and the old version keeps working", function()
      local broken, place = scripts.cnat_broken()
      put(broken)
      moonloop:till_log { level = "error", msg = "script refused", error = place }
      assert.equal("busybox", probe.image(ns))
      assert.equal(1, moonloop:metric("moonloop_script_refused_total", { file = "cnat.lua" }))
      put(scripts.cnat_with_image "busybox:1.39")
      assert.is_true(probe.till_image(ns, "busybox:1.39") < wait.patient(1))
      assert.equal(1, #moonloop:lines { msg = "script refused" })
    end)
  end)
end


describe("--scripts with a path that is not there", function()
  it("says so and takes it up when it comes", function()
    local ns, path = cluster.namespace "nowhere", shell.path "scripts"
    finally(function()
      host.stop_all()
      cluster.forget(ns)
    end)
    local moonloop = host.start { name = "nowhere", scripts = path, namespaces = ns }
    moonloop:till_log { level = "error", msg = "no scripts to read", error = "No such file" }
    assert.equal(500, select(2, moonloop:get "/readyz"))
    shell.must("mkdir " .. shell.quote(path))
    shell.write(path .. "/cnat.lua", scripts.cnat)
    moonloop:till_ready(5)
    assert.equal("busybox", probe.image(ns))
    assert.equal(1, #moonloop:lines { msg = "no scripts to read" })
  end)
end)


describe("--scripts with a folder", function()
  local ns, folder, moonloop

  before_each(function()
    ns = cluster.namespace "folder"
    folder = scripts.folder { ["cnat.lua"] = scripts.cnat }
    moonloop = host.start { name = "folder", scripts = folder, namespaces = ns }
    moonloop:till_ready()
  end)

  after_each(function()
    host.stop_all()
    cluster.forget(ns)
  end)

  it("keeps the controller of a file that is removed, and says so", function()
    assert(os.remove(folder .. "/cnat.lua"))
    moonloop:till_log { level = "error", script = "cnat.lua", error = "is no longer in" }
    assert.equal("busybox", probe.image(ns))
  end)

  it("keeps its controllers when the folder goes, and takes them up again when it comes back", function()
    shell.must("mv " .. shell.line { folder, folder .. ".away" })
    moonloop:till_log { level = "error", msg = "running scripts keep running" }
    assert.equal("busybox", probe.image(ns))
    shell.must("mkdir " .. shell.quote(folder))
    shell.write(folder .. "/cnat.lua", scripts.cnat_with_image "busybox:1.40")
    assert.is_true(probe.till_image(ns, "busybox:1.40") < wait.patient(3))
  end)
end)
