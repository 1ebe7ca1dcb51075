-- The operator under exactly the roles that `moonloop rbac` prints: it lacks no right, and needs each.
local api = require "spec.e2e.support.api"
local audit = require "spec.e2e.support.audit"
local cjson = require "cjson.safe"
local cluster = require "spec.e2e.support.cluster"
local dev = require "spec.host.support.dev"
local host = require "spec.e2e.support.host"
local kubeconfig = require "spec.e2e.support.kubeconfig"
local kubectl = require "spec.e2e.support.kubectl"
local operators = require "spec.e2e.support.operators"
local shell = require "spec.e2e.support.shell"
local wait = require "spec.e2e.support.wait"

local TIER = [[
apiVersion: v1
kind: Namespace
metadata: {name: tenant-tiers}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: bronze, namespace: tenant-tiers}
data: {quota: "pods: 20", network: "- from: [{podSelector: {}}]"}
]]

local function is_ready(object)
  for _, condition in ipairs(object.status.conditions or {}) do
    if condition.type == "Ready" then
      return condition.status == "True"
    end
  end
  return false
end


-- The controllers whose rules are tried one by one: an object, and whether all is done for it. `before`: manifests that
-- it needs; `flags`: of rbac and run, where they are not --leader-elect; `asks`: a path that the host asks for.
-- Of the first two this object is played on the control plane as well; of the others the samples are.
local PLAYED = {
  {
    controller = "cnat", kind = "At", version = "cnat.programming-kubernetes.info/v1alpha1", plural = "ats",
    spec = { schedule = cluster.PAST, command = "true" },
    is_done = function(at)
      return at.status.phase == "DONE"
    end,
    odd = function(number) -- an Event whose text changes
      return { schedule = "at " .. number, command = "true" }
    end,
  },
  {
    controller = "rediscluster", kind = "RedisCluster", version = "cache.example.com/v1", plural = "redisclusters",
    spec = { size = 1 },
    is_done = function(redis)
      return redis.status.selector ~= nil
    end,
    flags = { "--shard", "--webhook-bind-address", "127.0.0.1:0" },
    asks = "/customresourcedefinitions/redisclusters.cache.example.com", -- last, when it has a certificate
  },
  {
    controller = "database", kind = "Database", version = "stable.example.com/v1", plural = "databases",
    spec = { engine = "PostgreSQL", version = "14", size = "1Gi", users = { { username = "app" } } },
    is_done = is_ready,
  },
  {
    controller = "tenant", kind = "Tenant", version = "platform.example.com/v1", plural = "tenants",
    spec = { tier = "bronze", admins = { "alice" }, editors = { "bob" }, viewers = { "carol" } },
    is_done = is_ready, is_cluster_scoped = true, before = TIER,
  },
}
local function object_of(played, name)
  return { apiVersion = played.version, kind = played.kind, metadata = { name = name }, spec = played.spec }
end


local KUBECTL = os.getenv "KUBECTL" or "kubectl"
local audited = audit.available and it or pending

-- The requests of an account that a missing right refused. Other specs' namespaces go while this one runs, with objects
-- that the operator works on: a creation in one is a 403 as well, whatever rights there are.
local function requests_without_right(mark, account)
  local refused = {}
  for _, event in ipairs(audit.since(mark, { code = 403 })) do
    local message = event.responseStatus.message or ""
    if event.user.username:find(account, 1, true) and not message:find("because it is being terminated", 1, true) then
      refused[#refused + 1] = ("%s %s"):format(event.verb, event.requestURI)
    end
  end
  return refused
end


-- The scripts of the repository, as a ConfigMap has them.
local function scripts()
  local files = {}
  for path in shell.must("ls reconcilers/*.lua"):gmatch "[^\n]+" do
    if not path:find "_test%.lua$" then
      files[path:match "[^/]+$"] = shell.read(path)
    end
  end
  return files
end


local LEADER = { "--leader-elect" }

-- Returns the roles that `moonloop rbac` prints for the scripts and this account, with the flags of start().
local function roles(account, path, flags)
  local namespace = account:match "^[^/]+"
  local result = host.command {
    "rbac", path, "--crds", "crds", "--service-account", account,
    "--scripts-configmap", namespace .. "/scripts", "--bind", "admin", "--bind", "edit", "--bind", "view",
    table.unpack(flags or LEADER),
  }
  assert.same({ 0, "" }, { result.code, result.err })
  return result.out
end


local function start(namespace, config, flags)
  return host.start {
    name = "rights", kubeconfig = config, configmaps = namespace .. "/scripts",
    args = {
      "--leader-election-namespace", namespace, "--webhook-namespace", namespace,
      "--allow-http", "https://accounts.example.com", table.unpack(flags or LEADER),
    },
  }
end


-- Database, RedisCluster and Tenant from their samples to Ready, an edit, and their end.
local function play_samples(ns)
  if not cluster.controlplane then
    return -- there pods would run the servers
  end
  local samples = { "-n", ns, "-f", "crds/samples/database.yaml", "-f", "crds/samples/rediscluster.yaml" }
  kubectl.run("apply", "-f", "crds/samples/tenant.yaml")
  kubectl.run("apply", table.unpack(samples))
  operators.till_ready("Database", ns, "my-first-db")
  operators.till_ready("RedisCluster", ns, "example-rediscluster")
  operators.till_ready("Tenant", nil, "red-team")
  api.patch("Database", ns, "my-first-db", { spec = { size = "30Gi", users = { { username = "late" } } } })
  api.patch("RedisCluster", ns, "example-rediscluster", { spec = { size = 1 } })
  api.patch("Tenant", nil, "red-team", { spec = { viewers = { "carol" } } })
  operators.till_ready("RedisCluster", ns, "example-rediscluster")
  kubectl.run("delete", table.unpack(samples))
  kubectl.run("delete", "-f", "crds/samples/tenant.yaml")
  operators.till_gone("Namespace", nil, "tenant-red-team")
end


describe("The roles that moonloop rbac prints", function()
  teardown(host.stop_all)

  audited("are all that the operator needs", function()
    local ns, mark = cluster.namespace "rights", audit.mark()
    local account, manifest = cluster.unique "rights", shell.path "roles.yaml"
    finally(function()
      host.stop_all()
      kubectl.run("delete", "--ignore-not-found", "-f", manifest)
      cluster.forget(ns)
    end)
    shell.write(manifest, roles(ns .. "/" .. account, "reconcilers"))
    kubectl.run("apply", "-f", manifest)
    kubectl.configmap(ns, "scripts", scripts())
    local token = kubectl.run("create", "token", "-n", ns, account):match "%S+"
    local operator = start(ns, kubeconfig.write { user = { token = token } }):till_ready()

    for _, played in ipairs { PLAYED[1], PLAYED[2] } do
      api.create(played.kind, ns, object_of(played, "played"))
    end
    cluster.at(ns, "soon", cluster.due_in(2))
    cluster.at(ns, "never", "tomorrow")
    cluster.till_done(ns, 2)
    cluster.till_event(ns, "At", "never", "Invalid")
    api.delete("Pod", ns, "played-pod")
    for _, played in ipairs { PLAYED[1], PLAYED[2] } do
      wait.till(played.controller .. " to do its work", 20, function()
        local object = api.get(played.kind, ns, "played")
        return object.status ~= nil and played.is_done(object), cjson.encode(object.status)
      end)
    end
    api.patch("RedisCluster", ns, "played", { spec = { size = 2 } })
    wait.till("the StatefulSet to have two replicas", 20, function()
      return api.get("StatefulSet", ns, "played").spec.replicas == 2
    end)
    api.delete("RedisCluster", ns, "played")
    play_samples(ns)
    kubectl.configmap(ns, "scripts", { ["cnat.lua"] = "nonsense" })
    cluster.till_event(ns, "ConfigMap", "scripts", "ScriptRefused")
    operator:stop()
    assert.equal(0, operator:exit_code())
    assert.same({}, requests_without_right(mark, account))
  end)
end)


-- One controller on a server with RBAC: an operator of its own runs its script with the printed roles, as the
-- ServiceAccount CONTROLLER/CONTROLLER.
local Trial = {}
Trial.__index = Trial

local RBAC = "/apis/rbac.authorization.k8s.io/v1/"
-- Roles with rights that the host needs for its flags, independent of the script: tried once.
local OF_HOST = {
  cnat = { "clusterroles/cnat", "namespaces/cnat/roles/cnat-scripts", "namespaces/cnat/roles/cnat-election" },
  rediscluster = {
    "namespaces/rediscluster/roles/rediscluster-shard", "namespaces/rediscluster/roles/rediscluster-webhooks",
    "clusterroles/rediscluster-webhooks",
  },
}

-- Each rule that is to be tried: where = its role, index = its number.
function Trial:add_rules(where)
  local role = self.server:must("GET", RBAC .. where)
  self.roles[where] = { apiVersion = role.apiVersion, kind = role.kind, metadata = { name = role.metadata.name },
    rules = role.rules }
  for index, rule in ipairs(role.rules) do
    local resources = table.concat(rule.resources, ", ")
    -- A plugin that the embedded server has not asks for */finalizers: OwnerReferencesPermissionEnforcement.
    if not resources:find "/finalizers$" then
      self.rules[#self.rules + 1] = { where = where, index = index, resources = resources }
    end
  end
end


local function new_trial(server, log, played)
  local name = played.controller
  local self = setmetatable({ server = server, log = log, played = played, rules = {}, roles = {}, count = 0 }, Trial)
  local function run(...)
    return shell.must(("KUBECONFIG=%s %s"):format(server.kubeconfig, shell.line { KUBECTL, ... }))
  end
  local script, manifest = ("reconcilers/%s.lua"):format(name), shell.path "roles.yaml"
  shell.write(manifest, roles(name .. "/" .. name, script, played.flags) .. "---\n" .. (played.before or ""))
  run("create", "namespace", name)
  run("apply", "-f", manifest)
  local files = {}
  for path in shell.must(("ls reconcilers/%s.lua reconcilers/%s_*.lua"):format(name, name)):gmatch "[^\n]+" do
    files[#files + 1] = not path:find "_test%.lua$" and "--from-file=" .. path or nil
  end
  run("create", "configmap", "scripts", "-n", name, table.unpack(files))
  local config = cjson.decode(run("config", "view", "--raw", "--flatten", "--output", "json"))
  config.users[1].user = { token = run("create", "token", "-n", name, name):match "%S+" }
  self.kubeconfig = shell.path "kubeconfig"
  shell.write(self.kubeconfig, cjson.encode(config))
  self.path = ("/apis/%s/%s%s"):format(played.version,
    played.is_cluster_scoped and "" or ("namespaces/%s/"):format(name), played.plural)
  for _, where in ipairs { ("clusterroles/%s-%s"):format(name, name), table.unpack(OF_HOST[name] or {}) } do
    self:add_rules(where)
  end
  return self
end


-- Has the operator sent a request since begin() whose line of the audit log has this text, and `more`?
function Trial:has_asked(text, more)
  local account = ("system:serviceaccount:%s:%s"):format(self.played.controller, self.played.controller)
  local file, has_asked = assert(io.open(self.log)), false
  file:seek("set", self.mark)
  for line in file:lines() do
    local fits = line:find(text, 1, true) and line:find(more or "", 1, true) and line:find(account, 1, true)
    has_asked = has_asked or fits ~= nil
  end
  file:close()
  return has_asked
end


function Trial:is_refused()
  return self:has_asked '"code":403'
end


-- The ConfigMap that keeps revisions is made by the operator, or patched where the right to patch it is tried.
function Trial:begin_revisions(rule)
  local server, maps = self.server, ("/api/v1/namespaces/%s/configmaps"):format(self.played.controller)
  local code = server:ask("DELETE", maps .. "/scripts-revisions")
  assert(code == 200 or code == 404, code)
  local verbs = rule and rule.resources == "configmaps" and self.roles[rule.where].rules[rule.index].verbs or {}
  if verbs[1] == "patch" then
    server:must("POST", maps, {
      apiVersion = "v1", kind = "ConfigMap",
      metadata = { name = "scripts-revisions", labels = { ["app.kubernetes.io/managed-by"] = "moonloop" } },
    })
  end
end


-- Has it kept the revision?
function Trial:has_kept()
  local name = '"name":"scripts-revisions"'
  return self:has_asked(name, '"verb":"create"') or self:has_asked(name, '"verb":"patch"')
end


--- Starts the operator without this rule (nil: with all), and gives it an object.
function Trial:begin(rule)
  local server, name = self.server, self.played.controller
  if rule then
    local role = self.roles[rule.where]
    local rules = { table.unpack(role.rules) }
    rules[rule.index] = { apiGroups = { "none.test" }, resources = { "none" }, verbs = { "get" } }
    server:must("PUT", RBAC .. rule.where,
      { apiVersion = role.apiVersion, kind = role.kind, metadata = role.metadata, rules = rules })
  end
  server:ask("DELETE", ("/apis/coordination.k8s.io/v1/namespaces/%s/leases/moonloop"):format(name))
  server:ask("DELETE", ("/api/v1/namespaces/%s/secrets/moonloop-webhook-cert"):format(name))
  self:begin_revisions(rule)
  local log = assert(io.open(self.log))
  self.mark, self.count = log:seek "end", self.count + 1
  log:close()
  self.object = ("%s/played-%d"):format(self.path, self.count)
  server:must("POST", self.path, object_of(self.played, "played-" .. self.count))
  self.operator = start(name, self.kubeconfig, self.played.flags)
end


-- Edits an object that is wrong, each time with another number, until the Event about it is patched: after ten seconds.
function Trial:play_odd()
  local server, path, number, edited = self.server, self.object .. "-odd", 1, wait.now()
  local odd = object_of(self.played, ("played-%d-odd"):format(self.count))
  odd.spec = self.played.odd(number)
  server:must("POST", self.path, odd)
  wait.till("the text of an Event to be patched, or a refusal", 30, function()
    if wait.now() - edited >= 1 then
      number, edited = number + 1, wait.now()
      server:must("PATCH", path, { spec = self.played.odd(number) }, { type = "application/merge-patch+json" })
    end
    return self:has_asked(("/api/v1/namespaces/%s/events/"):format(self.played.controller)) or self:is_refused(),
      self.operator:stderr()
  end)
  server:must("DELETE", path)
end


--- Has the operator done its work, from its start to the object's end, without being refused anything? Puts the rule
--- back.
function Trial:worked(rule)
  local server, played = self.server, self.played
  local events = ("/apis/events.k8s.io/v1/namespaces/%s/events"):format(played.controller)
  wait.till("the work to be done, or a refusal", 30, function()
    local object = server:must("GET", self.object)
    local is_done = object.status and played.is_done(object) and #server:must("GET", events).items > 0
    is_done = is_done and self:has_asked(played.asks or "") and self:has_kept()
    -- Revisions are written when a version is live, which may be after the object is done.
    is_done = is_done and not (rule and rule.resources == "configmaps")
    return is_done or self:is_refused(), self.operator:stderr()
  end)
  if played.odd and (not rule or rule.resources == "events") then
    self:play_odd()
  end
  server:ask("DELETE", self.object)
  wait.till("the object to go, or a refusal", 10, function()
    return not server:get(self.object) or self:is_refused(), self.operator:stderr()
  end)
  self.operator:stop()
  local was_refused = self:is_refused()
  if server:get(self.object) then
    server:ask("PATCH", self.object, { metadata = { finalizers = {} } }, { type = "application/merge-patch+json" })
  end
  server:must("DELETE", events)
  if rule then
    server:must("PUT", RBAC .. rule.where, self.roles[rule.where])
  end
  return not was_refused
end


describe("The roles that moonloop rbac prints, without one of their rules,", function()
  local tried = not cluster.controlplane and it or pending -- with the embedded server

  after_each(function()
    host.stop_all()
    dev.stop_all()
  end)

  tried("are not enough", function()
    local log, trials, most, unused = shell.path "rbac-audit.log", {}, 0, {}
    local server = dev.start {
      "--authorization-mode", "RBAC", "--apply", "crds", "--pods", "fake", "--audit-log", log,
    }
    for index, played in ipairs(PLAYED) do
      trials[index] = new_trial(server, log, played)
    end
    for _, trial in ipairs(trials) do
      assert.is_true(#trial.rules >= 4)
      most = math.max(most, #trial.rules)
      trial:begin()
    end
    for _, trial in ipairs(trials) do
      assert.is_true(trial:worked(), trial.played.controller .. " lacks a right")
    end
    for number = 1, most do -- all controllers at the same time
      for _, trial in ipairs(trials) do
        if trial.rules[number] then
          trial:begin(trial.rules[number])
        end
      end
      for _, trial in ipairs(trials) do
        local rule = trial.rules[number]
        if rule and trial:worked(rule) then
          unused[#unused + 1] = ("%s: %s"):format(rule.where, rule.resources)
        end
      end
    end
    assert.same({}, unused)
  end)
end)
