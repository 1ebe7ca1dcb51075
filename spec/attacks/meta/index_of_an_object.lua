-- attack: an object gets metamethods, and is then written, logged, returned and compared.
-- expect: held
local cjson = require "cjson"
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function(thing, ctx)
    local function wrong() error "ESCAPED: code of the script ran in the host" end
    local meta = { __index = wrong, __newindex = wrong, __pairs = wrong, __len = wrong, __eq = wrong, __tostring = wrong }
    for _, t in ipairs { thing.spec, {}, { a = 1 }, { 1, 2, 3 } } do
      local ok = pcall(setmetatable, t, meta)
      if ok then
        pcall(cjson.encode, t)
        pcall(ctx.log, "x", t)
      end
    end
    return { status = { inside = setmetatable({ a = 1 }, { __index = wrong, __pairs = wrong, __len = wrong }) } }
  end,
}
