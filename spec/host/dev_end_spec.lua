-- However moonloop dev ends, none of its processes is left, and after a signal it can answer no file either.
local dev = require "spec.host.support.dev"
local host = require "spec.e2e.support.host"
local shell = require "spec.e2e.support.shell"
local wait = require "spec.e2e.support.wait"

local POD = [[
apiVersion: v1
kind: Pod
metadata: {name: stubborn}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: busybox
    command: [sh, -c, "trap '' TERM; setsid sleep 1000.%s & echo up; while :; do sleep 1; done # %s"]
  volumes: [{name: scratch, emptyDir: {}}]
]]

-- A number that no other process on the machine has in its command line.
local function unique()
  return tostring(math.random(10 ^ 8, 10 ^ 9))
end


describe("moonloop dev", function()
  after_each(dev.stop_all)

  -- With a pod that takes no SIGTERM and has a daemon; returns it and what all its processes have in their command
  -- lines.
  local function start()
    local mark = unique()
    local folder = shell.folder("dev-" .. mark)
    shell.write(folder .. "/pod.yaml", POD:format(mark, mark))
    local server = dev.start { "--apply", folder .. "/pod.yaml", "--write-kubeconfig", folder .. "/kubeconfig" }
    server:till_told "stubborn +| up\n"
    -- The shell, and its daemon. A child of the shell has the command line of the shell until it has become `sleep 1`.
    wait.till("two processes", 5, function()
      local found = dev.processes("sleep 1000." .. mark)
      return #found == 2, table.concat(found, "; ")
    end)
    return server, mark, folder
  end

  local function till_none(mark)
    wait.till("its processes to end", 5, function()
      local left = dev.processes(mark)
      return #left == 0, table.concat(left, "; ")
    end)
  end

  for _, signal in ipairs { "INT", "TERM", "HUP" } do
    it("leaves nothing behind on SIG" .. signal, function()
      local server, mark, folder = start()
      assert.equal(0, server:stop(signal))
      assert.same({}, dev.processes(mark))
      assert.equal("", shell.must("ls -A " .. server.tmp))
      assert.equal("pod.yaml\n", shell.must("ls -A " .. folder))
    end)
  end

  local function start_polite(seconds, on_term)
    local folder = shell.folder "polite"
    shell.write(folder .. "/pod.yaml", ([[
apiVersion: v1
kind: Pod
metadata: {name: polite}
spec:
  terminationGracePeriodSeconds: %d
  containers:
  - name: main
    image: busybox
    command: [sh, -c, "trap '%s' TERM; echo up; while :; do sleep 0.05; done"]
]]):format(seconds, on_term))
    local server = dev.start { "--apply", folder .. "/pod.yaml" }
    server:till_told "polite +| up\n"
    return server
  end

  it("asks pods to end before it kills them", function()
    local server = start_polite(60, "echo bye; exit 0")
    assert.equal(0, server:stop "INT")
    assert.matches("polite +| bye\n", server:story())
  end)

  it("does not wait for pods when it is asked twice", function()
    local server = start_polite(600, "echo no")
    server.host:signal "INT"
    server:till_told "polite +| no\n"
    assert.equal(0, server:stop "INT")
  end)

  it("leaves nothing behind when it is stopped while it starts", function()
    local tmp, pipe = shell.folder "tmp", shell.path "audit"
    shell.must("mkfifo " .. pipe)
    local starting = host.spawn({ "dev", "--audit-log", pipe }, { name = "dev", env = { TMPDIR = tmp } })
    wait.till("its folder", 10, function()
      return shell.must("ls -A " .. tmp) ~= ""
    end)
    starting:signal "TERM"
    shell.must(("timeout 20 cat %s >/dev/null"):format(pipe)) -- it waited for a reader
    assert.equal(0, starting:till_exit(5))
    assert.equal("", shell.must("ls -A " .. tmp))
  end)

  it("leaves no process behind on SIGKILL", function()
    local server, mark = start()
    server.host:kill()
    till_none(mark)
  end)

  it("removes what one left that was killed, and nothing of one that is at work", function()
    local tmp = shell.folder "tmp"
    local function run()
      return dev.start({ "--pods", "none" }, { env = { TMPDIR = tmp } })
    end
    shell.must("mkdir " .. tmp .. "/moonloop-notours")
    local killed, other = run(), run()
    local left = killed.kubeconfig:match "^(.*)/kubeconfig$"
    killed.host:kill()
    assert.equal("", shell.run("ls -d " .. left .. " >/dev/null || echo gone"))
    wait.till("the folder to be removed", 10, function()
      local third = run()
      third:stop()
      return shell.run("ls -d " .. left .. " 2>/dev/null || echo gone") == "gone\n"
    end)
    other:must("GET", "/version")
    assert.is_truthy(shell.read(other.kubeconfig))
    assert.equal(0, other:stop())
    assert.equal("moonloop-notours\n", shell.must("ls -A " .. tmp))
  end)

  it("leaves no process behind when it is killed while pods start", function()
    local server, mark = start()
    local connection = server:connect()
    for i = 1, 20 do
      local body = ('{"metadata":{"name":"p%d"},"spec":{"containers":[{"name":"c","image":"busybox",'
        .. '"command":["sh","-c","sleep 100 # %s"]}]}}'):format(i, mark)
      assert(connection:send(("POST /api/v1/namespaces/default/pods HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n"
        .. "Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"):format(server.token, #body, body)))
    end
    wait.till("the first of them to run", 5, function()
      return #dev.processes("sleep 100 # " .. mark) > 0
    end)
    server.host:kill()
    connection:close()
    till_none(mark)
  end)
end)
