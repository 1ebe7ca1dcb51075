-- attack: base64 gets each value there is, and texts that are nearly base64.
-- expect: ok
local hostile = require "hostile"
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local base64 = require "moonloop.base64"

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    hostile.throw(base64.encode)
    hostile.throw(base64.decode)
    for _, text in ipairs { "=", "==", "====", "A", "AA", "AAA", "A===", "AA=A", "AB==", "AAB=", "AA==AA==", "AA\n==", " AA==", "AA==\0", "A\0==", "AAA\xff",
      "-_-_", ("A"):rep(99999) } do
      if base64.decode(text) then error("ESCAPED: it took " .. text:sub(1, 20)) end
    end
    pcall(base64.encode, ("x"):rep(1000000):rep(1))
    pcall(base64.decode, ("A"):rep(1000000))
  end,
}
