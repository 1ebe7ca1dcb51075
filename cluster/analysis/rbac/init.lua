--- Makes the output of `moonloop rbac`: the roles that scripts need, and those that the host itself needs by its flags
--- (cluster/cli/rbac.c).
local kinds = require "cluster.analysis.rbac.kinds"
local manifest = require "cluster.analysis.rbac.manifest"
local rules = require "cluster.analysis.rbac.rules"

local M = {}

local function set(...)
  local result = {}
  for _, item in ipairs { ... } do
    result[item] = true
  end
  return result
end


local function rule(group, resource, list, why, name)
  return {
    group = group, resource = resource, verbs = set(table.unpack(list)), why = { why }, names = name and set(name),
  }
end


local EVENTS = {
  rule("events.k8s.io", "events", { "create", "patch" }, "Events of the host and of scripts"),
  rule("", "events", { "patch" }, "the newest text of Events that were combined"),
}

-- The rules for ConfigMaps of scripts in one namespace, and for those beside them that keep revisions.
local function of_configmaps(names)
  local read = rule("", "configmaps", { "get", "list", "watch" }, "--scripts-configmap, with its revisions")
  local keep = rule("", "configmaps", { "patch" }, "revisions that were live are kept")
  read.names, keep.names = {}, {}
  for _, name in ipairs(names) do
    read.names[name], read.names[name .. "-revisions"], keep.names[name .. "-revisions"] = true, true, true
  end
  return { read, keep, rule("", "configmaps", { "create" }, "create cannot be limited to a name") }
end


-- The roles that the flags of `moonloop run` need: name, namespace, rules. One that needs more adds it here.
local function of_flags(flags)
  local roles, by_namespace, order = {}, {}, {}
  for _, where in ipairs(flags.configmaps) do
    local namespace, name = where:match "^([^/]+)/([^/]+)$"
    if not by_namespace[namespace] then
      by_namespace[namespace] = {}
      order[#order + 1] = namespace
    end
    table.insert(by_namespace[namespace], name)
  end
  for _, namespace in ipairs(order) do
    roles[#roles + 1] = { "scripts", namespace, of_configmaps(by_namespace[namespace]) }
  end
  if flags.leader_elect then
    roles[#roles + 1] = { "election", flags.lease_namespace, {
      rule("coordination.k8s.io", "leases", { "get", "watch", "update" },
        "--leader-elect; watch: to take over within a second", flags.lease_name),
      rule("coordination.k8s.io", "leases", { "create" }, "create cannot be limited to a name"),
    } }
  end
  if flags.shard then
    roles[#roles + 1] = { "shard", flags.lease_namespace, {
      rule("coordination.k8s.io", "leases", { "list", "watch", "create", "update", "delete" },
        "--shard; each process makes up the name of its Lease, so the names cannot be listed here"),
    } }
  end
  if flags.inspect then
    roles[#roles + 1] = { "inspect", nil, {
      rule("authentication.k8s.io", "tokenreviews", { "create" }, "--inspect-bind-address: whose token it is"),
      rule("authorization.k8s.io", "subjectaccessreviews", { "create" }, "and what that user may be told"),
    } }
  end
  return roles
end


-- The rules that the host needs to keep the certificate of webhooks, and to write it into the objects that name them,
-- as `moonloop manifests` prints these. Returns the rules in its own namespace, and the others; nil: no webhooks are
-- served, or somebody else keeps their certificate.
local function of_webhooks(scripts, resource_of, flags)
  local names, order = { {}, {}, {} }, {
    { "admissionregistration.k8s.io", "mutatingwebhookconfigurations" },
    { "admissionregistration.k8s.io", "validatingwebhookconfigurations" },
    { "apiextensions.k8s.io", "customresourcedefinitions" },
  }
  for _, script in ipairs(scripts) do
    local webhooks, kind = script.webhooks, script.kinds[1]
    local resource = resource_of(kind.group, kind.version, kind.kind)
    names[1][webhooks.configuration] = webhooks.defaults or nil
    names[2][webhooks.configuration] = webhooks.validates or nil
    names[3][resource and resource.plural .. "." .. kind.group or ""] = webhooks.converts or nil
  end
  local others = {}
  for index, resource in ipairs(order) do
    if next(names[index]) then
      local list = rule(resource[1], resource[2], { "get", "list", "watch", "patch" }, "caBundle of webhooks")
      list.names = names[index]
      others[#others + 1] = list
    end
  end
  if #others == 0 or not flags.cert_secret then
    return nil
  end
  return {
    rule("", "secrets", { "get", "list", "watch", "patch" }, "the certificate of webhooks", flags.cert_secret),
    rule("", "secrets", { "create" }, "create cannot be limited to a name"),
  }, others
end


-- The namespaces in which the host makes Events when it watches some namespaces only: those, and where what it reports
-- on lies; Events about what has no namespace are in "default". (A script may make such with `about`.)
local function event_namespaces(flags, has_default)
  local seen, list = {}, {}
  local function add(namespace)
    if not seen[namespace] then
      seen[namespace] = true
      list[#list + 1] = namespace
    end
  end
  for _, namespace in ipairs(flags.namespaces) do
    add(namespace)
  end
  for _, where in ipairs(flags.configmaps) do
    add(where:match "^[^/]+")
  end
  if has_default then
    add "default"
  end
  return list
end


-- Rules of namespaced resources, and the others.
local function split(list)
  local namespaced, others = {}, {}
  for _, one in ipairs(list) do
    table.insert(one.namespaced and namespaced or others, one)
  end
  return namespaced, others
end


-- The roles of a controller. Returns whether one of its rules is about something without a namespace.
local function add_controller(documents, name, list, flags)
  if #flags.namespaces == 0 then
    documents[#documents + 1] = manifest.role(name, nil, list, flags.account)
    return false
  end
  local namespaced, others = split(list)
  if #others > 0 then
    documents[#documents + 1] = manifest.role(name, nil, others, flags.account)
  end
  for _, namespace in ipairs(#namespaced > 0 and flags.namespaces or {}) do
    documents[#documents + 1] = manifest.role(name, namespace, namespaced, flags.account)
  end
  return #others > 0
end


local function add_events(documents, flags, has_default)
  local name = flags.account.name
  if #flags.namespaces == 0 then
    table.insert(documents, 2, manifest.role(name, nil, EVENTS, flags.account))
    return
  end
  for index, namespace in ipairs(event_namespaces(flags, has_default)) do
    table.insert(documents, 1 + index, manifest.role(name, namespace, EVENTS, flags.account))
  end
end


--- @param options table scripts: as rules.of takes them; manifests: of the CRDs; flags: account
---   { name =, namespace = }, configmaps, namespaces, binds, leader_elect, shard, inspect, lease_name, lease_namespace,
---   cert_secret; title: of the file
--- @return table { yaml = text, problems = lines }; without yaml: it cannot be made
function M.render(options)
  local documents, notes, has_default_events, flags = {}, {}, false, options.flags
  local resource_of, problems = kinds.reader(options.manifests)
  if #options.scripts > 0 then
    documents[1] = manifest.account(flags.account)
  end
  for _, script in ipairs(options.scripts) do
    local list, wrong, is_about_others = rules.of(script, resource_of, flags.binds, notes)
    table.move(wrong, 1, #wrong, #problems + 1, problems)
    local others = add_controller(documents, flags.account.name .. "-" .. script.name, list, flags)
    has_default_events = others or is_about_others or has_default_events
  end
  if #options.scripts > 0 then
    add_events(documents, flags, has_default_events)
  end
  local own, others = of_webhooks(options.scripts, resource_of, flags)
  if own then
    local name = flags.account.name .. "-webhooks"
    documents[#documents + 1] = manifest.role(name, flags.account.namespace, own, flags.account)
    documents[#documents + 1] = manifest.role(name, nil, others, flags.account)
  end
  for _, role in ipairs(of_flags(flags)) do
    documents[#documents + 1] = manifest.role(flags.account.name .. "-" .. role[1], role[2], role[3], flags.account)
  end
  if #problems > 0 then
    return { problems = problems }
  end
  return { yaml = manifest.file(options.title, documents), problems = notes }
end


return M
