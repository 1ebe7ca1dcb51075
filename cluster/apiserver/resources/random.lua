--- Random endings of names that the server makes up.
---
--- Rules: apimachinery/pkg/util/rand/rand.go.
local host = require "cluster.host"

local M = {}

-- No vowels, so that no words come out, and nothing that looks like something else.
local ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
local LENGTH = 5


--- Five characters.
function M.suffix()
  local chars = {}
  for i = 1, LENGTH do
    local at = host.random(#ALPHABET) + 1
    chars[i] = ALPHABET:sub(at, at)
  end
  return table.concat(chars)
end


return M
