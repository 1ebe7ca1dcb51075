--- The time zones of scripts, from the machine's database.
local _, host = ...
local zone = require "moonloop.zone"

return { find = zone.finder(host.zone_file) }
