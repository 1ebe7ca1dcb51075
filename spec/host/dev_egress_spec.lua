-- The way of pods of moonloop dev out of the cluster. Outside is a network namespace of the spec's own, in which
-- moonloop dev runs: servers and a resolver are at addresses there, and nothing that is sent leaves it.
local cjson = require "cjson.safe"
local dev = require "spec.host.support.dev"
local host = require "spec.e2e.support.host"
local shell = require "spec.e2e.support.shell"

local it_isolated = dev.it_unless(dev.no_namespaces, it, function(why) pending(why) end)

-- The command that is its last words, with servers and a resolver of its own.
local OUTSIDE = [[
  ip link set lo up && ip addr add 198.51.100.1/24 dev lo && ip addr add 198.51.100.53/32 dev lo || exit 1
  ip addr add 169.254.169.254/32 dev lo && ip addr add 10.0.77.77/32 dev lo || exit 1
  mount --bind "$1" "$(readlink -f /etc/resolv.conf)" || exit 1
  lua5.4 "$2" "$3" & server=$!
  trap 'kill $server' EXIT
  until [ -e "$3" ]; do sleep 0.01; done
  shift 3
  "$@"
]]

local SERVERS = [[
  local socket = require "socket"
  local listeners, kinds = {}, {}
  local function serve(kind, listener)
    listener:settimeout(0)
    listeners[#listeners + 1], kinds[listener] = listener, kind
  end
  for port = 7000, 7060 do
    serve(port, assert(socket.bind("*", port, 64)))
  end
  for port, address in pairs { [53] = "198.51.100.53", [54] = "198.51.100.1" } do
    local listener = socket.udp()
    assert(listener:setsockname(address, port))
    serve(port == 53 and "names" or "echo", listener)
  end

  local function bytes_both_ways(client)
    local count = tonumber(client:receive())
    local got = client:receive(count)
    client:send(got:reverse())
  end

  local function serve_client(client, port)
    client:settimeout(10)
    if port == 7000 then
      bytes_both_ways(client)
    else
      client:send("I am " .. port .. "\n")
      client:send((client:receive() or "") .. "\n")
    end
    client:close()
  end

  -- The answer to a query, with one address or none.
  local function answer(query, address, id)
    local question = query:sub(13, query:find("\0", 13, true) + 4)
    local head = (">I2 I2 I2 I2 I2"):pack(address and 0x8180 or 0x8183, 1, address and 1 or 0, 0, 0)
    return (id or query:sub(1, 2)) .. head .. question
      .. (address and "\xC0\x0C\0\1\0\1\0\0\0\5\0\4" .. address or "")
  end

  local function name_server(listener, query, from, port)
    if query:find("\4good\7example\0", 13, true) then
      listener:sendto(answer(query, "\xC0\0\2\77"), from, port)
    elseif query:find("\6forged", 13, true) then
      local id = string.char(query:byte(1) ~ 1, query:byte(2))
      listener:sendto(answer(query, "\xC0\0\2\66", id), from, port)
      listener:sendto(answer(query, "\xC0\0\2\77"), from, port)
    elseif not query:find("\6silent", 13, true) then
      listener:sendto(answer(query), from, port)
    end
  end

  io.open(arg[1], "w"):close()
  while true do
    for _, listener in ipairs((socket.select(listeners))) do
      local kind = kinds[listener]
      if type(kind) == "number" then
        local client = listener:accept()
        if client then
          serve_client(client, kind)
        end
      else
        local bytes, from, port = listener:receivefrom(8192)
        if bytes and kind == "echo" then
          listener:sendto(bytes:reverse(), from, port)
        elseif bytes then
          name_server(listener, bytes, from, port)
        end
      end
    end
  end]]

-- Functions for the clients in pods.
local CLIENT = [[
  local socket = require "socket"
  local function reach(host, port)
    local tcp, start = socket.tcp(), socket.gettime()
    tcp:settimeout(5)
    local ok, why = tcp:connect(host, port)
    local said = ok and tcp:receive() or why
    if ok then
      tcp:send "and you\n"
      said = said .. ", " .. tostring(tcp:receive())
    end
    tcp:close()
    return said .. (socket.gettime() - start < 3 and "" or ", late")
  end
  local function say(...)
    print((table.concat({ ... }, " "):gsub("\n", " ")))
  end
]]


-- Runs a script in a pod; returns the pod's lines in the story, when it has ended.
local function run(script, opts)
  opts = opts or {}
  local folder = shell.folder "way-out"
  local pod = {
    apiVersion = "v1", kind = "Pod", metadata = { name = "client" },
    spec = {
      restartPolicy = "Never",
      containers = { { name = "main", image = "busybox", command = { "lua5.4", "-e", CLIENT .. script } } },
    },
  }
  local service = {
    apiVersion = "v1", kind = "Service", metadata = { name = "alias" },
    spec = { type = "ExternalName", externalName = "good.example" },
  }
  shell.write(folder .. "/pod.json", cjson.encode(pod))
  shell.write(folder .. "/service.json", cjson.encode(service))
  shell.write(folder .. "/resolv.conf", opts.resolvers or "nameserver 198.51.100.53\n")
  shell.write(folder .. "/servers.lua", SERVERS)
  local out, code = shell.run(shell.line {
    "timeout", "60", "env", "HOME=/nonexistent", "TMPDIR=" .. shell.folder "tmp",
    "unshare", "-Urnm", "sh", "-c", OUTSIDE, "sh", folder .. "/resolv.conf", folder .. "/servers.lua",
    folder .. "/ready", host.binary, "dev", "--until-idle", "--apply", folder,
    table.unpack(opts.words or {}),
  } .. " 2>" .. folder .. "/err")
  local lines, complaints = {}, shell.read(folder .. "/err")
  for line in out:gmatch "client +| ([^\n]*)\n" do
    lines[#lines + 1] = line
  end
  assert.equal(0, code, out .. complaints)
  return lines, complaints
end


describe("egress of the pods of moonloop dev", function()
  it_isolated("leads to whatever listens outside, and tells who does not", function()
    local lines, complaints = run [[
      say(reach("198.51.100.1", 7001))
      say(reach("198.51.100.1", 6999))
      say(reach("203.0.113.9", 7001))
      local right = 0
      for port = 7001, 7060 do
        right = right + (reach("198.51.100.1", port) == "I am " .. port .. ", and you" and 1 or 0)
      end
      say(right, "ports")
    ]]
    assert.same({
      "I am 7001, and you", "connection refused", "Network is unreachable", "60 ports",
    }, lines)
    assert.equal("", complaints)
  end)

  it_isolated("does not lead to the machine's loopback, its secrets, or addresses of the cluster", function()
    assert.same({ "connection refused", "No route to host", "connection refused", "nothing" }, (run [[
      say(reach("127.0.0.1", 7001))
      say(reach("169.254.169.254", 7001))
      say(reach("10.0.77.77", 7001))
      local udp = socket.udp()
      udp:settimeout(0.3)
      udp:sendto("hello", "127.0.0.1", 54)
      say(udp:receive() or "nothing")
    ]]))
  end)

  it_isolated("passes on many bytes in both directions, and datagrams with their answers", function()
    assert.same({ "true true", "olleh", "true", "connection refused" }, (run [[
      local bytes = {}
      for i = 1, 200000 do
        bytes[i] = ("%08x "):format(i * 2654435761 % 4294967296)
      end
      bytes = table.concat(bytes)
      local tcp = assert(socket.connect("198.51.100.1", 7000))
      tcp:settimeout(20)
      tcp:send(#bytes .. "\n" .. bytes)
      local back = tcp:receive "*a"
      say(tostring(#back == #bytes), tostring(back == bytes:reverse()))
      local udp = socket.udp()
      udp:settimeout(5)
      udp:setpeername("198.51.100.1", 54)
      udp:send "hello"
      say(udp:receive())
      udp:send(bytes:sub(1, 6000)) -- in fragments
      say(tostring(udp:receive(8192) == bytes:sub(1, 6000):reverse()))
      udp = socket.udp()
      udp:settimeout(5)
      udp:setpeername("198.51.100.1", 55)
      udp:send "hello"
      say(select(2, udp:receive()))
    ]]))
  end)

  it_isolated("leads to the machine's resolvers, whose answers count only if they are to the question", function()
    local lines = run [[
      for _, name in ipairs { "good.example", "forged.example", "alias", "nobody.example", "silent.example" } do
        local start = socket.gettime()
        local address, why = socket.dns.toip(name)
        say(name, address or why, socket.gettime() - start < 3 and "at once" or "late")
      end
    ]]
    assert.same({
      "good.example 192.0.2.77 at once", "forged.example 192.0.2.77 at once", "alias 192.0.2.77 at once",
    }, { table.unpack(lines, 1, 3) })
    assert.matches("^nobody.example host not found at once$", lines[4])
    assert.matches("^silent.example .+ late$", lines[5])
  end)

  it_isolated("leads to names that the machine has a domain for", function()
    assert.same({ "192.0.2.77" }, (run([[say((socket.dns.toip "good"))]], {
      resolvers = "search example.com example\nnameserver 198.51.100.53\n",
    })))
  end)

  it_isolated("has names of the cluster only, where the machine has no resolver", function()
    local lines = run([[
      say(tostring(socket.dns.toip "good.example"))
      say((socket.dns.toip "kubernetes.default"))
    ]], { resolvers = "# none\n" })
    assert.same({ "nil", "10.0.0.1" }, lines)
  end)

  it_isolated("is the machine's network with --pod-network host", function()
    assert.same({ "I am 7001, and you" }, (run([[say(reach("127.0.0.1", 7001))]], {
      words = { "--pod-network", "host" },
    })))
  end)
end)
