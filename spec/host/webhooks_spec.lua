-- moonloop run, to whoever sends reviews to its webhooks, or what is none; and the certificates that it shows.
local cjson = require "cjson.safe"
local dev = require "spec.host.support.dev"
local host = require "spec.e2e.support.host"
local mime = require "mime"
local shell = require "spec.e2e.support.shell"
local wait = require "spec.e2e.support.wait"

local SECRET = "/api/v1/namespaces/default/secrets/moonloop-webhook-cert"

local function start(server, args, scripts)
  local words = { "--webhook-bind-address", "127.0.0.1:0", "--webhook-namespace", "default", table.unpack(args or {}) }
  local moonloop = host.start {
    name = "webhooks", scripts = scripts or "spec/testing/webhooks/widget.lua", kubeconfig = server.kubeconfig,
    args = words,
  }
  moonloop.webhook_port = math.tointeger(moonloop:till_log({ msg = "serving webhooks" }).webhook_port)
  return moonloop
end


-- @return integer code, string body
local function post(moonloop, path, body, opts)
  opts = opts or {}
  local file = shell.path "body"
  shell.write(file, body)
  local line = {
    "curl", "-sk", "--max-time", "20", "-w", "\n%{http_code}", "-X", opts.method or "POST", "-H", "Expect:",
    "-H", "Content-Type: " .. (opts.type or "application/json"), "--data-binary", "@" .. file,
  }
  line[#line + 1] = ("https://127.0.0.1:%d%s"):format(moonloop.webhook_port, path)
  local text, code = shell.run(shell.line(line)):match "^(.*)\n(%d+)%s*$"
  return math.tointeger(tonumber(code)), text
end


local function review(spec, version)
  return cjson.encode {
    apiVersion = "admission.k8s.io/" .. (version or "v1"), kind = "AdmissionReview",
    request = {
      uid = "u", operation = "CREATE", namespace = "default", name = "a",
      object = {
        apiVersion = "example.com/v1", kind = "Widget", metadata = { name = "a", namespace = "default" }, spec = spec,
      },
    },
  }
end


-- A certificate and its key in a folder, for as many days; 0: one that has just expired.
local function write_pair(folder, days)
  shell.must(("openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=it -keyout %s/new.key "
    .. "-out %s/new.csr 2>/dev/null"):format(folder, folder))
  local sign = "cd %s && openssl x509 -req -in new.csr -signkey new.key -days %d -out new.crt 2>/dev/null"
  shell.must(sign:format(folder, days))
  if days == 0 then
    wait.till("the certificate to expire", 10, function()
      return select(2, shell.run("openssl x509 -noout -checkend 0 -in " .. folder .. "/new.crt")) ~= 0
    end)
  end
  shell.must(("mv %s/new.key %s/tls.key && mv %s/new.crt %s/tls.crt"):format(folder, folder, folder, folder))
end


-- Returns the serial number of the certificate that a client is shown.
local function shown(moonloop)
  local line = "openssl s_client -connect 127.0.0.1:%d </dev/null 2>/dev/null | openssl x509 -noout -serial"
  return (shell.run(line:format(moonloop.webhook_port)))
end


local function serial_of(folder)
  return shell.must(shell.line { "openssl", "x509", "-noout", "-serial", "-in", folder .. "/tls.crt" })
end


describe("The webhooks of moonloop run", function()
  local server

  before_each(function()
    server = dev.start { "--pods", "none", "--apply", "spec/testing/webhooks/crds" }
  end)

  after_each(host.stop_all)

  it("refuse what is no review, and say why", function()
    local moonloop = start(server):till_ready()
    local function refuses(code, why, ...)
      local is, text = post(moonloop, ...)
      assert.equal(code, is, text)
      assert.matches(why, text, 1, true)
    end
    refuses(404, "expected /default/NAME, /validate/NAME or /convert/NAME", "/", "{}")
    refuses(404, "no script of this name", "/validate/nobody", review {})
    refuses(415, "application/json", "/validate/widget", review {}, { type = "text/yaml" })
    refuses(405, "POST", "/validate/widget", review {}, { method = "PUT" })
    refuses(400, "the body is no JSON", "/validate/widget", "a: 1")
    refuses(400, "expected AdmissionReview of admission.k8s.io/v1, got AdmissionReview of admission.k8s.io/v1beta1",
      "/validate/widget", review({}, "v1beta1"))
    refuses(400, "expected ConversionReview", "/convert/widget", review {})
    refuses(413, "at most 7 MiB", "/validate/widget", (" "):rep(7 * 1024 * 1024 + 1))
    refuses(500, "ms of CPU time", "/validate/widget?timeout=5s", review { trick = "validate-loop" })
    refuses(500, "boom", "/validate/widget", review { size = 1, trick = "validate-raise" })
    moonloop:till_log { msg = "webhook failed", controller = "widget", webhook = "/validate/widget" }
    refuses(200, '"allowed":true', "/validate/widget", review { size = 1 })
    assert.equal(5, moonloop:metric("controller_runtime_webhook_requests_total", { webhook = "/validate/widget" }))
    assert.equal(0, moonloop:metric "controller_runtime_webhook_requests_in_flight")
  end)

  it("take a review of more than 3 MB, and no object of more than that", function()
    local moonloop = start(server):till_ready()
    local code, text = post(moonloop, "/validate/widget", review { size = 1, text = ("x"):rep(3200000) })
    assert.equal(200, code, text)
    code, text = post(moonloop, "/default/widget", review { text = ("x"):rep(3200000) })
    assert.equal(500, code)
    assert.matches("larger than 3 MiB as JSON", text, 1, true)
  end)

  it("show the certificate of a folder, and the next one", function()
    local folder = shell.folder "cert"
    write_pair(folder, 30)
    local moonloop = start(server, { "--webhook-cert-dir", folder }):till_ready()
    moonloop:till_log { msg = "webhooks show a new certificate" }
    assert.equal(serial_of(folder), shown(moonloop))
    write_pair(folder, 20)
    moonloop:till_log({ msg = "webhooks show a new certificate" }, 10, 2)
    assert.equal(serial_of(folder), shown(moonloop))
    local good = shown(moonloop)
    shell.write(folder .. "/tls.crt", "no certificate")
    moonloop:till_log { msg = "new certificate of webhooks refused; the last one is shown" }
    assert.equal(good, shown(moonloop))
    assert.is_nil(server:get(SECRET)) -- it makes none of its own
    write_pair(folder, 0)
    moonloop:till_log { msg = "the certificate of webhooks has expired", level = "error" }
  end)

  it("show the certificate of the Secret, which all replicas have", function()
    local one, other = start(server):till_ready(), start(server):till_ready()
    local secret = wait.till("the Secret", 10, function()
      return server:get(SECRET)
    end)
    for _, moonloop in ipairs { one, other } do
      moonloop:till_log { msg = "webhooks show a new certificate" }
    end
    local folder = shell.folder "cert"
    shell.write(folder .. "/tls.crt", (mime.unb64(secret.data["tls.crt"])))
    for _, moonloop in ipairs { one, other } do
      wait.till("the same certificate", 10, function()
        return shown(moonloop) == serial_of(folder)
      end)
    end
    assert.equal(1, #one:lines { msg = "certificates of webhooks were written" }
      + #other:lines { msg = "certificates of webhooks were written" })
  end)

  -- The certificate of the Secret, and whom to trust.
  local function kept()
    local secret = wait.till("the Secret", 10, function() return server:get(SECRET) end)
    return mime.unb64(secret.data["tls.crt"] or ""), mime.unb64(secret.data["ca.crt"] or ""), secret
  end

  local function shows(moonloop, pem)
    local folder = shell.folder "cert"
    shell.write(folder .. "/tls.crt", pem)
    local serial = serial_of(folder)
    wait.till("this certificate", 10, function() return shown(moonloop) == serial end)
  end

  it("are put right in their Secret by the replica that runs, as they were", function()
    local one = start(server):till_ready()
    one:till_log { msg = "webhooks show a new certificate" }
    local before = select(3, kept()).data
    for _, damage in ipairs { { ["tls.crt"] = "Zm9v" }, { ["ca.key"] = "Zm9v" }, { ["tls.key"] = cjson.null } } do
      server:must("PATCH", SECRET, { data = damage }, { type = "application/merge-patch+json" })
      wait.till("the Secret as it was", 10, function()
        local data = select(3, kept()).data
        for key, text in pairs(before) do
          if data[key] ~= text then
            return false, key
          end
        end
        return true
      end)
      assert.equal(200, select(2, one:get "/readyz"))
    end
    one:till_log { msg = "the Secret of webhooks is damaged; repairing it", level = "warn" }
  end)

  it("are put right in their Secret by a replica that starts, which is not ready before", function()
    local before = start(server):till_ready()
    local _, authority = kept()
    before:stop()
    server:must("PATCH", SECRET, { data = { ["tls.crt"] = "Zm9v" } }, { type = "application/merge-patch+json" })
    local moonloop = start(server):till_ready()
    local cert, now = kept()
    assert.equal(authority, now) -- nobody has to trust another one
    assert.not_equal("foo", cert)
    shows(moonloop, cert)
  end)

  it("are missing on a replica that cannot repair them, and it is not ready", function()
    server:must("POST", "/api/v1/namespaces/default/secrets", {
      metadata = { name = "foreign" }, stringData = { password = "x" },
    })
    local moonloop = start(server, { "--webhook-cert-secret", "foreign" })
    moonloop:till_log { msg = "script is live" }
    local why, code = moonloop:get "/readyz?verbose"
    assert.equal(500, code)
    assert.matches("no certificate yet that API servers trust: Secret foreign", why, 1, true)
    assert.equal(200, select(2, moonloop:get "/healthz"))
  end)

  it("are trusted again at once when somebody took caBundle away", function()
    local moonloop = start(server, { "--webhook-url", "https://127.0.0.1" }):till_ready()
    local url = "https://127.0.0.1:" .. moonloop.webhook_port
    local printed = host.command { "manifests", "spec/testing/webhooks/widget.lua", "--no-rights", "--webhook-url", url,
                                   "--crds", "spec/testing/webhooks/crds" }
    local path = "/apis/admissionregistration.k8s.io/v1/%swebhookconfigurations/moonloop-widget"
    local places = {
      MutatingWebhookConfiguration = path:format "mutating", ValidatingWebhookConfiguration = path:format "validating",
      CustomResourceDefinition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com",
    }
    for document in ("\n---\n" .. printed.out):gsub("\n%-%-%-\n", "\0"):gmatch "[^%z]+" do
      local place = assert(places[document:match "kind: (%a+)"], document)
      server:must("PATCH", place .. "?fieldManager=it&force=true", document, { type = "application/apply-patch+yaml" })
    end
    moonloop:till_log({ msg = "caBundle was written" }, 20, 3) -- nothing is missing: the next round is in a minute
    for _, kind in ipairs { "mutating", "validating" } do
      local at = path:format(kind)
      local function bundle() return server:must("GET", at).webhooks[1].clientConfig.caBundle end
      wait.till("the bundle", 20, bundle)
      wait.holds("the bundle until the rounds that its own writes bring are over", 3, bundle)
      local before = bundle()
      local taken = wait.now()
      server:must("PATCH", at, { { op = "remove", path = "/webhooks/0/clientConfig/caBundle" } },
        { type = "application/json-patch+json" })
      wait.till("the bundle again", 20, bundle)
      assert.equal(before, bundle())
      assert.is_true(wait.now() - taken < 20, "it was only found by the round of a minute")
    end
  end)

  it("leave a Secret alone that somebody else made", function()
    server:must("POST", "/api/v1/namespaces/default/secrets", {
      metadata = { name = "foreign" }, stringData = { password = "x" },
    })
    local moonloop = start(server, { "--webhook-cert-secret", "foreign" })
    local line = moonloop:till_log { msg = "the certificates of webhooks cannot be kept" }
    assert.matches("Secret default/foreign has no label app.kubernetes.io/managed-by=moonloop, so somebody else made "
      .. "it; delete it", line.error, 1, true)
    assert.is_nil(server:get("/api/v1/namespaces/default/secrets/foreign").data["tls.crt"])
  end)

  local function till_200(moonloop, seconds)
    wait.till("/readyz to answer 200", seconds or 20, function()
      local why, code = moonloop:get "/readyz?verbose"
      return code == 200, why
    end)
  end

  -- A script that lacks its kind does not take this replica out of the others' Service.
  it("are served by a replica that is ready, whatever becomes of other scripts", function()
    local folder = shell.folder "scripts"
    local function put(name, text)
      shell.write(folder .. "/" .. name, text)
    end
    local other = ('local m = require "moonloop" return m.controller { name = "other", '
      .. 'reconciles = m.kind("example.com/v1", "Nothing"), reconcile = function() end }')
    put("widget.lua", shell.read "spec/testing/webhooks/widget.lua")
    put("other.lua", other)
    local moonloop = start(server, nil, folder)
    till_200(moonloop)
    local why = moonloop:get "/readyz?verbose"
    assert.matches("other.lua: the server has no kind Nothing", why, 1, true)
    assert.equal(1, moonloop:metric "moonloop_scripts_not_working")
    assert.equal(1, moonloop:metric "moonloop_ready")
    put("third.lua", "this is no Lua")
    moonloop:till_log { msg = "script refused", script = "third.lua" }
    local code
    why, code = moonloop:get "/readyz?verbose"
    assert.equal(200, code)
    assert.matches("third.lua:1:", why, 1, true)
    assert.equal(2, moonloop:metric "moonloop_scripts_not_working")
    -- A replica that starts with it ends a rollout there: the ones before it go on.
    local fresh = start(server, nil, folder)
    fresh:till_log { msg = "script is live", script = "widget.lua" }
    fresh:till_log { msg = "kind is not installed; waiting for it" }
    why, code = fresh:get "/readyz?verbose"
    assert.equal(500, code)
    assert.matches("third.lua:1:", why, 1, true)
    assert.equal(200, select(2, moonloop:get "/readyz"))
    put("third.lua", (other:gsub("other", "third")))
    till_200(fresh)
  end)

  it("are served by a replica that leads with a script that was refused: there is no other", function()
    local folder = shell.folder "scripts"
    shell.write(folder .. "/widget.lua", shell.read "spec/testing/webhooks/widget.lua")
    shell.write(folder .. "/third.lua", "this is no Lua")
    local args = { "--leader-elect", "--leader-election-namespace", "default" }
    local leader = start(server, args, folder)
    till_200(leader)
    local standby = start(server, args, folder)
    standby:till_log { msg = "script is live", script = "widget.lua" }
    standby:till_log { msg = "standing by: another replica leads" }
    assert.equal(500, select(2, standby:get "/readyz"))
    leader:kill()
    till_200(standby, 60)
    standby:stop()
  end)

  it("are missed in the log where they are not served", function()
    local moonloop = host.start {
      name = "unserved", scripts = "spec/testing/webhooks/widget.lua", kubeconfig = server.kubeconfig,
    }
    local line = moonloop:till_log {
      msg = "a script has webhooks, which are not served without --webhook-bind-address",
    }
    assert.equal("widget", line.controller)
  end)

  it("say what is wrong with an option", function()
    for _, case in ipairs {
      { "--webhook-url", "http://x", "expected https://HOST:PORT" },
      { "--webhook-url", "https://x/path", "expected https://HOST:PORT" },
      { "--webhook-cert-seconds", "5", "at least 30" },
      { "--webhook-service", "a/b", "not a valid name" },
    } do
      local result = host.command({ "run", "--scripts", "reconcilers", case[1], case[2] }, { KUBECONFIG = false })
      assert.equal(2, result.code)
      assert.matches(case[3], result.err, 1, true)
    end
  end)
end)


describe("moonloop manifests", function()
  after_each(host.stop_all)

  local function print_manifests(...)
    return host.command { "manifests", ... }
  end

  it("prints what the API server needs, and the rights by name only", function()
    local result = print_manifests("spec/testing/webhooks/widget.lua", "--crds", "spec/testing/webhooks/crds",
      "--namespace", "operators")
    assert.equal(0, result.code, result.err)
    for _, text in ipairs {
      "kind: Service\n", "kind: MutatingWebhookConfiguration\n", "kind: ValidatingWebhookConfiguration\n",
      "    resources:\n    - widgets\n", "path: \"/convert/widget\"\n", "name: widgets.example.com\n",
      "  resourceNames:\n  - moonloop-webhook-cert\n", "namespace: operators\n",
    } do
      assert.matches(text, result.out, 1, true)
    end
    assert.is_nil(result.out:find("caBundle", 1, true))
  end)

  it("prints the whole of a definition that it knows, with its conversion", function()
    local crds = "crds/rediscluster.yaml" -- calls a Service
    local result = print_manifests("reconcilers/rediscluster.lua", "--crds", crds, "--no-rights", "--webhook-url",
      "https://192.0.2.1:9443")
    assert.equal(0, result.code, result.err)
    local server = dev.start { "--pods", "none", "--apply", crds }
    local path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/redisclusters.cache.example.com"
    local given = server:must("GET", path).spec
    server:must("DELETE", path)
    server:must("PATCH", path .. "?fieldManager=it", result.out, { type = "application/apply-patch+yaml" })
    local printed = server:must("GET", path).spec
    assert.same({ url = "https://192.0.2.1:9443/convert/rediscluster" }, printed.conversion.webhook.clientConfig)
    given.conversion, printed.conversion = nil, nil
    assert.same(given, printed)
  end)

  it("prints a URL in place of the Service", function()
    local result = print_manifests("spec/testing/webhooks/widget.lua", "--webhook-url", "https://192.0.2.1:9443",
      "--no-rights")
    assert.matches('url: "https://192.0.2.1:9443/validate/widget"', result.out, 1, true)
    assert.is_nil(result.out:find("kind: Service", 1, true))
    assert.is_nil(result.out:find("kind: Role", 1, true))
  end)

  it("has nothing to print for scripts without webhooks", function()
    local result = print_manifests "reconcilers/cnat.lua"
    assert.equal(0, result.code)
    assert.equal("", result.out)
    assert.matches("none of these scripts has webhooks", result.err, 1, true)
  end)

  it("says what is wrong", function()
    assert.equal(2, print_manifests().code)
    assert.equal(2, print_manifests("x.lua", "--webhook-url", "http://x").code)
    local result = print_manifests "none.lua"
    assert.equal(1, result.code)
    assert.matches("none.lua", result.err)
  end)
end)
