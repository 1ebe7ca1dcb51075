-- Programs in other languages, with the libraries that most clients are built on: the server has to
-- satisfy them as it does the host.
local shell = require "spec.e2e.support.shell"

local STEPS = {
  go = { "typed informer", "dynamic informer", "writes", "leader election" },
  python = { "writes", "pages", "custom objects", "dynamic client" },
}

describe("A client program in", function()
  for language, steps in pairs(STEPS) do
    it(language .. " lists, watches and writes without complaint", function()
      local output = shell.must("spec/e2e/clients/run.sh " .. language)
      for _, step in ipairs(steps) do
        assert.truthy(output:find("ok " .. step, 1, true), output)
      end
    end)
  end
end)
