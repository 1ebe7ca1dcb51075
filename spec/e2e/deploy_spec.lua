-- The commands of the README's part "In a cluster", as they stand there, on a laptop cluster that runs pods: the
-- operator is a pod with its service account. The control plane runs no containers.
local cluster = require "spec.e2e.support.cluster"
local dev = require "spec.host.support.dev"
local shell = require "spec.e2e.support.shell"
local wait = require "spec.e2e.support.wait"

local KUBECTL = os.getenv "KUBECTL" or "kubectl"
local SYSTEM = "/apis/apps/v1/namespaces/moonloop-system/deployments/moonloop"
local PODS = "/api/v1/namespaces/moonloop-system/pods"
local AT = "/apis/cnat.programming-kubernetes.info/v1alpha1/namespaces/default/ats"

local lacks = cluster.controlplane and "tried with the embedded server" or dev.no_namespaces
  or shell.run "id -u" ~= "0\n" and "building the image without an engine needs root"


-- The commands below a line of the README, a line each.
local function commands_below(line)
  local commands = {}
  local block = assert(shell.read "README.md":match("\n" .. line .. "\n\n(    .-)\n%S"), line)
  for command in block:gsub("\\\n%s*", ""):gmatch "    ([^\n]+)" do
    commands[#commands + 1] = command:gsub("%s+#.*$", "")
  end
  return commands
end


-- A command as somebody runs it who has this kubectl, in the checkout or in another folder.
local function run(server, command, folder)
  return shell.must(("export KUBECONFIG=%s KUBECTL=%s; kubectl() { \"$KUBECTL\" \"$@\"; }; cd %s && %s"):format(
    shell.quote(server.kubeconfig), shell.quote(KUBECTL), shell.quote(folder or "."), command))
end


local function till_runs(server, image)
  wait.till("both replicas to run " .. image, 120, function()
    local deployment, images = server:get(SYSTEM), {}
    for _, pod in ipairs((server:get(PODS) or {}).items or {}) do
      images[pod.spec.containers[1].image] = true
    end
    return (deployment.status or {}).readyReplicas == 2 and images[image] and not next(images, next(images)),
      run(server, "kubectl get pods -A -o wide")
  end)
end


-- An At that is due, and what its pod has printed.
local function printed(server, name)
  server:must("POST", AT, {
    apiVersion = "cnat.programming-kubernetes.info/v1alpha1", kind = "At", metadata = { name = name },
    spec = { schedule = "2020-01-01T00:00:00Z", command = "echo YAY" },
  })
  wait.till("the At to be DONE", 30, function()
    local at = server:get(AT .. "/" .. name)
    return (at.status or {}).phase == "DONE", at.status
  end)
  local written = server:must("GET", AT .. "/" .. name).metadata.managedFields
  assert.equal("status", written[#written].subresource)
  return run(server, "kubectl logs " .. name .. "-pod")
end


describe("the README's way into a cluster, on moonloop dev", function()
  teardown(dev.stop_all)

  it("runs the image that was built; an upgrade of it leaves the scripts that were patched", function()
    if lacks then
      pending(lacks)
    end
    local server = dev.start { "--authorization-mode", "RBAC" }
    local install = commands_below "Run the operator on your machine, against your cluster:"[1]
    local commands = commands_below "Run it in the cluster:"
    local patch = commands_below "Then this command alone changes the logic:"
    assert.matches("^make install", install)
    assert.equal(1, #patch)
    run(server, install)
    local built, deploy
    for _, command in ipairs(commands) do
      run(server, command)
      built = command:match "^make docker%-build IMAGE=(%S+)" or built
      deploy = command:match "^make deploy .*" or deploy
    end
    till_runs(server, built)
    local root = shell.path "rootfs"
    shell.must(shell.line { "tools/image.sh", "rootfs", root, built })
    assert.matches("^moonloop %d", shell.must(root .. "/moonloop version"))
    assert.equal("YAY\n", printed(server, "now"))
    local asked = {}
    for _, pod in ipairs(server:must("GET", PODS).items) do
      asked[#asked + 1] = run(server, ("kubectl exec -n moonloop-system %s -- /moonloop why At default/now"):format(
        pod.metadata.name))
    end
    assert.matches("create Pod default/now%-pod, by cnat for default/now, cnat%.lua:%d+", table.concat(asked))
    assert.matches("this replica stands by", table.concat(asked), 1, true)

    local folder = shell.folder "edited"
    shell.must("cp -r reconcilers " .. folder)
    shell.must([[sed -i 's/words(at.spec.command)/words(at.spec.command .. " again")/' ]] .. folder
      .. "/reconcilers/cnat.lua")
    run(server, patch[1], folder)
    wait.till("the patched script to be live", 30, function()
      return run(server, "kubectl logs -n moonloop-system deployment/moonloop"):find "new version is live"
    end)
    assert.equal("YAY again\n", printed(server, "patched"))

    run(server, (deploy:gsub(built:gsub("%p", "%%%0"), "registry.example/moonloop:next")))
    till_runs(server, "registry.example/moonloop:next")
    assert.equal("YAY again\n", printed(server, "upgraded"))
    local restarts = run(server, "kubectl get pods -n moonloop-system -o jsonpath={..restartCount}")
    assert.is_nil(restarts:match "[1-9]")
  end)
end)
