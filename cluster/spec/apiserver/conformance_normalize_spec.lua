--- cluster/spec/conformance/lib/normalize.lua makes allowed differences between two servers read the same.
local normalize = require "cluster.spec.conformance.lib.normalize"

describe("What kubectl prints", function()
  local function printed(text)
    return normalize.new("", {}):printed(text)
  end

  it("has pods with random ends, also where such an end looks like an age", function()
    for _, ending in ipairs { "x7k2p", "24d7h", "2d4h9", "9955s" } do
      local line = ("pod/web-5d9f4b7c8d-%s   1/1   75s\n"):format(ending)
      assert.equal("pod/web-<hash>-<random>  1/1  <age>\n", printed(line))
    end
  end)

  it("has ages", function()
    for _, age in ipairs { "5s", "3m20s", "2d4h", "<invalid>" } do
      assert.equal("web  <age>\n", printed("web     " .. age .. "\n"))
    end
  end)
end)
