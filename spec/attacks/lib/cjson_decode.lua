-- attack: cjson.decode gets each value there is, and texts that are nearly JSON.
-- expect: ok
local hostile = require "hostile"
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local cjson = require "cjson"

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    hostile.throw(cjson.decode)
    for _, text in ipairs { "", " ", "nul", "nulll", "[", "]", "[1", "[1,", "[1,]", "{", '{"a"', '{"a":', '{"a":1,}', '{1:2}', "'a'", '"a', '"\\', '"\\u', '"\\u12',
      '"\\ud800"', '"\\udc00\\ud800"', '"\\u0000"', "01", "-", "-0", "1.", ".5", "1e", "1e+", "1e400", "-1e400", "9223372036854775808", "NaN", "Infinity",
      "[1] x", "\xef\xbb\xbf1", '"\xff"', '"\0"', "/* */ 1", '{"a":1,"a":2}', '{"":""}', '{"__index":1,"__gc":2,"__metatable":3}', "\0", "1\0" } do
      pcall(cjson.decode, text)
      pcall(cjson.decode, "[" .. text .. "]")
    end
    for depth = 120, 140 do pcall(cjson.decode, ("["):rep(depth) .. ("]"):rep(depth)) end
    local t = cjson.decode '{"__index":1,"__gc":2,"__metatable":3,"__len":4}'
    if #t ~= 0 or t.x ~= nil then error "ESCAPED: metamethods out of JSON" end
  end,
}
