local sandbox = require "sandbox"

-- Runs a reconcile with these statements, and returns its status.
local function status_of(statements)
  local came = sandbox.reconcile("local crypto = require 'moonloop.crypto' " .. statements)
  assert(came.outcome == "ok", came.message)
  return came.status
end


local HEAD = "local crypto = require 'moonloop.crypto' "


describe("moonloop.crypto", function()
  it("makes passwords out of an alphabet, without any that is likelier", function()
    local status = status_of [[
      local function count(length, alphabet)
        local counts, left = {}, length
        while left > 0 do
          for letter in crypto.password(1024, alphabet):gmatch "." do
            counts[letter], left = (counts[letter] or 0) + 1, left - 1
          end
        end
        return counts
      end
      local readable, letters = count(56 * 1024), 0
      for letter, found in pairs(readable) do
        assert(letter:find "%w" and not letter:find "[0OoIl1]", letter)
        assert(found > 850 and found < 1200, letter .. found)
        letters = letters + 1
      end
      local wide = {}
      for code = 0, 199 do wide[#wide + 1] = string.char(code) end
      local low, high = 0, 0
      for letter, found in pairs(count(100 * 1024, table.concat(wide))) do
        if letter:byte() < 56 then low = low + found / 56 else high = high + found / 144 end
      end
      return { status = { letters = letters, bias = low / high } }
    ]]
    assert.equal(56, status.letters)
    assert.is_true(status.bias > 0.98 and status.bias < 1.02, status.bias)
  end)

  it("has passwords of the lengths and alphabets that it says", function()
    local status = status_of [[
      return { status = { one = #crypto.password(1), most = #crypto.password(1024), two = crypto.password(64, "ab"),
        again = crypto.password(24) ~= crypto.password(24) } }
    ]]
    assert.equal(1, status.one)
    assert.equal(1024, status.most)
    assert.matches("^[ab]+$", status.two)
    assert.is_true(status.two:find "a" and status.two:find "b" and status.again)
  end)

  it("draws bytes in each form, and UUIDs", function()
    local status = status_of [[
      local seen = {}
      for _ = 1, 200 do seen[crypto.uuid()] = true end
      local count = 0
      for uuid in pairs(seen) do
        assert(uuid:find "^%x%x%x%x%x%x%x%x%-%x%x%x%x%-4%x%x%x%-[89ab]%x%x%x%-%x%x%x%x%x%x%x%x%x%x%x%x$", uuid)
        count = count + 1
      end
      return { status = { count = count, bytes = #crypto.random(33), hex = crypto.random(5, "hex"),
        base64 = crypto.random(3, "base64"), most = #crypto.random(65536, "bytes") } }
    ]]
    assert.equal(200, status.count)
    assert.equal(33, status.bytes)
    assert.equal(65536, status.most)
    assert.matches("^%x%x%x%x%x%x%x%x%x%x$", status.hex)
    assert.matches("^[%w+/][%w+/][%w+/][%w+/]$", status.base64)
  end)

  it("digests, as FIPS 180-4 and RFC 4231 have it", function()
    for call, digest in pairs {
      ["sha256 ''"] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
      ["sha256 'abc'"] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
      ["sha256('abc', 'base64')"] = "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=",
      ["hmac_sha256('Jefe', 'what do ya want for nothing?')"] =
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
      ["hmac_sha256('', '')"] = "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad",
      ["hmac_sha256(('\\xaa'):rep(131), 'Test Using Larger Than Block-Size Key - Hash Key First')"] =
        "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
    } do
      assert.equal(digest, sandbox.run(HEAD .. "return crypto." .. call), call)
    end
    assert.equal(32, sandbox.run(HEAD .. "return #crypto.sha256('abc', 'bytes')"))
  end)

  it("draws nothing while the file loads", function()
    for call, name in pairs {
      ["password(12)"] = "crypto.password(length [, alphabet])", ["random(1)"] = "crypto.random(bytes [, form])",
      ["uuid()"] = "crypto.uuid()",
    } do
      assert.equal("t.lua:1: " .. name .. ": only in a function of the controller: what is drawn while the file loads "
        .. "is lost with the process", sandbox.refusal(sandbox.run, HEAD .. "crypto." .. call))
    end
  end)

  it("refuses other arguments", function()
    local password = "crypto.password(length [, alphabet]): "
    for call, message in pairs {
      ["password(0)"] = password .. "length: expected a whole number from 1 to 1024",
      ["password(1025)"] = password .. "length: expected a whole number from 1 to 1024",
      ["password(1.5)"] = password .. "length: expected a whole number from 1 to 1024",
      ["password(8, 'a')"] = password .. "alphabet: expected 2 to 256 bytes, each of them once",
      ["password(8, 'aba')"] = password .. "alphabet: expected 2 to 256 bytes, each of them once",
      ["password(8, 5)"] = password .. "alphabet: expected a string, got a number",
      ["random(0)"] = "crypto.random(bytes [, form]): expected a whole number from 1 to 65536",
      ["random(65537)"] = "crypto.random(bytes [, form]): expected a whole number from 1 to 65536",
      ["random(8, 'octal')"] = 'crypto.random(bytes [, form]): form: expected "bytes", "hex" or "base64"',
      ["sha256()"] = "crypto.sha256(text [, form]): text: expected a string, got a nil",
      ["hmac_sha256('k', {})"] = "crypto.hmac_sha256(key, text [, form]): text: expected a string, got a table",
    } do
      local came = sandbox.reconcile(HEAD .. "crypto." .. call)
      assert.equal("error", came.outcome)
      assert.equal("t.lua:2: " .. message, came.message)
    end
  end)
end)
