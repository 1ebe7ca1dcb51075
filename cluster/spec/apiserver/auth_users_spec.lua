--- Users: tokens, service accounts, impersonation; and what roles allow them.
local host = require "cluster.host"
local hostlua = require "hostlua"
local jwt = require "cluster.apiserver.auth.jwt"
local apiserver = require "cluster.apiserver"

local NOW = 1782900000
local RBAC = "/apis/rbac.authorization.k8s.io/v1/"
local TOKENS = {
  root = { name = "root", groups = { "system:masters" } },
  jane = { name = "jane", groups = { "readers" } },
}


local function new(settings)
  hostlua.freeze(NOW)
  return apiserver.new(settings)
end


-- Sends a request with these headers. @return integer code, table answer
local function ask(server, method, path, headers, object)
  local plain, query = path:match("^([^?]*)%??(.*)$")
  local code, body
  server:handle({
    method = method, path = plain, query = query, headers = headers or {},
    body = object and host.json.encode(object) or "",
  }, { send = function(_, status_code, _, text) code, body = status_code, text end })
  return code, host.json.decode(body)
end


local function bearer(token, more)
  local headers = more or {}
  headers.authorization = "Bearer " .. token
  return headers
end


local function who(server, headers)
  local _, answer = ask(server, "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", headers,
    { kind = "SelfSubjectReview", apiVersion = "authentication.k8s.io/v1" })
  return answer.status.userInfo
end


local function grant(server, user, verb, resource)
  server:call("POST", RBAC .. "clusterroles", { metadata = { name = "r" },
    rules = { { verbs = { verb }, apiGroups = { "" }, resources = { resource } } } })
  server:call("POST", RBAC .. "clusterrolebindings", { metadata = { name = "b" }, subjects = { user },
    roleRef = { kind = "ClusterRole", name = "r", apiGroup = "rbac.authorization.k8s.io" } })
end


describe("roles without rules", function()
  for text, rules in pairs { ["no rules"] = false, ["null"] = host.json.null, ["none"] = host.json.array {} } do
    it("grant nothing, so anybody who may write roles may write them: " .. text, function()
      local server = new { tokens = TOKENS, authorization = "rbac" }
      server:call("POST", RBAC .. "clusterroles", { metadata = { name = "r" }, rules = { {
        verbs = { "create", "update" }, apiGroups = { "rbac.authorization.k8s.io" },
        resources = { "roles", "clusterroles" },
      } } })
      server:call("POST", RBAC .. "clusterrolebindings", { metadata = { name = "b" },
        subjects = { { kind = "User", name = "jane", apiGroup = "rbac.authorization.k8s.io" } },
        roleRef = { kind = "ClusterRole", name = "r", apiGroup = "rbac.authorization.k8s.io" } })
      for _, path in ipairs { RBAC .. "clusterroles", RBAC .. "namespaces/default/roles" } do
        for _, more in ipairs { {}, { aggregationRule = host.json.null } } do
          more.metadata, more.rules = { name = "empty" }, rules or nil
          local code, answer = ask(server, "POST", path, bearer "jane", more)
          assert.equal(201, code, answer.message)
          answer.metadata.labels = { changed = "yes" }
          assert.equal(200, (ask(server, "PUT", path .. "/empty", bearer "jane", answer)))
          answer.metadata.resourceVersion = nil
          answer.rules = { { verbs = { "get" }, apiGroups = { "" }, resources = { "pods" } } }
          assert.equal(403, (ask(server, "PUT", path .. "/empty", bearer "jane", answer)))
          assert.equal(200, (ask(server, "DELETE", path .. "/empty", bearer "root")))
        end
      end
    end)
  end
end)


describe("json web tokens", function()
  local token = jwt.sign({ sub = "a" }, "key")

  it("give their claims back to who has the key", function()
    assert.same({ sub = "a" }, jwt.claims(token, "key"))
  end)

  for _, case in ipairs {
    { "with another key", function() return token, "other" end },
    { "when they were changed", function() return (token:gsub("%.[^.]*%.", ".eyJzdWIiOiJiIn0.")), "key" end },
    { "without signature", function() return (token:gsub("[^.]*$", "")), "key" end },
    { "when they are none", function() return "word", "key" end },
  } do
    it("give nothing " .. case[1], function()
      assert.is_nil(jwt.claims(case[2]()))
    end)
  end
end)


describe("without tokens in the settings", function()
  it("everybody is the administrator", function()
    assert.equal("system:admin", who(new {}).username)
  end)
end)


describe("with tokens in the settings", function()
  it("nobody is anonymous where everybody may do everything", function()
    local server = new { tokens = TOKENS }
    assert.equal(401, (ask(server, "GET", "/api/v1/pods")))
    assert.equal(401, (ask(server, "GET", "/api/v1/pods", bearer "wrong")))
    assert.equal(200, (ask(server, "GET", "/api/v1/pods", bearer "jane")))
  end)

  it("the user is in the group of all who are known", function()
    assert.same({ username = "jane", groups = { "readers", "system:authenticated" } },
      who(new { tokens = TOKENS }, bearer "jane"))
  end)

  it("who shows no token is anonymous where roles decide", function()
    local server = new { tokens = TOKENS, authorization = "rbac" }
    local code, answer = ask(server, "GET", "/api/v1/pods")
    assert.equal(403, code)
    assert.truthy(answer.message:find('User "system:anonymous" cannot list resource "pods"', 1, true))
    assert.equal(200, (ask(server, "GET", "/version")))
  end)
end)


describe("roles", function()
  local server

  before_each(function()
    server = new { tokens = TOKENS, authorization = "rbac" }
  end)

  it("allow what they say, from when they are bound until they are gone", function()
    assert.equal(403, (ask(server, "GET", "/api/v1/secrets", bearer "jane")))
    grant(server, { kind = "Group", name = "readers" }, "list", "secrets")
    assert.equal(200, (ask(server, "GET", "/api/v1/secrets", bearer "jane")))
    assert.equal(403, (ask(server, "GET", "/api/v1/pods", bearer "jane")))
    server:call("DELETE", RBAC .. "clusterroles/r")
    local code, answer = ask(server, "GET", "/api/v1/secrets", bearer "jane")
    assert.equal(403, code)
    assert.truthy(answer.message:find('clusterrole.rbac.authorization.k8s.io "r" not found', 1, true))
  end)

  it("to patch are not rights to create: who applies what is not there needs both", function()
    local path = "/api/v1/namespaces/default/configmaps/a?fieldManager=m"
    local applied = { apiVersion = "v1", kind = "ConfigMap", metadata = { name = "a" }, data = { k = "v" } }
    local headers = bearer("jane", { ["content-type"] = "application/apply-patch+yaml" })
    local roles = new { authorization = "rbac", tokens = TOKENS }
    grant(roles, { kind = "User", name = "jane" }, "patch", "configmaps")
    local code, answer = ask(roles, "PATCH", path, headers, applied)
    assert.same({ 403, 'configmaps "a" is forbidden: User "jane" cannot create resource "configmaps" in API group "" '
      .. 'in the namespace "default"' }, { code, answer.message })
    assert.equal(404, (roles:call("GET", "/api/v1/namespaces/default/configmaps/a")))
    applied.data["a/b"] = "v"
    assert.equal(422, (ask(roles, "PATCH", path, headers, applied)))
    applied.data["a/b"] = nil
    roles:call("PATCH", RBAC .. "clusterroles/r", { rules = { { verbs = { "patch", "create" }, apiGroups = { "" },
      resources = { "configmaps" } } } }, { content_type = "application/merge-patch+json" })
    assert.equal(201, (ask(roles, "PATCH", path, headers, applied)))
  end)

  it("do not bind the administrator", function()
    assert.equal(200, (ask(server, "GET", "/api/v1/secrets", bearer "root")))
  end)

  it("that sum up others are there from the start and follow them", function()
    local function verbs_for(resource)
      local _, view = server:call("GET", RBAC .. "clusterroles/admin")
      for _, rule in ipairs(view.rules) do
        for _, name in ipairs(rule.resources) do
          if name == resource then
            return rule.verbs
          end
        end
      end
    end
    assert.same({ "get", "list", "watch" }, verbs_for "pods/log")
    server:call("POST", RBAC .. "clusterroles", {
      metadata = { name = "widgets", labels = { ["rbac.authorization.k8s.io/aggregate-to-admin"] = "true" } },
      rules = { { verbs = { "get" }, apiGroups = { "example.com" }, resources = { "widgets" } } },
    })
    hostlua.poll()
    assert.same({ "get" }, verbs_for "widgets")
  end)

  it("are there where nobody asks them, when they are to be shown", function()
    local shown = new {}
    assert.equal(404, (shown:call("GET", RBAC .. "clusterroles/admin")))
    shown.auth:show_roles()
    hostlua.poll()
    local _, admin = shown:call("GET", RBAC .. "clusterroles/admin")
    assert.same(select(2, server:call("GET", RBAC .. "clusterroles/admin")).rules, admin.rules)
  end)

  it("of the system's namespaces are there from the start", function()
    local reader = "/namespaces/kube-system/roles/extension-apiserver-authentication-reader"
    assert.same({
      { verbs = { "get", "list", "watch" }, apiGroups = { "" }, resources = { "configmaps" },
        resourceNames = { "extension-apiserver-authentication" } },
    }, select(2, server:call("GET", RBAC:sub(1, -2) .. reader)).rules)
    local signer = "namespaces/kube-public/rolebindings/system:controller:bootstrap-signer"
    assert.same({ { kind = "ServiceAccount", name = "bootstrap-signer", namespace = "kube-system" } },
      select(2, server:call("GET", RBAC .. signer)).subjects)
  end)
end)


describe("the token of a service account", function()
  local server, token

  local function request(spec)
    local code, answer = server:call("POST", "/api/v1/namespaces/default/serviceaccounts/robot/token", { spec = spec })
    assert.equal(201, code)
    return answer.status.token
  end

  before_each(function()
    server = new { tokens = TOKENS, authorization = "rbac" }
    server:call("POST", "/api/v1/namespaces/default/serviceaccounts", { metadata = { name = "robot" } })
    token = request { expirationSeconds = 600 }
  end)

  local function code_with(shown)
    return (ask(server, "GET", "/api/v1/secrets", bearer(shown)))
  end

  it("is good until it expires", function()
    local user = who(server, bearer(token))
    assert.equal("system:serviceaccount:default:robot", user.username)
    assert.same({ "system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated" }, user.groups)
    assert.equal(403, code_with(token))
    hostlua.advance(600)
    assert.equal(401, code_with(token))
  end)

  it("dies with the account, also when there is another of that name", function()
    server:call("DELETE", "/api/v1/namespaces/default/serviceaccounts/robot")
    assert.equal(401, code_with(token))
    server:call("POST", "/api/v1/namespaces/default/serviceaccounts", { metadata = { name = "robot" } })
    assert.equal(401, code_with(token))
  end)

  it("dies with what it is bound to", function()
    server:call("POST", "/api/v1/namespaces/default/secrets", { metadata = { name = "s" } })
    local bound = request { boundObjectRef = { apiVersion = "v1", kind = "Secret", name = "s" } }
    assert.equal(403, code_with(bound))
    server:call("DELETE", "/api/v1/namespaces/default/secrets/s")
    assert.equal(401, code_with(bound))
  end)

  it("tells the pod it is bound to and the pod's node, and outlives the node", function()
    local _, node = server:call("POST", "/api/v1/nodes", { metadata = { name = "n" } })
    local pods = "/api/v1/namespaces/default/pods"
    local _, pod = server:call("POST", pods, { metadata = { name = "p" }, spec = {
      serviceAccountName = "robot", nodeName = "n", containers = { { name = "c", image = "i" } },
    } })
    local bound = request { boundObjectRef = { apiVersion = "v1", kind = "Pod", name = "p" } }
    server:call("DELETE", "/api/v1/nodes/n")
    local _, review = server:call("POST", "/apis/authentication.k8s.io/v1/tokenreviews", { spec = { token = bound } })
    local extra = review.status.user.extra
    assert.matches("^JTI=%x+%-", extra["authentication.kubernetes.io/credential-id"][1])
    extra["authentication.kubernetes.io/credential-id"] = nil
    assert.same({
      ["authentication.kubernetes.io/node-name"] = { "n" }, ["authentication.kubernetes.io/pod-name"] = { "p" },
      ["authentication.kubernetes.io/node-uid"] = { node.metadata.uid },
      ["authentication.kubernetes.io/pod-uid"] = { pod.metadata.uid },
    }, extra)
    server:call("DELETE", pods .. "/p?gracePeriodSeconds=0")
    assert.equal(401, code_with(bound))
  end)

  it("names a node that is not there without a uid", function()
    server:call("POST", "/api/v1/namespaces/default/pods", { metadata = { name = "p" }, spec = {
      serviceAccountName = "robot", nodeName = "gone", containers = { { name = "c", image = "i" } },
    } })
    local bound = request { boundObjectRef = { apiVersion = "v1", kind = "Pod", name = "p" } }
    local extra = who(server, bearer(bound)).extra
    assert.same({ "gone" }, extra["authentication.kubernetes.io/node-name"])
    assert.is_nil(extra["authentication.kubernetes.io/node-uid"])
  end)

  it("lives a year when a pod has it for 3607 seconds and for the server alone, and its answer does not say so",
  function()
    server:call("POST", "/api/v1/namespaces/default/pods", { metadata = { name = "p" },
      spec = { serviceAccountName = "robot", containers = { { name = "c", image = "i" } } } })
    local function after_an_hour(spec)
      spec.boundObjectRef = spec.boundObjectRef or { apiVersion = "v1", kind = "Pod", name = "p" }
      local code, answer = server:call("POST", "/api/v1/namespaces/default/serviceaccounts/robot/token",
        { spec = spec })
      assert.equal(201, code)
      assert.equal(spec.expirationSeconds, answer.spec.expirationSeconds)
      hostlua.advance(spec.expirationSeconds)
      assert.equal(host.timestamp(), answer.status.expirationTimestamp)
      return code_with(answer.status.token), answer.status.token
    end
    assert.equal(401, (after_an_hour { expirationSeconds = 3606 }))
    assert.equal(401, (after_an_hour { expirationSeconds = 3607,
      audiences = { "https://kubernetes.default.svc", "other" } }))
    server:call("POST", "/api/v1/namespaces/default/secrets", { metadata = { name = "s" } })
    assert.equal(401, (after_an_hour { expirationSeconds = 3607,
      boundObjectRef = { apiVersion = "v1", kind = "Secret", name = "s" } }))
    local code, extended = after_an_hour { expirationSeconds = 3607 }
    assert.equal(403, code)
    hostlua.advance(364 * 24 * 3600)
    assert.equal(403, code_with(extended))
    hostlua.advance(24 * 3600)
    assert.equal(401, code_with(extended))
  end)

  it("is only for whom it was made", function()
    assert.equal(401, code_with(request { audiences = { "elsewhere" } }))
  end)

  it("is not good at another server", function()
    local other = new { tokens = TOKENS, authorization = "rbac" }
    assert.equal(401, (ask(other, "GET", "/api/v1/secrets", bearer(token))))
  end)

  it("may do what the account's roles allow", function()
    grant(server, { kind = "ServiceAccount", name = "robot", namespace = "default" }, "list", "secrets")
    assert.equal(200, code_with(token))
  end)
end)


describe("impersonation", function()
  it("is for those who may", function()
    local server = new { tokens = TOKENS, authorization = "rbac" }
    local code, answer = ask(server, "GET", "/api/v1/pods", bearer("jane", { ["impersonate-user"] = "bob" }))
    assert.equal(403, code)
    assert.truthy(answer.message:find('cannot impersonate-on:user-info:list resource "pods"', 1, true))
    grant(server, { kind = "User", name = "jane" }, "impersonate", "users")
    assert.equal("bob", who(server, bearer("jane", { ["impersonate-user"] = "bob" })).username)
    assert.equal(403, (ask(server, "GET", "/api/v1/pods",
      bearer("jane", { ["impersonate-user"] = "bob", ["impersonate-group"] = "system:masters" }))))
  end)

  it("gives groups and extra, and the groups of a service account", function()
    local server = new { tokens = TOKENS }
    assert.same({ username = "bob", uid = "7", groups = { "a", "b", "system:authenticated" },
      extra = { ["x/y"] = { "1" } } }, who(server, bearer("jane", { ["impersonate-user"] = "bob",
      ["impersonate-uid"] = "7", ["impersonate-group"] = "a, b", ["impersonate-extra-x%2fy"] = "1" })))
    assert.same({ "system:serviceaccounts", "system:serviceaccounts:n", "system:authenticated" },
      who(server, bearer("jane", { ["impersonate-user"] = "system:serviceaccount:n:s" })).groups)
  end)

  it("needs a name", function()
    local code = ask(new { tokens = TOKENS }, "GET", "/api/v1/pods", bearer("jane", { ["impersonate-group"] = "a" }))
    assert.equal(400, code)
  end)
end)
