-- attack: crypto gets each value there is, in each place, and lengths and alphabets that are none.
-- expect: ok
local hostile = require "hostile"
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local crypto = require "moonloop.crypto"

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    hostile.throw(crypto.password)
    hostile.throw(crypto.random)
    hostile.throw(crypto.uuid)
    hostile.throw(crypto.sha256)
    hostile.throw(crypto.hmac_sha256)
    hostile.throw_one(crypto.password, 12)
    hostile.throw_one(crypto.random, 12)
    hostile.throw_one(crypto.sha256, "x")
    hostile.throw_one(crypto.hmac_sha256, "key", "x")
    for _, length in ipairs { math.mininteger, -1, 0, 1025, 65537, math.maxinteger } do
      if pcall(crypto.password, length) then error("ESCAPED: a password of " .. length) end
      if (length < 1 or length > 65536) and pcall(crypto.random, length) then error("ESCAPED: random " .. length) end
    end
    for _, alphabet in ipairs { "", "a", "aa", "abca", ("ab"):rep(200) } do
      if pcall(crypto.password, 12, alphabet) then error("ESCAPED: the alphabet " .. alphabet) end
    end
  end,
}
