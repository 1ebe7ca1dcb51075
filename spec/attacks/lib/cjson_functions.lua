-- attack: what lua-cjson has beside encode and decode, and null and array as anything.
-- expect: ok
local hostile = require "hostile"
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local cjson = require "cjson"

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    for _, name in ipairs { "new", "encode_max_depth", "decode_array_with_array_mt", "encode_invalid_numbers", "encode_keep_buffer" } do
      if cjson[name] then error("ESCAPED: cjson." .. name) end
    end
    hostile.throw_one(cjson.array)
    cjson.null, cjson.array = 1, 2
    if moonloop.null == 1 or moonloop.array == 2 then error "ESCAPED: two libraries are one table" end
  end,
}
