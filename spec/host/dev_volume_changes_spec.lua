-- Processes in pods of moonloop dev see what changes in their volumes while they run.
local dev = require "spec.host.support.dev"
local wait = require "spec.e2e.support.wait"

local PODS = "/api/v1/namespaces/default/pods"
local MAPS = "/api/v1/namespaces/default/configmaps"

-- In a user namespace that may have none below it; the machine may have none anyway.
local LIMITED = not dev.no_namespaces
  and "unshare -Ur sh -c 'echo 0 >/proc/sys/user/max_user_namespaces; exec \"$@\"' --" or nil
local it_isolated = dev.it_unless(dev.no_namespaces, it, function(why) pending(why) end)

-- Prints the files of the volume, and the one that is mounted alone, whenever one is another.
local WATCH = [[
  while :; do
    now="$(cd c && for f in $(ls -R | grep '^[a-z]$'); do echo "$f=$(cat $f d/$f 2>/dev/null)"; done | tr '\n' ' ')"
    now="$now alone=$(cat alone)"
    test "$now" = "$last" || echo "$now"
    last="$now"
    sleep 0.02
  done
]]


local function pod(name, script, volume, mounts)
  volume.name = "v"
  return {
    metadata = { name = name, labels = { tier = "front" } },
    spec = {
      terminationGracePeriodSeconds = 0,
      containers = { { name = "c", image = "busybox", command = { "sh", "-c", script }, volumeMounts = mounts } },
      volumes = { volume },
    },
  }
end


describe("A volume of a pod that runs, of moonloop dev,", function()
  local server
  after_each(dev.stop_all)

  local function start(options, words)
    server = dev.start(words, options)
    wait.till("the account", 10, function()
      return server:get "/api/v1/namespaces/default/serviceaccounts/default"
    end)
  end

  local function log_of(name, container)
    local path = ("%s/%s/log?container=%s"):format(PODS, name, container or "c")
    return tostring(server:get(path) or "") -- a number of one line is read as JSON
  end

  local function till_last(name, wanted)
    wait.till(name .. " to print " .. wanted, 10, function()
      return log_of(name):match "([^\n]*)\n$" == wanted
    end)
  end

  local ways = {
    ["without containers"] = { it = it, options = { under = LIMITED } },
    ["in containers"] = { it = it_isolated, options = {} },
  }
  for what, way in pairs(ways) do
    way.it("shows what changes in a ConfigMap, but not where a file is mounted alone, " .. what, function()
      start(way.options)
      server:must("POST", MAPS, { metadata = { name = "m" }, data = { a = "1", b = "1" } })
      server:must("POST", PODS, pod("p", WATCH, { configMap = { name = "m" } },
        { { name = "v", mountPath = "c" }, { name = "v", mountPath = "alone", subPath = "a" } }))
      till_last("p", "a=1 b=1  alone=1")
      server:must("PUT", MAPS .. "/m", { metadata = { name = "m" }, data = { a = "2", b = "2" } })
      till_last("p", "a=2 b=2  alone=1")
      server:must("PUT", MAPS .. "/m", { metadata = { name = "m" }, data = { b = "3" } })
      till_last("p", "b=3  alone=1")
      assert.is_nil(log_of("p"):find("alone=[^1]"))
      server:stop()
    end)
  end

  it_isolated("gives all an emptyDir that they may write, whoever they are", function()
    start()
    server:must("POST", PODS, pod("p", "stat -c %a c; echo x >c/x && cat c/x; sleep 100", { emptyDir = {} },
      { { name = "v", mountPath = "c" } }))
    till_last("p", "x")
    assert.equal("777\nx\n", log_of "p")
    server:stop()
  end)

  it_isolated("is in memory, shared by containers and their restarts, and is full for its writers alone", function()
    for _, network in ipairs { "own", "host" } do
      start({}, { "--pod-network", network })
      local made = pod("p", [[
        cd /m && stat -f -c %T . && stat -c %a . && echo first >>runs && cat runs
        if head -c 2000000 /dev/zero >big 2>/dev/null; then exit 9; fi
        test $(stat -c %s big) -gt 0 && rm big && echo y >/d/y && echo z >z && cat z
        test $(wc -l <runs) -gt 1 || exit 1
        sleep 100
      ]], { emptyDir = { medium = "Memory", sizeLimit = "1Mi" } },
        { { name = "v", mountPath = "/m" }, { name = "disk", mountPath = "/d" } })
      made.spec.volumes[2] = { name = "disk", emptyDir = {} }
      made.spec.containers[2] = { name = "other", image = "busybox",
        command = { "sh", "-c", "until test -e /d/y; do sleep 0.05; done; head -n 1 /m/runs; sleep 100" },
        volumeMounts = { { name = "v", mountPath = "/m" }, { name = "disk", mountPath = "/d" } } }
      server:must("POST", PODS, made)
      wait.till("the containers to be done", 20, function()
        return log_of "p" == "tmpfs\n777\nfirst\nfirst\nz\n"
          and log_of("p", "other") == "first\n"
      end)
      server:stop()
    end
  end)

  it("is on disk where there are no containers, and a line says so", function()
    start { under = LIMITED }
    server:must("POST", PODS, pod("p", "echo x >c/x && cat c/x; sleep 100", { emptyDir = { medium = "Memory" } },
      { { name = "v", mountPath = "c" } }))
    till_last("p", "x")
    server:till_said "emptyDirs of medium Memory are folders on disk, without a limit"
    server:stop()
  end)

  it_isolated("is mounted where subPathExpr says, and a pod without its variable waits", function()
    start()
    local mounts = { { name = "v", mountPath = "all" }, { name = "v", mountPath = "own", subPathExpr = "$(NAME)/log" } }
    local made = pod("p", "echo x >own/f && cat all/p/log/f; sleep 100", { emptyDir = {} }, mounts)
    made.spec.containers[1].env = { { name = "NAME", valueFrom = { fieldRef = { fieldPath = "metadata.name" } } } }
    server:must("POST", PODS, made)
    server:must("POST", PODS, pod("q", "true", { emptyDir = {} }, mounts))
    till_last("p", "x")
    wait.till("q to wait", 10, function()
      local status = server:get(PODS .. "/q").status.containerStatuses
      local waiting = status and status[1].state.waiting or {}
      return waiting.reason == "CreateContainerConfigError" and waiting.message == "missing value for NAME"
    end)
    server:stop()
  end)
end)
