-- ctx.http through the binary: the owner's --allow-http, and a server on loopback.
local socket = require "socket"
local dev = require "spec.host.support.dev"
local host = require "spec.e2e.support.host"
local shell = require "spec.e2e.support.shell"

-- Asks ORIGIN for the namespace "default", and logs the answer.
local SCRIPT = [[
local moonloop = require "moonloop"
return moonloop.controller {
  name = "asks",
  reconciles = moonloop.kind("v1", "Namespace"),
  http = { "ORIGIN" },
  reconcile = function(namespace, ctx)
    if namespace.metadata.name ~= "default" then
      return
    end
    local answer = assert(ctx.http {
      method = "PUT", url = "ORIGIN/things?a=b", headers = { ["X-Key"] = "k" }, body = "hello",
    })
    ctx.log("asked", { status = answer.status, body = answer.body })
  end,
}
]]

describe("ctx.http", function()
  local server, origin

  before_each(function()
    server = assert(socket.bind("127.0.0.1", 0))
    server:settimeout(20)
    local _, port = server:getsockname()
    origin = "http://127.0.0.1:" .. port
  end)

  after_each(function()
    server:close()
    host.stop_all()
  end)

  local function script()
    local path = shell.folder "asks"
    shell.write(path .. "/asks.lua", (SCRIPT:gsub("ORIGIN", origin)))
    return path
  end

  it("is refused when the origin is not allowed, and says which option is missing", function()
    local result = dev.command("--until-idle", "--scripts", script(), "--allow-http", "https://billing.example.com")
    assert.equal(1, result.code)
    assert.matches("scripts may not ask " .. origin .. " here: start moonloop with --allow-http " .. origin,
      result.err, 1, true)
  end)

  it("asks what both the script and the owner name, one of them by a pattern", function()
    local path = shell.folder "asks-below"
    shell.write(path .. "/asks.lua", [[
      local moonloop = require "moonloop"
      return moonloop.controller {
        name = "asks", reconciles = moonloop.kind("v1", "Namespace"), http = { "http://*.shop.example.com" },
        reconcile = function(namespace, ctx)
          if namespace.metadata.name == "default" then
            local _, why = pcall(ctx.http, { url = "http://a.shop.example.com/" })
            ctx.log("refused", { why = why })
            ctx.log("asked", { status = assert(ctx.http { url = "http://b.c.shop.example.com/" }).status })
          end
        end,
      }
    ]])
    local running = host.spawn({ "dev", "--until-idle", "--pods", "none", "--scripts", path, "--http-proxy", origin,
      "--allow-http", "http://*.c.shop.example.com" }, { name = "asks-below" })
    local client = assert(server:accept())
    client:settimeout(5)
    assert.equal("GET http://b.c.shop.example.com/ HTTP/1.1", client:receive "*l")
    repeat until assert(client:receive "*l") == ""
    client:send "HTTP/1.1 204 No Content\r\n\r\n"
    client:close()
    assert.equal(0, running:till_exit(20))
    assert.matches('"status":204', running:stderr(), 1, true)
    assert.matches("url: scripts may not ask http://a.shop.example.com here: start moonloop with --allow-http",
      running:stderr(), 1, true)
  end)

  it("says which pattern of --allow-http is too wide", function()
    local result = dev.command("--until-idle", "--allow-http", "https://*.com")
    assert.equal(2, result.code)
    assert.matches("--allow-http https://*.com: '*' stands for the first labels of a name", result.err, 1, true)
  end)

  it("asks an origin that is allowed", function()
    local words = { "dev", "--until-idle", "--pods", "none", "--scripts", script(), "--allow-http", origin }
    local running = host.spawn(words, { name = "asks" })
    local client = assert(server:accept())
    client:settimeout(5)
    local lines = {}
    repeat
      lines[#lines + 1] = assert(client:receive "*l")
    until lines[#lines] == ""
    local head = table.concat(lines, "\n")
    assert.equal("PUT /things?a=b HTTP/1.1", lines[1])
    assert.matches("\nX-Key: k\n", head, 1, true)
    assert.matches("\nContent-Length: 5\n", head, 1, true)
    assert.equal("hello", client:receive(5))
    client:send "HTTP/1.1 201 Created\r\nContent-Length: 4\r\n\r\ndone"
    client:close()
    assert.equal(0, running:till_exit(20))
    assert.matches('"status":201', running:stderr(), 1, true)
    assert.matches('"body":"done"', running:stderr(), 1, true)
  end)
end)
