-- Tenants: a namespace with what the tier allows, roles that come and go, a tier that is edited, the report to the
-- accounts, and the end.
local api = require "spec.e2e.support.api"
local cjson = require "cjson"
local cluster = require "spec.e2e.support.cluster"
local host = require "spec.e2e.support.host"
local kubectl = require "spec.e2e.support.kubectl"
local operators = require "spec.e2e.support.operators"
local scripts = require "spec.e2e.support.scripts"
local shell = require "spec.e2e.support.shell"
local wait = require "spec.e2e.support.wait"

describe("A Tenant", function()
  local name, space, reports, server

  setup(function()
    name = cluster.unique "team"
    space = "tenant-" .. name
    reports = shell.path "reports"
    local command = "lua5.4 spec/e2e/support/accounts_server.lua %s >%s.log 2>&1 & echo $!"
    server = shell.must(command:format(reports, reports))
    local port = wait.till("the accounts", 10, function()
      return tonumber(shell.read(reports .. ".port") or ""), shell.read(reports .. ".log")
    end)
    local origin = ("http://127.0.0.1:%d"):format(port)
    local text = scripts.edited(shell.read "reconcilers/tenant.lua", "https://accounts.example.com", origin)
    host.start({
      name = "tenant", scripts = scripts.folder { ["tenant.lua"] = text }, args = { "--allow-http", origin },
    }):till_ready()
    kubectl.run("apply", "-f", "crds/samples/tenant.yaml")
    api.create("Tenant", nil, {
      metadata = { name = name }, spec = { tier = "bronze", admins = { "alice" }, viewers = { "bob", "carol" } },
    })
  end)

  teardown(function()
    host.stop_all()
    shell.run("kill " .. server)
    shell.run "\"$KUBECTL\" delete --ignore-not-found --wait=false -f crds/samples/tenant.yaml"
    api.delete("Tenant", nil, name)
  end)

  local function till_roles(wanted)
    wait.till("the roles " .. wanted, 20, function()
      local found = {}
      for _, binding in ipairs(api.list("RoleBinding", space)) do
        for _, subject in ipairs(binding.subjects) do
          found[#found + 1] = binding.roleRef.name .. "=" .. subject.name
        end
      end
      local is = table.concat(found, " ")
      return is == wanted, is
    end)
  end

  it("has a namespace with a quota, rules for the network, and roles", function()
    operators.till_ready("Tenant", nil, name)
    assert.equal("20", api.get("ResourceQuota", space, "tenant").spec.hard.pods)
    assert.truthy(api.get("NetworkPolicy", space, "tenant"))
    till_roles "admin=alice view=bob view=carol"
  end)

  it("loses the roles that are taken off its lists", function()
    api.patch("Tenant", nil, name, { spec = { viewers = { "carol" }, editors = { "dan" } } })
    till_roles "admin=alice edit=dan view=carol"
    kubectl.run("patch", "tenant", name, "--type=merge", "-p", '{"spec":{"editors":[]}}')
    till_roles "admin=alice view=carol"
  end)

  it("follows its tier", function()
    api.patch("ConfigMap", "tenant-tiers", "bronze", { data = { quota = "pods: 30\n" } })
    wait.till("another quota", 20, function()
      local is = api.get("ResourceQuota", space, "tenant").spec.hard.pods
      return is == "30", is
    end)
  end)

  it("is reported to the accounts when the night has passed", function()
    local path = "/apis/platform.example.com/v1/tenants/" .. name .. "/status"
    local status = { reportedAt = "2026-01-01T00:00:00Z" }
    local _, code = api.request("PATCH", path, { status = status }, "application/merge-patch+json")
    assert.equal(200, code)
    local report = wait.till("the report", 20, function()
      local reported = shell.read(reports) or ""
      local line = reported:match(('[^\n]*"tenant":"%s"[^\n]*\n'):format(name:gsub("%-", "%%-")))
      return line, line or reported .. cjson.encode(api.get("Tenant", nil, name).status)
    end)
    assert.equal("bronze", cjson.decode(report).tier)
    wait.till("the status", 20, function()
      return api.get("Tenant", nil, name).status.reportedAt > "2026-01-01T00:00:00Z"
    end)
  end)

  it("goes with its namespace", function()
    api.delete("Tenant", nil, name)
    operators.till_gone("Namespace", nil, space, 60)
  end)
end)
