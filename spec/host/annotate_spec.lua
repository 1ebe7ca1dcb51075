-- moonloop rollback, pause and retry: which annotation they set on which ConfigMap or object. No host runs here; what
-- hosts make of the annotations is in spec/e2e/changing_spec.lua.
local cjson = require "cjson.safe"
local dev = require "spec.host.support.dev"
local host = require "spec.e2e.support.host"
local shell = require "spec.e2e.support.shell"

local MAPS = "/api/v1/namespaces/%s/configmaps"

local function script(controller, mark)
  return ([[
local moonloop = require "moonloop"
return moonloop.controller { name = "%s", reconciles = moonloop.kind("v1", "ConfigMap"), reconcile = function() end }
-- %s
]]):format(controller, mark)
end


-- As docs/changing.md says that it can be computed.
local function revision_of(file, text)
  local path = shell.path "text"
  shell.write(path, text)
  return shell.must(([[{ printf '%s\0'; cat %s; printf '\0'; } | sha256sum | cut -c 1-8]]):format(file, path))
    :match "^%x+"
end


describe("The commands that annotate", function()
  local server

  setup(function()
    server = dev.start { "--pods", "none" }
  end)

  teardown(dev.stop_all)

  local function create(ns, name, data, annotations, labels)
    local path = MAPS:format(ns)
    server:ask("DELETE", path .. "/" .. name)
    server:must("POST", path, {
      apiVersion = "v1", kind = "ConfigMap", data = data,
      metadata = { name = name, annotations = annotations, labels = labels },
    })
  end

  -- The ConfigMap NAME with a script of `controller`, and the one with three of its revisions. Returns them, the newest
  -- first: it is the one that NAME has.
  local function create_scripts(ns, name, controller, annotations)
    local kept, revisions = {}, {}
    for i, mark in ipairs { "new", "middle", "old" } do
      local text = script(controller, mark)
      revisions[i] = revision_of("a.lua", text)
      kept[controller .. "." .. revisions[i]] = cjson.encode {
        since = ("2026-01-01T00:00:0%d.000000Z"):format(9 - i), way = "edit", file = "a.lua",
        files = { ["a.lua"] = text },
      }
    end
    create(ns, name, { ["a.lua"] = script(controller, "new") }, annotations)
    create(ns, name .. "-revisions", kept, nil, { ["app.kubernetes.io/managed-by"] = "moonloop" })
    return table.unpack(revisions)
  end

  local function annotation(name, ns, map)
    local object = server:get(MAPS:format(ns or "default") .. "/" .. (map or "scripts"))
    return (object.metadata.annotations or {})["moonloop.dev/" .. name]
  end

  local function command(...)
    local words = { ... }
    words[#words + 1] = "--kubeconfig"
    words[#words + 1] = server.kubeconfig
    return host.command(words)
  end

  local function must(...)
    local result = command(...)
    assert.same({ 0, "" }, { result.code, result.err })
    return result.out
  end

  local function refused(want, ...)
    local result = command(...)
    assert.equal(1, result.code)
    assert.truthy(result.err:find(want, 1, true), result.err)
  end

  it("name the newest revision that does not run, then the next one", function()
    local new, middle, old = create_scripts("default", "scripts", "site")
    must("rollback", "site")
    assert.equal(("site: %s instead of %s"):format(middle, new), annotation "rollback")
    must("rollback", "site")
    assert.equal(("site: %s instead of %s"):format(old, new), annotation "rollback")
    must("rollback", "site", "--to", middle)
    assert.equal(("site: %s instead of %s"):format(middle, new), annotation "rollback")
    must("rollback", "site", "--end")
    assert.is_nil(annotation "rollback")
    refused("is the one that the ConfigMap has; --end has it run again", "rollback", "site", "--to", new)
    refused("no revision 12345678 of controller site is kept", "rollback", "site", "--to", "12345678")
  end)

  it("begin anew when the script was edited since the last rollback", function()
    local new, middle = create_scripts("default", "scripts", "site", {
      ["moonloop.dev/rollback"] = "site: 00000001 instead of 00000002",
    })
    must("rollback", "site")
    assert.equal(("site: %s instead of %s"):format(middle, new), annotation "rollback")
  end)

  it("leave the items of other controllers", function()
    local new, middle = create_scripts("default", "scripts", "site", {
      ["moonloop.dev/rollback"] = "db: 00000001 instead of 00000002, nonsense, x: 00000003 instead of 00000004",
      ["moonloop.dev/paused"] = " db ,x",
    })
    local others = "db: 00000001 instead of 00000002, x: 00000003 instead of 00000004"
    must("rollback", "site")
    assert.equal(("%s, site: %s instead of %s"):format(others, middle, new), annotation "rollback")
    must("rollback", "site", "--end")
    assert.equal(others, annotation "rollback")
    must("pause", "site")
    assert.equal("db, x, site", annotation "paused")
    must("pause", "site")
    assert.equal("db, x, site", annotation "paused")
    must("pause", "site", "--end")
    assert.equal("db, x", annotation "paused")
  end)

  it("end no pause that is of the whole ConfigMap", function()
    create_scripts("default", "scripts", "site", { ["moonloop.dev/paused"] = "true" })
    refused("all controllers of ConfigMap default/scripts are paused; remove its annotation moonloop.dev/paused",
      "pause", "site", "--end")
    assert.equal("true", annotation "paused")
  end)

  it("hold and repeat a script that is refused as well", function()
    create_scripts("default", "scripts", "site")
    create("default", "scripts", { ["a.lua"] = "return {" })
    must("pause", "site")
    assert.equal("site", annotation "paused")
    must("retry", "site")
    local first = annotation "retry"
    assert.matches("^site: %d+%-%d+%-%d+T%d+:%d+:%d+%.%d+Z$", first)
    must("retry", "site")
    assert.not_equal(first, annotation "retry")
    refused("and one is refused: a.lua:1:", "rollback", "site")
  end)

  it("find the ConfigMap of the namespace, and ask when there are two", function()
    create_scripts("default", "scripts", "site")
    create_scripts("default", "more", "site")
    create_scripts("kube-system", "scripts", "other")
    create("default", "foreign-revisions", { ["other.00000001"] = "{}" }, nil, {
      ["app.kubernetes.io/managed-by"] = "moonloop",
    })
    refused("controller site is in the ConfigMaps", "pause", "site")
    must("pause", "site", "--scripts-configmap", "default/more")
    assert.equal("site", annotation("paused", "default", "more"))
    assert.is_nil(annotation "paused")
    refused("no ConfigMap in namespace default keeps a revision of controller other; choose another --namespace",
      "pause", "other")
    must("pause", "other", "--namespace", "kube-system")
    assert.equal("other", annotation("paused", "kube-system"))
    server:must("DELETE", MAPS:format "default" .. "/more-revisions")
    must("pause", "site")
    assert.equal("site", annotation "paused")
    refused("ConfigMap default/more has no script of controller nobody", "retry", "nobody", "--scripts-configmap",
      "default/more")
    refused('configmaps "none" not found', "retry", "site", "--scripts-configmap", "default/none")
    refused("--namespace a/b: no namespace has such a name", "retry", "site", "--namespace", "a/b")
  end)

  -- Makes kinds: each is { GROUP, KIND, PLURAL, SCOPE }.
  local function install(...)
    for _, kind in ipairs { ... } do
      local path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
      server:must("POST", path, {
        apiVersion = "apiextensions.k8s.io/v1", kind = "CustomResourceDefinition",
        metadata = { name = kind[3] .. "." .. kind[1] },
        spec = {
          group = kind[1], scope = kind[4], names = { kind = kind[2], plural = kind[3] },
          versions = {
            { name = "v1", served = true, storage = true, schema = { openAPIV3Schema = { type = "object" } } },
            { name = "v1beta1", served = true, storage = false, schema = { openAPIV3Schema = { type = "object" } } },
          },
        },
      })
    end
  end

  local function create_object(path, api_version, kind, name)
    server:must("POST", path, { apiVersion = api_version, kind = kind, metadata = { name = name } })
    return function()
      return (server:get(path .. "/" .. name).metadata.annotations or {})["moonloop.dev/retry"]
    end
  end

  it("have one object tried again, which is found by its kind", function()
    install({ "one.example.com", "Box", "boxes", "Namespaced" }, { "two.example.com", "Box", "boxes", "Namespaced" },
      { "one.example.com", "Tenant", "tenants", "Cluster" })
    local ones = "/apis/one.example.com/v1/namespaces/default/boxes"
    local one = create_object(ones, "one.example.com/v1", "Box", "b00")
    local two = create_object(ones:gsub("one", "two"), "two.example.com/v1", "Box", "b00")
    local map = create_object(MAPS:format "default", "v1", "ConfigMap", "b00")
    local tenant = create_object("/apis/one.example.com/v1/tenants", "one.example.com/v1", "Tenant", "acme")
    refused("kinds of several groups are called Box; choose one: Box.one.example.com, Box.two.example.com",
      "retry", "Box", "default/b00")
    assert.equal("Box default/b00: is tried again now\n", must("retry", "Box.two.example.com", "default/b00"))
    assert.is_nil(one())
    local first = two()
    assert.matches("^%d+%-%d+%-%d+T%d+:%d+:%d+%.%d+Z$", first)
    must("retry", "boxes.two.example.com", "b00")
    assert.not_equal(first, two())
    must("retry", "Box.one.example.com", "b00", "--namespace", "default")
    assert.is_string(one())
    assert.equal("ConfigMap default/b00: is tried again now\n", must("retry", "ConfigMap", "default/b00"))
    first = map()
    must("retry", "configmaps.v1", "b00")
    assert.not_equal(first, map())
    assert.equal("Tenant acme: is tried again now\n", must("retry", "Tenant", "acme"))
    assert.is_string(tenant())
    refused("an object of kind Tenant is in no namespace: moonloop retry Tenant acme",
      "retry", "Tenant", "default/acme")
    refused("choose one: Event.v1, Event.events.k8s.io", "retry", "Event", "e")
    refused("the server has no kind Boxes; is its CRD installed?", "retry", "Boxes", "b00")
    refused("the server has no kind Box.none.example.com; is its CRD installed?",
      "retry", "Box.none.example.com", "b00")
    refused("`Box.` is no name of a kind; expected one such as Site, sites or Site.example.com", "retry", "Box.", "b00")
    refused('boxes.one.example.com "none" not found', "retry", "Box.one.example.com", "default/none")
    refused("--namespace a/b: no namespace has such a name",
      "retry", "Box.one.example.com", "b00", "--namespace", "a/b")
    for words, want in pairs {
      ["Box a/b/c"] = "a/b/c: expected NAMESPACE/NAME, or NAME",
      ["Box b00 --scripts-configmap default/a"] = "--scripts-configmap is for the name of a controller; leave it out",
      ["Box b00 c"] = "expected a controller, or a kind and an object: moonloop retry CONTROLLER, or moonloop retry",
    } do
      local list = { "retry" }
      for word in words:gmatch "%S+" do
        list[#list + 1] = word
      end
      local result = command(table.unpack(list))
      assert.equal(2, result.code)
      assert.truthy(result.err:find(want, 1, true), result.err)
    end
  end)

  it("say which server they cannot use", function()
    local result = host.command({ "retry", "site", "--kubeconfig", "/nowhere" })
    assert.equal(3, result.code)
    assert.truthy(result.err:find("/nowhere", 1, true), result.err)
    local text = shell.read(server.kubeconfig):gsub("server: %S+", "server: https://127.0.0.1:1")
    local path = shell.path "closed"
    shell.write(path, text)
    result = host.command { "retry", "site", "--kubeconfig", path }
    assert.equal(3, result.code)
    assert.truthy(result.err:find("cannot use the API server https://127.0.0.1:1", 1, true), result.err)
    text = shell.read(server.kubeconfig):gsub("token: %S+", "token: wrong")
    shell.write(path, text)
    result = host.command { "retry", "site", "--kubeconfig", path }
    assert.equal(3, result.code)
    assert.truthy(result.err:find("Unauthorized", 1, true), result.err)
    result = host.command { "retry", "ConfigMap", "default/a", "--kubeconfig", path }
    assert.equal(3, result.code)
    assert.truthy(result.err:find("Unauthorized", 1, true), result.err)
  end)
end)
