local sandbox = require "sandbox"

local function run(statements)
  return sandbox.run("local base64 = require 'moonloop.base64' " .. statements)
end


describe("moonloop.base64", function()
  it("writes and reads any bytes", function()
    for bytes, text in pairs { [""] = "", f = "Zg==", fo = "Zm8=", foo = "Zm9v", foob = "Zm9vYg==" } do
      assert.equal(text, run(("return base64.encode %q"):format(bytes)))
      assert.equal(bytes, run(("return base64.decode %q"):format(text)))
    end
    assert.equal(300, run [[
      local all, count = {}, 0
      for i = 0, 299 do
        all[i + 1] = string.char(i % 256)
        local bytes = table.concat(all)
        assert(base64.decode(base64.encode(bytes)) == bytes)
        count = count + 1
      end
      return count
    ]])
  end)

  it("refuses what it would not write, and says where", function()
    for text, why in pairs {
      ["Zg"] = "it has 2 characters; base64 has a multiple of 4, with = at the end",
      ["Zg="] = "it has 3 characters; base64 has a multiple of 4, with = at the end",
      ["Zm9\n"] = "byte 4 (0x0a) is no character of base64",
      ["Zg==Zg=="] = "byte 3 (0x3d) is no character of base64",
      ["===="] = "byte 1 (0x3d) is no character of base64",
      ["Zm9-"] = "byte 4 (0x2d) is no character of base64",
      [" Zg=="] = "byte 1 (0x20) is no character of base64",
      ["Zh=="] = "the last character before = has bits that belong to no byte",
      ["Zm9="] = "the last character before = has bits that belong to no byte",
    } do
      local bytes, said = run(("return base64.decode %q"):format(text))
      assert.is_nil(bytes)
      assert.equal(why, said)
    end
    assert.matches("^t.lua:1: base64.encode%(bytes%): the result is larger than 3 MiB", sandbox.refusal(run,
      "local ok, why = pcall(base64.encode, ('x'):rep(1000000) .. ('x'):rep(1000000) .. ('x'):rep(1000000)) "
      .. "error(why, 0)"))
  end)

  it("raises for an argument of another type", function()
    assert.equal("t.lua:1: base64.encode(bytes): expected a string, got a number",
      sandbox.refusal(run, "base64.encode(5)"))
    assert.equal("t.lua:1: base64.decode(text): expected a string, got a nil", sandbox.refusal(run, "base64.decode()"))
  end)
end)
