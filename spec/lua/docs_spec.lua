-- The examples in the pages about scripts: each block of Lua is a script, which spec/testing/docs_test.lua plays, or
-- statements that are run here and assert something; and each function of the script API stands in one.
local api = require "lua.script_api"
local examples = require "spec.testing.doc_examples"
local hostlua = require "hostlua"
local sandbox = require "sandbox"

-- The text without comments, so that a name in one is no example.
local function code_of(text)
  return (text:gsub("%-%-[^\n]*", ""))
end


describe("The pages about scripts", function()
  local all = {}

  for index, example in ipairs(examples.read()) do
    all[index] = code_of(example.text)
    it(("have an example that holds: %s.md, %s, %d"):format(example.page, example.heading, index), function()
      if example.is_script then
        assert(hostlua.load(example.text))
        return
      end
      assert.truthy(all[index]:find("assert(", 1, true), "it is neither a script nor asserts something")
      local came = sandbox.reconcile(example.text)
      assert.equal("ok", came.outcome, came.message)
    end)
  end

  it("have an example for each function", function()
    local text, without = table.concat(all, "\n"), {}
    for _, module in ipairs(api.modules) do
      for _, entry in ipairs(module) do
        local name = module.var .. "." .. entry.name
        if not text:find("%f[%w_]" .. name:gsub("%.", "%%.") .. "%f[^%w_]") then
          without[#without + 1] = name
        end
      end
    end
    assert.same({}, without)
  end)
end)
