-- The rights that `moonloop run` has given up by the time it serves, as the kernel tells them. All other specs show
-- that its work goes on without them.
local host = require "spec.e2e.support.host"
local shell = require "spec.e2e.support.shell"

local NO_CLUSTER = { KUBECONFIG = false, HOME = "/nonexistent", KUBERNETES_SERVICE_HOST = false }

local CONFIG = [[
apiVersion: v1
kind: Config
clusters: [{name: it, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: it, user: %s}]
contexts: [{name: it, context: {cluster: it, user: it}}]
current-context: it
]]

local function config(user)
  local path = shell.path "kubeconfig"
  shell.write(path, CONFIG:format(user))
  return path
end


-- A host that looks for a server in vain, and so stands still.
local function start(args)
  local moonloop = host.start {
    name = "lockdown", scripts = "reconcilers/cnat.lua", kubeconfig = config "{token: t}", env = NO_CLUSTER,
    args = args,
  }
  assert.equal(200, select(2, moonloop:get "/healthz"))
  return moonloop
end


local function status_of(moonloop, field)
  return shell.read(("/proc/%d/status"):format(moonloop.pid)):match(field .. ":%s*(%S+)")
end


local function core_limit_of(moonloop)
  return shell.read(("/proc/%d/limits"):format(moonloop.pid)):match "Max core file size%s+(%S+)%s+%S+"
end


describe("moonloop run", function()
  after_each(host.stop_all)

  it("gives up what it does not need", function()
    local moonloop = start()
    local line = moonloop:till_log { msg = "gave up the rights that are not needed" }
    assert.equal("1", status_of(moonloop, "NoNewPrivs"))
    assert.equal("0077", status_of(moonloop, "Umask"))
    assert.equal("0", core_limit_of(moonloop))
    assert.equal("on", line.no_new_privs)
    assert.equal("off", line.core_dumps)
    assert.equal(line.seccomp == "listed calls only" and "2" or "0", status_of(moonloop, "Seccomp"))
    assert.is_truthy(line.landlock == "listed folders only" or line.landlock:find "^off: landlock:")
    assert.is_true(moonloop:metric "process_open_fds" > 5)
    assert.is_true(moonloop:metric "process_resident_memory_bytes" > 1e6)
  end)

  it("starts a credential plugin, when there is one", function()
    local plugin = "{exec: {apiVersion: client.authentication.k8s.io/v1, command: 'false', interactiveMode: Never}}"
    local words = { "run", "--scripts", "reconcilers/cnat.lua", "--kubeconfig", config(plugin) }
    local result = host.command(words, NO_CLUSTER)
    assert.matches('"seccomp":"hostile calls refused","landlock":"off: a credential plugin is in use"', result.out)
    assert.matches("exec plugin false: exit code 1\n", result.err)
    assert.equal(3, result.code)
  end)

  it("keeps all of it with --unconfined", function()
    local moonloop = start { "--unconfined" }
    assert.equal("0", status_of(moonloop, "NoNewPrivs"))
    assert.equal("0", status_of(moonloop, "Seccomp"))
    assert.same({}, moonloop:lines { msg = "gave up the rights that are not needed" })
  end)
end)
