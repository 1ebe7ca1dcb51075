-- moonloop dev as an ordinary user: what objects, links and folders of others make it do, and what it says where it
-- cannot write. Root may do anything, so these specs are about somebody else.
local dev = require "spec.host.support.dev"
local host = require "spec.e2e.support.host"
local machine = require "spec.e2e.support.machine"
local shell = require "spec.e2e.support.shell"
local wait = require "spec.e2e.support.wait"

local CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
local PODS = "/api/v1/namespaces/default/pods"
local VOLUMES = "/api/v1/persistentvolumes"
local NO_USER = not machine.is_root and "all specs are run by an ordinary user, who can be nobody else" or nil
local it_as_user = dev.it_unless(NO_USER, it, function(why) pending(why) end)


-- A volume that says it was made here, and whose claim is gone.
local function forged(name, path)
  return {
    metadata = { name = name, annotations = { ["pv.kubernetes.io/provisioned-by"] = "moonloop.dev/folder" } },
    spec = {
      capacity = { storage = "1Gi" }, accessModes = { "ReadWriteOnce" }, hostPath = { path = path },
      persistentVolumeReclaimPolicy = "Delete",
      claimRef = { namespace = "default", name = "gone", uid = (name:gsub("^pvc%-", "")) },
    },
  }
end


local function claim(name)
  return {
    metadata = { name = name },
    spec = { accessModes = { "ReadWriteOnce" }, resources = { requests = { storage = "1Gi" } } },
  }
end


local function pod(name, script, volume)
  return {
    metadata = { name = name },
    spec = {
      restartPolicy = "Never", volumes = { volume },
      containers = { {
        name = "c", image = "busybox", command = { "sh", "-c", script },
        volumeMounts = { { name = "v", mountPath = "vol" } },
      } },
    },
  }
end


describe("moonloop dev of an ordinary user", function()
  local folder, data, precious, server

  before_each(function()
    if machine.is_root then
      folder = machine.open_folder()
      data, precious = folder .. "/data/state", folder .. "/data/precious"
      shell.must(("%s sh -c 'mkdir -p %s/deep && echo kept >%s/file && echo kept >%s/deep/file'"):format(
        machine.AS_NOBODY, precious, precious, precious))
    end
  end)

  after_each(function()
    dev.stop_all()
    if folder then
      shell.run("chmod -R u+rwX " .. folder .. "; rm -rf " .. folder)
    end
  end)

  local function start(words, env)
    env = env or {}
    env.TMPDIR, env.HOME = env.TMPDIR or folder .. "/data", env.HOME or folder .. "/data"
    server = dev.start(words, { binary = folder .. "/moonloop", env = env, under = machine.AS_NOBODY })
    wait.till("the account", 20, function() return server:get "/api/v1/namespaces/default/serviceaccounts/default" end)
  end

  -- It ends at once; returns its exit code and what it says.
  local function fails(words, env)
    local process = host.spawn({ "dev", table.unpack(words) }, {
      name = "failing", binary = folder .. "/moonloop", env = env, under = machine.AS_NOBODY,
    })
    return process:till_exit(20), process:stderr()
  end

  local function phase(path)
    local object = server:get(path)
    return object and object.status.phase
  end

  local function is_kept()
    return shell.run(("cat %s/file %s/deep/file"):format(precious, precious)) == "kept\nkept\n"
  end

  it_as_user("removes no folder of the user's that a PersistentVolume names", function()
    start { "--data", data }
    local volumes = data .. "/volumes"
    shell.must(("%s ln -s %s %s/pvc-link"):format(machine.AS_NOBODY, precious, volumes))
    local paths = {
      absolute = precious, up = volumes .. "/../../precious", here = volumes .. "/.", above = volumes .. "/..",
      ["pvc-link"] = volumes .. "/pvc-link", ["pvc-through"] = volumes .. "/pvc-link/deep", root = "/",
      ["pvc-slash"] = precious .. "/", record = volumes .. "/.made",
    }
    for name, path in pairs(paths) do
      local code, answer = server:ask("POST", VOLUMES, forged(name, path))
      if path:find("..", 1, true) then
        assert.equal(422, code) -- as Kubernetes refuses backsteps
      else
        assert.equal(201, code, type(answer) == "table" and answer.message)
        wait.till(name .. " to be refused", 20, function() return phase(VOLUMES .. "/" .. name) == "Failed" end)
      end
    end
    assert.is_true(is_kept())
    assert.equal("pvc-link\n", shell.run(("cd %s && ls"):format(volumes)))
  end)

  it_as_user("mounts no folder of the user's that a pod names", function()
    start { "--data", data }
    for name, source in pairs {
      absolute = { path = precious }, typed = { path = precious, type = "Directory" },
      made = { path = folder .. "/data/new", type = "DirectoryOrCreate" },
    } do
      server:must("POST", PODS, pod(name, "rm -rf vol/*", { name = "v", hostPath = source }))
      wait.till(name .. " to be refused", 20, function()
        local status = (server:get(PODS .. "/" .. name).status.containerStatuses or {})[1]
        return status and status.state.waiting and (status.state.waiting.message or ""):find("only emptyDir", 1, true)
      end)
    end
    assert.is_true(is_kept())
    assert.equal("", shell.run(("ls -d %s/data/new 2>/dev/null"):format(folder)))
  end)

  it_as_user("follows no link that takes the place of its folders, also while it removes them", function()
    start { "--data", data }
    server:must("POST", CLAIMS, claim "data")
    server:must("POST", PODS, pod("filler", "i=0; while [ $i -lt 300 ]; do i=$((i+1)); mkdir -p vol/$i/deep; "
      .. "echo x >vol/$i/deep/file; done", { name = "v", persistentVolumeClaim = { claimName = "data" } }))
    wait.till("the pod to end", 60, function() return phase(PODS .. "/filler") == "Succeeded" end)
    local volume = server:get(CLAIMS .. "/data").spec.volumeName
    local path = data .. "/volumes/" .. volume
    server:must("DELETE", PODS .. "/filler")
    -- Folders and links to those of the user change places for as long as there are any.
    local swap = ("cd %s; while [ -d . ] && ls -d [0-9]* >/dev/null 2>&1; do for i in [0-9]*; do "
      .. "mv $i swapped 2>/dev/null && ln -s %s $i && rm -f $i; mv swapped $i 2>/dev/null; done; done"):format(
      path, precious)
    shell.must(("( timeout 20 %s sh -c %s ) </dev/null >/dev/null 2>&1 &"):format(machine.AS_NOBODY, shell.quote(swap)))
    server:must("DELETE", CLAIMS .. "/data")
    wait.till("the volume to be done with", 60, function()
      local now = phase(VOLUMES .. "/" .. volume)
      return not now or now == "Failed"
    end)
    assert.is_true(is_kept())
    -- The folder of all volumes becomes a link, too.
    shell.must(("%s sh -c 'mv %s/volumes %s/moved && ln -s %s %s/volumes'"):format(
      machine.AS_NOBODY, data, data, precious, data))
    server:must("POST", CLAIMS, claim "second")
    wait.till("the second claim to have its folder, or not", 20, function()
      return phase(CLAIMS .. "/second") == "Bound"
    end)
    server:must("DELETE", CLAIMS .. "/second")
    wait.till("the second claim to go", 20, function() return not server:get(CLAIMS .. "/second") end)
    assert.is_true(is_kept())
    assert.equal("deep\nfile\n", shell.run("ls " .. precious))
    assert.equal(0, server:stop())
    assert.is_true(is_kept())
  end)

  it_as_user("says whose folder it cannot use, and what to do", function()
    local others = folder .. "/others"
    shell.must(("mkdir -m 755 %s && touch %s/file"):format(others, others))
    local home = { TMPDIR = folder .. "/data", HOME = folder .. "/data" }
    for path, words in pairs {
      [others] = { "--data", others },
      [others .. "/new"] = { "--data", others .. "/new" },
      [others .. "/kubeconfig"] = { "--write-kubeconfig", others .. "/kubeconfig" },
      [others .. "/audit"] = { "--audit-log", others .. "/audit" },
    } do
      local code, said = fails(words, home)
      assert.not_equal(0, code, said)
      assert.truthy(said:find(path, 1, true), said)
      assert.truthy(said:find "Permission denied" or said:find "permission", said)
    end
    assert.equal("file\n", shell.run("ls -A " .. others))
    local code, said = fails({}, { TMPDIR = others, HOME = folder .. "/data" })
    assert.not_equal(0, code)
    assert.truthy(said:find("TMPDIR", 1, true), said)
  end)

  it_as_user("removes no folder of the user's that only looks like its own", function()
    local names = { "moonloop-precious", "moonloop-backup" } -- the second is as long as its own
    for _, name in ipairs(names) do
      shell.must(("%s sh -c 'cd %s/data && cp -r precious %s && touch %s/.lock'"):format(
        machine.AS_NOBODY, folder, name, name))
    end
    start {}
    for _, name in ipairs(names) do
      assert.equal("kept\n", shell.run(("cat %s/data/%s/deep/file"):format(folder, name)))
    end
    -- One that was killed leaves its own, and a copy of that is the user's.
    local left = server:story():match "KUBECONFIG=(%S+)/kubeconfig"
    server.host:signal "KILL"
    server.host:till_exit(10)
    shell.must(("%s cp -r %s %s/data/moonloop-copied"):format(machine.AS_NOBODY, left, folder))
    start {}
    assert.equal("", shell.run(("ls -d %s 2>/dev/null"):format(left)))
    assert.equal(0, select(2, shell.run(("test -e %s/data/moonloop-copied/.lock"):format(folder))))
  end)

  it_as_user("needs no HOME", function()
    for _, home in ipairs { folder, "/nonexistent", "" } do
      start({}, { HOME = home })
      server:must("POST", PODS, pod("p", "echo fine >vol/file", { name = "v", emptyDir = {} }))
      wait.till("the pod to end", 20, function() return phase(PODS .. "/p") == "Succeeded" end)
      assert.equal(0, server:stop())
    end
    assert.is_true(is_kept())
  end)
end)
