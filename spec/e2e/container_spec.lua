-- The image as a cluster would run it: its root filesystem and nothing else, the service account's
-- token, an unprivileged user, and the limits of deploy/deployment.yaml.
local api = require "spec.e2e.support.api"
local audit = require "spec.e2e.support.audit"
local cluster = require "spec.e2e.support.cluster"
local kubectl = require "spec.e2e.support.kubectl"
local shell = require "spec.e2e.support.shell"
local wait = require "spec.e2e.support.wait"

local SYSTEM = "moonloop-system"
local MEMORY_MAX = 30 * 1024 * 1024
local CPU_MILLI = 100
local SECRETS = "/var/run/secrets/kubernetes.io/serviceaccount"
local NOT_HERE = 77 -- of tools/cgroup-run.sh

local function can_limit()
  local _, code = shell.run(("tools/cgroup-run.sh %d %d %s true 2>/dev/null"):format(
    MEMORY_MAX, CPU_MILLI, shell.quote(shell.path "cgroup-probe")))
  return code ~= NOT_HERE
end


-- The ways in that a cluster gives a pod: token, authority, address.
local function mount_service_account(root)
  local folder = root .. SECRETS
  shell.must("mkdir -p " .. shell.quote(folder))
  shell.write(folder .. "/token", (kubectl.run("create", "token", "moonloop", "-n", SYSTEM):gsub("%s+$", "")))
  shell.write(folder .. "/namespace", SYSTEM)
  local authority = kubectl.run("config", "view", "--raw", "--minify", "--flatten",
    "-o", "jsonpath={.clusters[0].cluster.certificate-authority-data}")
  shell.must(("echo %s | base64 -d >%s"):format(shell.quote(authority), shell.quote(folder .. "/ca.crt")))
  shell.must("chmod -R a+rX " .. shell.quote(root .. "/var"))
end


local function server_address()
  local server = kubectl.run("config", "view", "--minify", "-o", "jsonpath={.clusters[0].cluster.server}")
  return server:match("^https://%[?(.-)%]?:(%d+)")
end


local function report_of(path)
  local report = {}
  for name, value in (shell.read(path) or ""):gmatch("([%w_]+)=(%d+)") do
    report[name] = math.tointeger(value)
  end
  return report
end


describe("The image", function()
  local container = can_limit() and audit.available and it or pending

  container("finishes 200 Ats inside 30Mi and 100m with the service account's rights", function()
    local root, log, report = shell.path "rootfs", shell.path "container.log", shell.path "container.cgroup"
    shell.must("tools/image.sh build && tools/image.sh rootfs " .. shell.quote(root))
    shell.must("grep -q 'BEGIN CERTIFICATE' " .. shell.quote(root .. "/etc/ssl/certs/ca-certificates.crt"))
    shell.must("grep -q TZif " .. shell.quote(root .. "/usr/share/zoneinfo/Europe/Berlin"))
    kubectl.run("apply", "-f", "deploy/namespace.yaml")
    kubectl.run("apply", "-n", SYSTEM, "-f", "deploy/rbac.yaml")
    kubectl.run("apply", "-n", SYSTEM, "-k", "reconcilers")
    mount_service_account(root)

    local ns, mark = cluster.namespace "container", audit.mark()
    local host, port = server_address()
    local command = shell.line {
      "tools/cgroup-run.sh", MEMORY_MAX, CPU_MILLI, report, "chroot", "--userspec=65532:65532", root,
      "/moonloop", "run", "--scripts-configmap", SYSTEM .. "/moonloop-scripts",
    }
    local environment = ("env -i PATH=$PATH KUBERNETES_SERVICE_HOST=%s KUBERNETES_SERVICE_PORT=%s"):format(host, port)
    shell.must(("%s %s </dev/null >%s 2>&1 & echo $! >%s.pid"):format(environment, command, shell.quote(log),
      shell.quote(log)))
    local pid = shell.read(log .. ".pid"):match("%d+")
    finally(function()
      shell.run("kill " .. pid .. " 2>/dev/null")
      cluster.forget(ns)
    end)
    wait.till("the script to be live", 20, function()
      local text = shell.read(log) or ""
      return text:find("script is live", 1, true), text
    end)

    for i = 1, 200 do
      cluster.at(ns, ("at-%03d"):format(i), cluster.PAST)
    end
    cluster.till_done(ns, 200, 120)
    assert.equal(200, #api.list("Pod", ns))
    assert.equal(200, #audit.since(mark, { ns = ns, resource = "pods", verb = "create", code = 201 }))

    shell.must("kill " .. pid)
    wait.till("the host to end", 30, function()
      return shell.read(report) ~= nil and report_of(report).memory_peak, shell.read(log)
    end)
    local took = report_of(report)
    assert.matches('"msg":"stopped","exit_code":0', shell.read(log), 1, true)
    assert.equal(0, took.oom_kill or 0)
    assert.is_true(took.memory_peak < MEMORY_MAX, took.memory_peak .. " bytes")
    print(("\n  memory peak %.1f MiB, throttled in %d of %d periods"):format(
      took.memory_peak / 1024 / 1024, took.nr_throttled or 0, took.nr_periods or 0))
  end)
end)
