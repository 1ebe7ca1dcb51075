--- Tables that are filled when a key of them is first read; before that, `next` and `pairs` see nothing in them.
---
---   local openapi = later.module "cluster.apiserver.openapi"
---
--- Loading all modules takes most of the time that a server needs to start. A module that only requests need is loaded
--- for the first of them.
local M = {}


--- @param load function() -> table, whose values it gets
--- @return table
function M.table(load)
  return setmetatable({}, { __index = function(empty, key)
    local loaded = load()
    setmetatable(empty, nil)
    for name, value in pairs(loaded) do
      empty[name] = value
    end
    return empty[key]
  end })
end


--- A module whose table does not change after it was loaded.
--- @param name string as `require` takes it
--- @return table
function M.module(name)
  return M.table(function() return require(name) end)
end


return M
