-- deploy/ as a user applies it, on a laptop cluster that runs pods: the operator is a pod with its service account. The
-- control plane runs no containers.
local cluster = require "spec.e2e.support.cluster"
local dev = require "spec.host.support.dev"
local shell = require "spec.e2e.support.shell"
local wait = require "spec.e2e.support.wait"

local KUBECTL = os.getenv "KUBECTL" or "kubectl"
local SYSTEM = "/apis/apps/v1/namespaces/moonloop-system/deployments/moonloop"
local AT = "/apis/cnat.programming-kubernetes.info/v1alpha1/namespaces/default/ats"
local has_namespaces = select(2, shell.run "unshare -Urmn true 2>/dev/null") == 0

local function kubectl(server, ...)
  return shell.must(("KUBECONFIG=%s %s"):format(server.kubeconfig, shell.line { KUBECTL, ... }))
end


describe("deploy/ on moonloop dev", function()
  teardown(dev.stop_all)

  it("runs the operator as a pod, which finishes an At", function()
    if cluster.controlplane then
      pending "tried with the embedded server"
      return
    elseif not has_namespaces then
      pending "this machine has no user namespaces"
      return
    end
    local server = dev.start { "--authorization-mode", "RBAC", "--apply", "crds/at.yaml" }
    kubectl(server, "apply", "-k", "deploy")
    wait.till("both replicas to be ready", 60, function()
      local deployment = server:get(SYSTEM)
      return (deployment.status or {}).readyReplicas == 2, kubectl(server, "get", "pods", "-A", "-o", "wide")
    end)

    server:must("POST", AT, {
      apiVersion = "cnat.programming-kubernetes.info/v1alpha1", kind = "At", metadata = { name = "now" },
      spec = { schedule = "2020-01-01T00:00:00Z", command = "echo YAY" },
    })
    wait.till("the At to be DONE", 30, function()
      local at = server:get(AT .. "/now")
      return (at.status or {}).phase == "DONE", at.status
    end)
    assert.equal("YAY\n", kubectl(server, "logs", "now-pod"))
    local written = server:must("GET", AT .. "/now").metadata.managedFields
    assert.equal("status", written[#written].subresource)
    local restarts = kubectl(server, "get", "pods", "-n", "moonloop-system", "-o", "jsonpath={..restartCount}")
    assert.is_nil(restarts:match "[1-9]")
  end)
end)
