-- moonloop dev against clients and containers that mean harm, or do not know better: each gets an answer that says
-- what is wrong, and the server serves the others on. Answers are those of a real kube-apiserver.
--
-- The units of net/http_server.c test bytes that are no request, slow requests, and too many.
local dev = require "spec.host.support.dev"
local shell = require "spec.e2e.support.shell"
local wait = require "spec.e2e.support.wait"

local CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
local PODS = "/api/v1/namespaces/default/pods"
local MIB = 1024 * 1024
local DNS = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must"
  .. " start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is"
  .. " '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"

-- A text inside of so many brackets.
local function nested(open, close, depth)
  return '{"metadata":{"name":"deep"},"extra":' .. open:rep(depth) .. "1" .. close:rep(depth) .. "}"
end


local function named(name)
  return ('{"metadata":{"name":"%s"}}'):format(name)
end


-- A case: its name, the body that is sent, the code, and a part of the message.
local BAD_BODIES = {
  { "half an object", "{", 400, "unexpected end of JSON input" },
  { "nothing", "", 400, "unexpected end of JSON input (<empty>)" },
  { "bytes", "\xff\xfe", 400, "couldn't get version/kind; json parse error" },
  { "objects too deep in each other", nested('{"a":', "}", 12000), 400, "exceeded max depth" },
  { "a million brackets", nested("[", "", 1000000), 400, "exceeded max depth" },
  { "another kind", '{"kind":"Secret","apiVersion":"v1","metadata":{"name":"x"}}', 400,
    "converting (v1.Secret) to (core.ConfigMap): unknown conversion" },
  { "a number for a text", '{"metadata":{"name":"x"},"data":{"a":1}}', 400,
    "json: cannot unmarshal number into Go struct field ConfigMap.data of type string" },
  { "a list for an object", '{"metadata":[]}', 400, "json: cannot unmarshal array" },
  { "more than 3 MiB", (" "):rep(3 * MIB + 1), 413, "Request entity too large: limit is 3145728" },
  { "no name", '{"metadata":{}}', 422, "metadata.name: Required value: name or generateName is required" },
  { "a name with capitals", named "Not_Allowed", 422, 'metadata.name: Invalid value: "Not_Allowed": ' .. DNS },
  { "a name that is a path", named "../../etc", 422, 'metadata.name: Invalid value: "../../etc": ' .. DNS },
  { "a name with a NUL", named "a\\u0000b", 422, "metadata.name: Invalid value: " },
  { "a name too long", named(("a"):rep(254)), 422, "must be no more than 253 characters" },
  { "another namespace", '{"metadata":{"name":"x","namespace":"other"}}', 400,
    "the namespace of the provided object does not match the namespace sent on the request" },
  { "a label whose key is none", '{"metadata":{"name":"x","labels":{"a b":"c"}}}', 422,
    'metadata.labels: Invalid value: "a b": name part must consist of' },
  { "a label whose value is none", '{"metadata":{"name":"x","labels":{"a":"-c-"}}}', 422,
    'metadata.labels: Invalid value: "-c-": a valid label must be an empty string or consist of' },
  { "a label too long", ('{"metadata":{"name":"x","labels":{"a":"%s"}}}'):format(("a"):rep(64)), 422,
    "must be no more than 63 bytes" },
  { "annotations too long", ('{"metadata":{"name":"x","annotations":{"a":"%s"}}}'):format(("a"):rep(270000)), 422,
    "metadata.annotations: Too long: may not be more than 262144 bytes" },
  { "an object too large", ('{"metadata":{"name":"x"},"data":{"a":"%s"}}'):format(("a"):rep(1100000)), 422,
    "Too long: may not be more than 1048576 bytes" },
}

local BAD_TYPES = {
  { "POST", CONFIGMAPS, "text/plain", 415, "UnsupportedMediaType" },
  { "PATCH", CONFIGMAPS .. "/kube-root-ca.crt", "application/json", 415, "UnsupportedMediaType" },
  { "PATCH", CONFIGMAPS .. "/kube-root-ca.crt", "application/nonsense", 415, "UnsupportedMediaType" },
}

local BAD_QUERIES = {
  { "?limit=x", 400 },
  { "?labelSelector=a%3D%3D%3D", 400 },
  { "?fieldSelector=spec.x%3D1", 400 },
  { "?resourceVersion=abc", 400 },
  { "?continue=abc", 400 },
  { "/%2e%2e/x", 404 },
  { "/" .. ("a"):rep(20000), 404 },
}


describe("moonloop dev", function()
  local server

  setup(function()
    server = dev.start { "--pods", "none" }
  end)

  teardown(dev.stop_all)

  for _, case in ipairs(BAD_BODIES) do
    it("refuses " .. case[1], function()
      local code, answer = server:ask("POST", CONFIGMAPS, case[2])
      assert.same({ case[3], "Status", case[3] }, { code, answer.kind, answer.code })
      assert.matches(case[4], answer.message, 1, true)
    end)
  end

  for _, case in ipairs(BAD_TYPES) do
    it(("refuses %s of %s"):format(case[1], case[3]), function()
      local code, answer = server:ask(case[1], case[2], "{}", { type = case[3] })
      assert.same({ case[4], case[5] }, { code, answer.reason })
    end)
  end

  for _, case in ipairs(BAD_QUERIES) do
    it("refuses " .. case[1]:sub(1, 40), function()
      local code, answer = server:ask("GET", CONFIGMAPS .. case[1])
      assert.same({ case[2], "Failure" }, { code, answer.status })
    end)
  end

  it("treats unknown and double fields as fieldValidation says", function()
    local body = '{"metadata":{"name":"x"},"extra":1,"immutable":false,"immutable":false}'
    local function ask(mode)
      local code, answer, headers = server:ask("POST", CONFIGMAPS .. "?dryRun=All" .. mode, body)
      return { code, answer.message, headers.warning }
    end
    local warnings = '299 - "unknown field \\"extra\\"", 299 - "duplicate field \\"immutable\\""'
    assert.same({ 201 }, ask "&fieldValidation=Ignore")
    assert.same({ 201, [3] = warnings }, ask "&fieldValidation=Warn")
    assert.same({ 201, [3] = warnings }, ask "")
    assert.same({ 400, 'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: '
      .. 'unknown field "extra", duplicate field "immutable"' }, ask "&fieldValidation=Strict")
    assert.equal(422, ask("&fieldValidation=Odd")[1])
  end)

  it("has kept nothing of all that", function()
    local items = server:must("GET", CONFIGMAPS).items
    assert.same({ "kube-root-ca.crt" }, { items[1].metadata.name, items[2] })
  end)

  local function descriptors()
    return tonumber(shell.must(("ls /proc/%d/fd | wc -l"):format(server.host.pid)))
  end

  -- Sends the beginning of a request.
  local function begin(text)
    local connection = server:connect()
    assert(connection:send((text:gsub("AUTH", "Host: x\r\nAuthorization: Bearer " .. server.token))))
    return connection
  end

  it("forgets clients that go away in the middle", function()
    local before = descriptors()
    local BEGUN = {
      "GET /vers",
      "GET /version HTTP/1.1\r\nHo",
      "POST " .. CONFIGMAPS .. " HTTP/1.1\r\nAUTH\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{",
      "GET " .. CONFIGMAPS .. "?watch=true HTTP/1.1\r\nAUTH\r\n\r\n",
      "GET " .. CONFIGMAPS .. " HTTP/1.1\r\nAUTH\r\n\r\n",
    }
    for _ = 1, 10 do
      for _, text in ipairs(BEGUN) do
        begin(text):close()
      end
    end
    wait.till("their connections to be closed", 5, function()
      local now = descriptors()
      return now <= before, now .. ", not " .. before
    end)
    server:must("GET", "/version")
  end)

  it("cuts a watch whose client does not read", function()
    local before = descriptors()
    local connection = begin("GET " .. CONFIGMAPS .. "?watch=true HTTP/1.1\r\nAUTH\r\n\r\n")
    assert.matches("200 OK", connection:receive "*l", 1, true)
    local big = { metadata = { name = "big" }, data = { k = ("x"):rep(900000) } }
    server:must("POST", CONFIGMAPS, big)
    wait.till("the watch to be cut", 20, function()
      big.data.n = tostring(wait.now())
      server:must("PUT", CONFIGMAPS .. "/big", big)
      return server.host:stderr():find("a watch was cut: its client does not read", 1, true)
    end)
    wait.till("its connection to be closed", 5, function()
      return descriptors() <= before
    end)
    connection:close()
  end)
end)


describe("A pod of moonloop dev", function()
  local server

  -- The specs measure its memory, so the sanitizer is to keep back little freed memory.
  setup(function()
    server = dev.start({}, { env = { ASAN_OPTIONS = (os.getenv "ASAN_OPTIONS" or "") .. ":quarantine_size_mb=8" } })
  end)

  teardown(dev.stop_all)

  local function run(name, script, policy)
    server:must("POST", PODS, {
      metadata = { name = name },
      spec = {
        restartPolicy = policy or "Never",
        containers = { { name = "main", image = "busybox", command = { "sh", "-c", script } } },
      },
    })
  end

  local function terminated(name)
    local pod = server:get(PODS .. "/" .. name)
    local container = pod.status.containerStatuses and pod.status.containerStatuses[1]
    return container and container.state.terminated
  end

  it("that forks and forks is ended, with all it has forked", function()
    local mark = tostring(math.random(10 ^ 8, 10 ^ 9))
    run("forks", ("i=0; while [ $i -lt 700 ]; do i=$((i+1)); sleep 100.%s & done; wait"):format(mark))
    local how = wait.till("the pod to be ended", 60, function() return terminated "forks" end)
    assert.same({ 137, "TooManyProcesses", "killed: more than 512 processes" },
      { how.exitCode, how.reason, how.message })
    assert.same({}, dev.processes("sleep 100." .. mark))
  end)

  local function resident()
    return tonumber(shell.must("ps -o rss= -p " .. server.host.pid)) / 1024
  end

  -- MiB of the logs of a pod.
  local function logs(name)
    local uid = server:get(PODS .. "/" .. name).metadata.uid
    local list = server.tmp .. "/*/" .. uid .. "_*"
    return function()
      return tonumber(shell.run("du -cm " .. list .. " 2>/dev/null"):match "(%d+)\ttotal" or 0)
    end
  end

  it("that prints without end takes neither memory nor the disk, nor the others' time", function()
    run("prints", "while :; do echo a line that comes again and again; done & exec yes")
    local disk = logs "prints"
    wait.till("its log", 5, function() return disk() > 0 end)
    local begun, slowest, most = resident(), 0, 0
    wait.holds("answers, memory and disk", 2, function()
      local asked = wait.now()
      server:must("GET", "/version")
      slowest, most = math.max(slowest, wait.now() - asked), math.max(most, disk())
      return slowest < 1 and most <= 25 and resident() < begun + 100,
        ("%g s, %d MiB of logs, %.0f MiB and then %.0f"):format(slowest, most, begun, resident())
    end)
    wait.till("as much of its log as was asked for", 20, function()
      local len = #server:must("GET", PODS .. "/prints/log?limitBytes=65536")
      return len == 65536, len
    end)
    server:must("DELETE", PODS .. "/prints?gracePeriodSeconds=0")
    wait.till("its log to be removed", 5, function()
      return disk() == 0, disk()
    end)
  end)

  it("that is not read while it prints without end costs a client its connection, not the server its memory",
    function()
      -- Megabytes have to come that neither the server nor the system keeps; long lines are taken in faster.
      run("again", "exec yes $(printf %08000d 0)")
      wait.till("it to run", 5, function() return server:ask("GET", PODS .. "/again/log") == 200 end)
      local connection = server:connect()
      assert(connection:send(("GET %s/again/log?follow=true&tailLines=1 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s"
        .. "\r\n\r\n"):format(PODS, server.token)))
      server:till_said("a log was cut: its client does not read", 60)
      connection:close()
      server:must("DELETE", PODS .. "/again?gracePeriodSeconds=0")
    end)
end)
