-- The log of a container as a client gets it: all, the last lines, new lines, as fast as the client reads.
local host = require "cluster.host"
local hostlua = require "hostlua"
local log_answer = require "cluster.kubelet.log_answer"
local logs = require "cluster.kubelet.logs"

local POD = { metadata = { uid = "u" } }
local MIB = 1024 * 1024

-- A client: what it was sent, and how much of that it has not read. One that reads takes everything at once.
local Client = {}
Client.__index = Client

function Client:start(code, content_type)
  self.code, self.content_type = code, content_type
end

function Client:write(text)
  assert(self.ended == nil, "written to after its end")
  self.text[#self.text + 1] = text
  self.waiting = self.reads and 0 or self.waiting + #text
  self.most = math.max(self.most, self.waiting)
  return self.waiting
end

function Client:finish()
  self.ended = "finished"
end

function Client:abort()
  self.ended = "aborted"
end

function Client:said()
  return table.concat(self.text)
end


local function new_client(reads)
  return setmetatable({ text = {}, waiting = 0, most = 0, reads = reads }, Client)
end


describe("A container's log", function()
  local folder, log

  before_each(function()
    folder = os.tmpname()
    os.remove(folder)
    assert(host.file.make_folder(folder))
    hostlua.freeze(1783072800) -- 2026-07-03T10:00:00Z
    log = logs.new(folder):open(POD, "main", 0)
  end)

  after_each(function()
    log:close()
    log:remove()
    os.remove(folder)
  end)

  -- Lines "1" to "count".
  local function print_lines(count)
    for i = 1, count do
      log:write(i .. "\n")
    end
  end

  local function ask(options, reads)
    local client = new_client(reads ~= false)
    log_answer.send(log, options, client)
    return client
  end

  local WHOLE = {
    { "all of it", {}, "1\n2\n3\n4\nrest" },
    { "its last lines", { tail = 2 }, "4\nrest" },
    { "more last lines than there are", { tail = 9 }, "1\n2\n3\n4\nrest" },
    { "no line of it", { tail = 0 }, "" },
    { "its first bytes", { limit = 3 }, "1\n2" },
    { "the first bytes of its last lines", { tail = 2, limit = 3 }, "4\nr" },
    { "nothing from before a time", { since = "2026-07-03T10:00:00.000001Z" }, "" },
    { "its lines with their times", { tail = 2, timestamps = true },
      "2026-07-03T10:00:00.000000Z 4\n2026-07-03T10:00:00.000000Z rest" },
    { "all of it once it has ended, though it was to be followed", { follow = true }, "1\n2\n3\n4\nrest" },
  }

  for _, case in ipairs(WHOLE) do
    it("gives " .. case[1], function()
      print_lines(4)
      log:write "rest"
      log:close()
      local client = ask(case[2])
      assert.same({ 200, "text/plain", "finished", case[3] },
        { client.code, client.content_type, client.ended, client:said() })
    end)
  end

  it("is followed to its end", function()
    print_lines(2)
    local client = ask { follow = true, tail = 1 }
    log:write "3\n4"
    assert.same({ "2\n3\n" }, { client:said(), client.ended })
    log:close()
    assert.same({ "2\n3\n4", "finished" }, { client:said(), client.ended })
  end)

  it("is followed up to the limit", function()
    print_lines(1)
    local client = ask { follow = true, limit = 5 }
    log:write "23\n45\n67\n"
    assert.same({ "1\n23\n", "finished" }, { client:said(), client.ended })
  end)

  it("is followed by one who goes", function()
    local client = ask { follow = true }
    client.on_close()
    client.ended = "gone"
    print_lines(1)
    assert.equal("", client:said())
  end)

  it("is sent as fast as the client reads", function()
    local line = ("x"):rep(999) .. "\n"
    log:write(line:rep(9000))
    local client = ask({}, false)
    assert.is_nil(client.ended)
    local rounds = 0
    while not client.ended do
      hostlua.advance(1)
      client.waiting, rounds = 0, rounds + 1
      assert.is_true(rounds < 100)
    end
    assert.equal(line:rep(9000), client:said())
    assert.is_true(client.most < 1.2 * MIB, client.most)
  end)

  it("is not followed by one who does not read", function()
    local client = ask({ follow = true }, false)
    local line = ("x"):rep(999) .. "\n"
    for _ = 1, 10 do
      log:write(line:rep(1000))
    end
    assert.equal("aborted", client.ended)
    assert.is_true(client.most < 4.1 * MIB, client.most)
  end)

  it("waits for nobody who goes while it is sent", function()
    log:write((("x"):rep(999) .. "\n"):rep(3000))
    local client = ask({ follow = true }, false)
    client.on_close()
    client.ended, client.waiting = "gone", 0
    hostlua.advance(10)
    print_lines(1)
    assert.equal("gone", client.ended)
  end)
end)
