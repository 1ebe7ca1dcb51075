--- The keys by which moonloop.merge tells the items of lists apart are those of Kubernetes' kinds.
local notation = require "cluster.apiserver.schema.notation"
local sandbox = require "sandbox"

-- Each list of the kinds that a strategic merge patch merges: its field → its keys → true.
local function merged_lists()
  local lists = {}
  for alias, package in pairs(notation.packages) do
    for _, text in pairs(require("cluster.kinds.types." .. alias)) do
      for _, field in ipairs(notation.read(text, package).fields) do
        if field.patch and field.patch:find "^merge" then
          local keys = field.list_keys and table.concat(field.list_keys, " ") or field.merge_key or ""
          lists[field.name] = lists[field.name] or {}
          lists[field.name][keys] = true
        end
      end
    end
  end
  return lists
end


-- Two lists with one item each that differ only in `keys`: a merge has both.
local function items_merged(field, keys)
  local one, other = {}, {}
  for key in keys:gmatch "%S+" do
    one[#one + 1], other[#other + 1] = key .. " = 'a'", key .. " = 'b'"
  end
  local function list(item)
    return field == "ports" and keys:find "^port" and ("{ spec = { ['%s'] = { %s } } }"):format(field, item)
      or ("{ ['%s'] = { %s } }"):format(field, item)
  end
  local function of(fields)
    return keys == "" and "'" .. fields:gsub("%W", "") .. "'" or "{ " .. fields .. " }"
  end
  return (sandbox.run(("local m = moonloop.merge(%s, %s) m = m.spec or m return #m['%s']"):format(
    list(of(keys == "" and "a" or table.concat(one, ", "))), list(of(keys == "" and "b" or table.concat(other, ", "))),
    field)))
end


describe("moonloop.merge", function()
  it("knows each list that Kubernetes merges, and its keys", function()
    local count = 0
    for field, ways in pairs(merged_lists()) do
      for keys in pairs(ways) do
        assert.equal(2, items_merged(field, keys), ("%s by '%s'"):format(field, keys))
        count = count + 1
      end
    end
    assert.is_true(count > 25)
  end)

  it("knows no other list", function()
    local lists, file = merged_lists(), assert(io.open "lua/moonloop/objects.lua")
    local text = file:read "a"
    file:close()
    for field, keys in text:match("MERGE_KEYS = (%b{})"):gmatch '(%w+) = "([^"]*)"' do
      assert.is_true(lists[field] and lists[field][keys], ("%s by '%s'"):format(field, keys))
    end
  end)
end)
