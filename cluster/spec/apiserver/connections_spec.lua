--- exec, attach and port-forward of pods: what is refused, and what a client and a process get of each other.
local client = require "teststreams"
local connections = require "cluster.kubelet.connections"
local host = require "cluster.host"
local hostlua = require "hostlua"
local testserver = require "testserver"

local PODS = "/api/v1/namespaces/default/pods"
local STDIN, STDOUT, STDERR, ERROR, RESIZE <const> = 0, 1, 2, 3, 4
local MUCH = 2 * 1024 * 1024

local server
local kubelet -- a stand-in: .handle is the container that runs, .dialled the last connection to a port


-- A stand-in for a process: it notes the requests that it gets.
local function new_process(options)
  local process = { options = options, written = {}, waiting = 0 }
  function process.write(self, bytes)
    self.written[#self.written + 1] = bytes
    return self.waiting
  end
  function process.end_input(self) self.has_end = true end
  function process.resize(self, columns, rows) self.size = { columns, rows } end
  function process.pause(self, paused) self.paused = paused end
  function process.stop(self, seconds) self.stopped = seconds end
  function process.close(self) self.closed = true end
  return process
end


local function new_handle()
  local handle = {}
  local function start(self, options)
    if self.why then
      return nil, self.why
    end
    self.process = new_process(options)
    return self.process
  end
  handle.exec, handle.attach = start, start
  return handle
end


-- Asks for a connection. @return table the reply
local function connect(path, request)
  request = request or client.websocket_request "v5.channel.k8s.io"
  local reply = client.reply()
  local plain, query = path:match "^([^?]*)%??(.*)$"
  server.server:handle({ method = request.method, path = PODS .. plain, query = query, headers = request.headers,
    body = "" }, reply)
  return reply
end


-- The Status that a client of WebSockets got at the end.
local function outcome(reply)
  local said = client.by_channel(reply:take())
  return host.json.decode(said[ERROR] or ""), said
end


before_each(function()
  server = testserver.new()
  kubelet = { is_real = true, handle = new_handle() }
  function kubelet.container(_, pod, name)
    return name ~= "gone" and pod.status.phase ~= "Succeeded" and kubelet.handle or nil
  end
  function kubelet.dial(self, _, options)
    self.dialled = new_process(options)
    return self.why == nil and self.dialled or nil, self.why
  end
  connections.serve(server.server, kubelet)
  local containers = { { name = "main", image = "i" }, { name = "gone", image = "i" } }
  server:must("POST", PODS, { metadata = { name = "a" }, spec = { nodeName = "n", containers = containers } })
  server:must("POST", PODS, { metadata = { name = "nowhere" }, spec = { containers = containers } })
end)


describe("a connection to a pod is refused", function()
  for path, wanted in pairs {
    ["/none/exec?stdout=true&command=a"] = { 404, 'pods "none" not found' },
    ["/a/exec?stdout=true&command=a"] = { 400, "a container name must be specified for pod a, choose one of: "
      .. "[main gone]" },
    ["/a/attach?stdout=true&container=x"] = { 400, "container x is not valid for pod a" },
    ["/nowhere/exec?stdout=true&container=main&command=a"] = { 400, "pod nowhere does not have a host assigned" },
    ["/nowhere/portforward"] = { 400, "pod nowhere does not have a host assigned" },
  } do
    it("where it leads nowhere: " .. path, function()
      local reply = connect(path)
      assert.equal(wanted[1], reply.code)
      assert.equal(wanted[2], host.json.decode(reply.body).message)
    end)
  end

  it("when it is no upgrade", function()
    for _, name in ipairs { "exec", "attach", "portforward" } do
      local code, status = server:call("GET", PODS .. "/a/" .. name .. "?stdout=true&container=main")
      assert.equal(400, code)
      assert.equal("Upgrade request required", status.message)
    end
  end)

  it("when no stream is asked for", function()
    local reply = connect "/a/exec?container=main&command=a&stdin=false&stdout=0"
    assert.same({ 400, "you must specify at least 1 of stdin, stdout, stderr" }, { reply.code, reply.body })
  end)

  it("when the container does not run, in each protocol's way", function()
    local reply = connect("/a/exec?container=gone&stdout=true", client.spdy_request "v4.channel.k8s.io")
    assert.same({ 500, 'container not found ("gone")' }, { reply.code, reply.body })
    local status = outcome(connect "/a/exec?container=gone&stdout=true")
    assert.equal('Internal error occurred: unable to upgrade connection: container not found ("gone")', status.message)
  end)

  it("when pods run no processes", function()
    kubelet.handle, kubelet.is_real = {}, false
    for _, name in ipairs { "exec", "attach", "portforward" } do
      local reply = connect("/a/" .. name .. "?container=main&stdout=true")
      assert.equal(501, reply.code)
    end
  end)
end)


describe("exec", function()
  local EXEC = "/a/exec?container=main&stdin=true&stdout=true&stderr=true&command=sh&command=-c&command=exit%203"

  it("runs the command, and tells how it ended", function()
    for code, wanted in pairs {
      [0] = { metadata = {}, status = "Success" },
      [3] = { metadata = {}, status = "Failure", reason = "NonZeroExitCode",
        message = "command terminated with non-zero exit code: exit status 3",
        details = { causes = { { reason = "ExitCode", message = "3" } } } },
    } do
      local reply = connect(EXEC)
      local options = kubelet.handle.process.options
      assert.same({ "sh", "-c", "exit 3" }, { table.unpack(options.command) })
      options.output "out"
      options.errors "err"
      options.ended { started = true, code = code }
      local status, said = outcome(reply)
      assert.is_true(host.json.equal(wanted, status))
      assert.same({ "out", "err" }, { said[STDOUT], said[STDERR] })
      assert.is_true(reply.is_over)
    end
  end)

  it("says why the command did not run", function()
    local reply = connect(EXEC)
    kubelet.handle.process.options.ended { started = false, code = 127, message = "no such thing" }
    assert.equal("Internal error occurred: error executing command in container: no such thing", outcome(reply).message)
    kubelet.handle.why = "it has just ended"
    assert.equal("Internal error occurred: error executing command in container: it has just ended",
      outcome(connect(EXEC)).message)
  end)

  it("passes input on, its end, and sizes of a terminal that make sense", function()
    local reply = connect(EXEC .. "&tty=true")
    local process = kubelet.handle.process
    assert.is_true(process.options.tty)
    reply:receive(client.message(STDIN, "in") .. client.message(RESIZE, '{"Width":80,"Height":24}')
      .. client.message(RESIZE, '{"Width":0,"Height":70000}') .. client.message(RESIZE, "[1")
      .. client.message(255, "\0"))
    assert.same({ { "in" }, { 80, 24 }, true }, { process.written, process.size, process.has_end })
  end)

  it("lets a client wait whose input is not read, and gives up what sends on", function()
    local reply = connect(EXEC)
    local process = kubelet.handle.process
    process.waiting = MUCH
    reply:receive(client.message(STDIN, "in"))
    assert.is_true(reply.paused)
    process.options.drained()
    assert.is_false(reply.paused)
    process.waiting = nil
    reply:receive(client.message(STDIN, "more"))
    assert.equal("Internal error occurred: more input was sent than could be kept", outcome(reply).message)
  end)

  it("holds a command while its client does not read, until both of its outputs may go on", function()
    local reply = connect(EXEC)
    local process = kubelet.handle.process
    reply.held = MUCH
    process.options.output "out"
    process.options.errors "err"
    assert.is_true(process.paused)
    hostlua.advance(5)
    assert.is_true(process.paused)
    reply.held = 0
    hostlua.advance(2)
    assert.is_false(process.paused)
  end)

  it("asks the command to end when its client has gone", function()
    local reply = connect(EXEC)
    reply:leave()
    assert.equal(2, kubelet.handle.process.stopped)
    kubelet.handle.process.options.ended { started = true, code = 143 }
  end)

  it("drops what was not asked for", function()
    local reply = connect "/a/exec?container=main&stdout=true&command=a"
    kubelet.handle.process.options.errors "err"
    kubelet.handle.process.options.ended { started = true, code = 0 }
    local _, said = outcome(reply)
    assert.is_nil(said[STDERR])
  end)
end)


describe("attach", function()
  local ATTACH = "/a/attach?container=main&stdout=true&stdin=true"

  it("ends well with its container, whatever that ended with", function()
    local reply = connect(ATTACH)
    kubelet.handle.process.options.ended { started = true, code = 3 }
    assert.equal("Success", outcome(reply).status)
  end)

  it("says that a client was cut off", function()
    local reply = connect(ATTACH)
    kubelet.handle.process.options.ended { is_cut = true, message = "it reads nothing" }
    assert.equal("Internal error occurred: error attaching to container: it reads nothing", outcome(reply).message)
  end)

  it("lets the container go on when the client goes", function()
    connect(ATTACH):leave()
    assert.is_true(kubelet.handle.process.closed)
    assert.is_nil(kubelet.handle.process.stopped)
  end)
end)


describe("port-forward", function()
  -- A pair of streams to a port. @return table reply, spdy client, data = id, error = id
  local function forward(port)
    local self = { reply = connect("/a/portforward", client.spdy_request "portforward.k8s.io"), spdy = client.spdy() }
    for _, kind in ipairs { "error", "data" } do
      local frame, id = self.spdy:open { streamtype = kind, port = tostring(port), requestid = "0" }
      self[kind] = id
      self.reply:receive(frame)
    end
    return self
  end

  it("passes bytes and ends on, in both directions", function()
    local self = forward(80)
    local connection = kubelet.dialled
    assert.equal(80, connection.options.port)
    function connection.end_output(dialled) dialled.has_end = true end
    self.reply:receive(client.data(self.data, "question", 1))
    assert.same({ { "question" }, true }, { connection.written, connection.has_end })
    connection.options.data "answer"
    connection.options.ended()
    connection.options.closed()
    local said = client.spdy_said(self.reply:take())
    assert.same({ text = "answer", is_ended = true }, said[self.data])
    assert.same({ text = "", is_ended = true }, said[self.error])
  end)

  it("ends a second after the pod's side, though the client's goes on", function()
    local self = forward(80)
    local connection = kubelet.dialled
    connection.options.ended()
    hostlua.advance(0.9)
    assert.is_falsy(connection.closed)
    hostlua.advance(0.2)
    assert.is_true(connection.closed)
    assert.is_true(client.spdy_said(self.reply:take())[self.error].is_ended)
  end)

  it("says why nothing listens", function()
    local self = forward(80)
    kubelet.dialled.options.closed "Connection refused"
    local said = client.spdy_said(self.reply:take())
    local uid = server:must("GET", PODS .. "/a").metadata.uid
    assert.equal(("error forwarding port 80 to pod a, uid %s: dial tcp4 127.0.0.1:80: connect: connection refused")
      :format(uid), said[self.error].text)
    kubelet.why = "the pod has no network"
    assert.truthy(client.spdy_said(forward(81).reply:take())[1].text:find "the pod has no network$")
  end)

  it("holds the side that sends while the other does not read", function()
    local self = forward(80)
    local connection = kubelet.dialled
    connection.waiting = MUCH
    self.reply:receive(client.data(self.data, "much"))
    assert.is_true(self.reply.paused)
    connection.options.drained()
    assert.is_false(self.reply.paused)
    self.reply.held = MUCH
    connection.options.data "much"
    assert.is_true(connection.paused)
    self.reply.held = 0
    hostlua.advance(2)
    assert.is_false(connection.paused)
  end)

  it("ends the connection when its client has gone", function()
    local self = forward(80)
    self.reply:leave()
    assert.is_true(kubelet.dialled.closed)
  end)
end)
