local sandbox = require "sandbox"

-- Runs statements that use `quantity`, and returns their values.
local function run(statements)
  return sandbox.run("local quantity = require 'moonloop.quantity' " .. statements)
end


describe("moonloop.quantity", function()
  it("writes a quantity as Kubernetes does", function()
    for text, canonical in pairs {
      ["0.5"] = "500m", ["1000m"] = "1", ["1000"] = "1k", ["1500"] = "1500", ["1.5Gi"] = "1536Mi", ["2048Mi"] = "2Gi",
      ["0.5Ki"] = "512", ["1023Ki"] = "1023Ki", ["1.1Ki"] = "1126400m", ["1e3"] = "1e3", ["12e-1"] = "1200e-3",
      ["1E3"] = "1e3", ["1E"] = "1E", ["0"] = "0", ["0Gi"] = "0", ["+1"] = "1", ["-1.5"] = "-1500m", [".5"] = "500m",
      ["1."] = "1", ["0.0001"] = "100u", ["0.1n"] = "1n", ["-0.1n"] = "-1n", ["1e-400"] = "1e-9", ["0e400"] = "0",
      ["16Ei"] = "9223372036854775807", ["-16Ei"] = "-9223372036854775807", ["7Ei"] = "7Ei", ["1000E"] = "1e21",
      ["18446744073709551616"] = "18446744073709551616", ["1.2345"] = "1234500u", ["0.9n"] = "1n",
    } do
      assert.equal(canonical, (run(("return quantity.parse %q"):format(text))), text)
    end
  end)

  it("takes numbers of Lua", function()
    assert.equal("3", (run "return quantity.parse(3)"))
    assert.equal("100m", (run "return quantity.parse(0.1)"))
    assert.equal("1536Mi", (run "return quantity.format(1610612736, 'binary')"))
    assert.equal("-9223372036854775808", (run "return quantity.parse(math.mininteger)"))
  end)

  it("says why a text is no quantity", function()
    for text, why in pairs {
      ["1e400"] = "'1e400' is too large: a quantity is below 10^36",
      ["1e36"] = "'1e36' is too large: a quantity is below 10^36",
      ["10Mm"] = "'10Mm' has no suffix of a quantity; there are n u m k M G T P E, Ki Mi Gi Ti Pi Ei, and e3",
      ["1 Gi"] = "'1 Gi' is no quantity; expected one like 500m, 1.5Gi or 1e3",
      [""] = "'' is no quantity; expected one like 500m, 1.5Gi or 1e3",
      ["Ki"] = "'Ki' is no quantity; expected one like 500m, 1.5Gi or 1e3",
      ["1.2.3"] = "'1.2.3' is no quantity; expected one like 500m, 1.5Gi or 1e3",
      ["0x10"] = "'0x10' is no quantity; expected one like 500m, 1.5Gi or 1e3",
      [("1"):rep(129)] = "a quantity has at most 128 bytes",
    } do
      for _, call in ipairs { "parse(x)", "format(x)", "number(x)", "compare(x, 1)", "add(1, x)", "multiply(x, x)" } do
        local value, said = run(("local x = %q return quantity.%s"):format(text, call))
        assert.is_nil(value)
        assert.equal(why, said)
      end
    end
  end)

  it("adds, subtracts, multiplies and compares exactly", function()
    for call, result in pairs {
      ['add("1Gi", "512Mi")'] = "1536Mi", ['add("1Gi", "1")'] = "1073741825", ['add("100m", "200m")'] = "300m",
      ['add("0", "1Ki")'] = "1Ki", ['add("1E", "1n")'] = "1000000000000000000000000001n",
      ['add("0.1", "0.2")'] = "300m", ['subtract("1", "1n")'] = "999999999n", ['subtract("1Gi", "2Gi")'] = "-1Gi",
      ['subtract("1Ki", "1024")'] = "0", ['multiply("250m", 3)'] = "750m", ['multiply("1Gi", 1.5)'] = "1536Mi",
      ['multiply("1n", "100m")'] = "1n", ['multiply("-1Gi", "-1")'] = "1Gi", ['multiply("3", "0")'] = "0",
      ['compare("1Gi", "1G")'] = 1, ['compare("1", "1000m")'] = 0, ['compare("-1", "0")'] = -1,
      ['compare("999999999999999999n", "1G")'] = -1, ['number("256Mi")'] = 268435456, ['number("500m")'] = 0.5,
      ['number("1e30")'] = 1e30, ['format("1Gi", "decimal")'] = "1073741824",
      ['format("1e9", "binary")'] = "1000000000",
      ['format("1500M", "exponent")'] = "1500e6",
    } do
      assert.equal(result, (run("return quantity." .. call)), call)
    end
    local value, why = run "return quantity.multiply('1e30', '1e30')"
    assert.is_nil(value)
    assert.equal("the result is too large: a quantity is below 10^36", why)
  end)

  it("is exact for random amounts", function()
    assert.equal(200, run [[
      local suffixes = { "n", "u", "m", "", "k", "M", "G", "T", "P", "Ki", "Mi", "Gi", "e3", "e-2" }
      local function any()
        return ("%s%d.%d%s"):format(math.random(2) == 1 and "-" or "", math.random(0, 99999), math.random(0, 99999),
          suffixes[math.random(#suffixes)])
      end
      local count = 0
      for _ = 1, 200 do
        local a, b, c = any(), any(), any()
        local sum = quantity.add(a, b)
        assert(quantity.compare(quantity.subtract(sum, b), a) == 0, a .. " " .. b)
        assert(quantity.compare(quantity.add(quantity.add(a, b), c), quantity.add(a, quantity.add(b, c))) == 0)
        assert(quantity.compare(quantity.multiply(a, 3), quantity.add(a, quantity.add(a, a))) == 0, a)
        assert(quantity.compare(a, b) == -quantity.compare(b, a), a .. " " .. b)
        assert(quantity.parse(quantity.parse(a)) == quantity.parse(a), a)
        count = count + 1
      end
      return count
    ]])
  end)

  it("raises for an argument of another type", function()
    for call, message in pairs {
      ["parse()"] = 'quantity.parse(value): expected a quantity like "500m", "1.5Gi" or 3, got nil',
      ["add({}, 1)"] = 'quantity.add(a, b): expected a quantity like "500m", "1.5Gi" or 3, got a table',
      ["compare(1, true)"] = 'quantity.compare(a, b): expected a quantity like "500m", "1.5Gi" or 3, got a boolean',
      ["number(1 / 0)"] = "quantity.number(value): inf is no quantity",
      ["format('1', 'si')"] = 'quantity.format(value [, form]): form: expected "binary", "decimal" or "exponent"',
    } do
      assert.equal("t.lua:1: " .. message, sandbox.refusal(run, "quantity." .. call))
    end
  end)
end)
