-- attack: a megabyte of JSON becomes many megabytes of tables.
-- expect: limit memory
local cjson = require "cjson"
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local lists = cjson.decode("[" .. ("[],"):rep(330000) .. "[]]")
    local objects = cjson.decode("[" .. ("{},"):rep(330000) .. "{}]")
    return lists and objects and nil
  end,
}
