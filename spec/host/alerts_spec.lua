-- The alerts of deploy/monitoring, and the metrics of a host that runs, as Prometheus' own tool sees them.
local dev = require "spec.host.support.dev"
local host = require "spec.e2e.support.host"
local shell = require "spec.e2e.support.shell"
local wait = require "spec.e2e.support.wait"

local ALERTS, TESTS = "deploy/monitoring/alerts.yaml", "deploy/monitoring/alerts_test.yaml"

local SCRIPT = [[
local moonloop = require "moonloop"
return moonloop.controller {
  name = "widget", reconciles = moonloop.kind("example.com/v1", "Widget"), http = { "https://a.example.com" },
  metrics = {
    seen_total = { type = "counter", help = "Objects that were seen." },
    seconds = { type = "histogram", help = "How long it took.", buckets = { 1, 5 } },
    size = { type = "gauge", help = "Of an object.", labels = { "name" } },
  },
  default = function() end,
  validate = function() end,
  reconcile = function(widget, ctx)
    ctx.metric("seen_total", 1)
    ctx.metric("seconds", 2)
    ctx.metric("size", 3, { name = widget.metadata.name })
  end,
}
]]

-- With a credential plugin, so that its metrics are there as well.
local function write_kubeconfig(server)
  local text = assert(shell.read(server.kubeconfig))
  local plugin = shell.path "plugin"
  shell.write(plugin, ('#!/bin/sh\necho \'{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential",'
    .. '"status":{"token":"%s"}}\'\n'):format(server.token))
  shell.must("chmod +x " .. shell.quote(plugin))
  local changed = text:gsub("token: %S+", ("exec: {apiVersion: client.authentication.k8s.io/v1, command: %s, "
    .. "interactiveMode: Never}"):format(plugin))
  local path = shell.path "kubeconfig"
  shell.write(path, changed)
  return path
end


local function start(server, args)
  local folder = shell.folder "scripts"
  shell.write(folder .. "/widget.lua", SCRIPT)
  local words = {
    "--allow-http", "https://a.example.com", "--webhook-bind-address", "127.0.0.1:0",
    "--webhook-namespace", "default", table.unpack(args),
  }
  local moonloop = host.start {
    name = "alerts", scripts = folder, kubeconfig = write_kubeconfig(server), args = words,
  }
  moonloop:till_log { msg = "script is live" }
  return moonloop
end


describe("The alerts", function()
  after_each(host.stop_all)

  it("are rules, and each fires for its event alone", function()
    for _, words in ipairs { { "check", "rules", ALERTS }, { "test", "rules", TESTS } } do
      local out, code = shell.run(shell.line { "tools/promtool.sh", table.unpack(words) } .. " 2>&1")
      assert.equal(0, code, out)
    end
  end)

  it("ask for series that a host has before anything has happened, and Prometheus takes its page as it is", function()
    local server = dev.start { "--pods", "none", "--apply", "spec/testing/webhooks/crds" }
    local pages = {}
    for _, mode in ipairs { "--leader-elect", "--shard" } do
      local moonloop = start(server, { mode, "--leader-election-namespace", "default" })
      wait.till("the replica to have its Lease", 20, function()
        local page = moonloop:get("/metrics")
        return page:find "master_status{[^}]*} 1" or page:find "shard_members [1-9]", page
      end)
      local page = shell.path "page"
      shell.write(page, moonloop:get("/metrics"))
      pages[#pages + 1] = shell.read(page)
      local out, code = shell.run(("tools/promtool.sh check metrics <%s 2>&1"):format(shell.quote(page)))
      assert.equal("", out)
      assert.equal(0, code)
      moonloop:stop()
    end
    local all = "\n" .. table.concat(pages)
    for metric, labels in shell.read(ALERTS):gmatch '([%l_]+){job="moonloop"([^}]*)}' do
      if metric ~= "up" then
        assert.is_truthy(all:find("\n" .. metric .. "[{ ]"), metric .. " is not there")
      end
      for name in labels:gmatch "([%l_]+)[=!]" do
        assert.is_truthy(all:find("\n" .. metric .. "{[^}]*" .. name .. '="'), metric .. " has no label " .. name)
      end
    end
    for metric, label in pairs {
      moonloop_script_refused_total = 'file="widget.lua"', moonloop_script_quarantined_total = 'file="widget.lua"',
      moonloop_objects_unreadable_total = 'resource="widgets"',
      moonloop_watch_ends_total = 'resource="widgets",how="failed"',
      rest_client_requests_total = 'code="401",method="GET"', moonloop_http_requests_total = 'code="Timeout"',
      controller_runtime_webhook_requests_total = 'webhook="/validate/widget",code="500"',
      rest_client_exec_plugin_call_total = 'code="1",call_status="plugin_execution_error"',
      workqueue_depth = 'controller="widget"',
    } do
      local value = all:match("\n" .. metric .. "{[^}\n]*" .. label:gsub("%p", "%%%0") .. "[^}\n]*} (%S+)")
      assert.equal("0", value, metric .. "{" .. label .. "}")
    end
  end)
end)
