-- Carries out `return { children = … }`: applies each object, then deletes the others that the reconciled object
-- controls. host/script/run.c calls carry_out when reconcile has returned, in the same run; host/script/ctx_write.c and
-- ctx_children.c have the calls, and check what is sent.
local _, host = ...
local names = host.require "moonloop.names"

local M = {}

local CHILDREN_MAX = 1000
local FAILURE_MAX = 3500 -- bytes of the failure in the message; an error has 4095
local ENTRIES_MAX = 4 * CHILDREN_MAX -- of an inventory; more were not written here

local function refuse(where, problem)
  error(("%s: children: %s"):format(where, problem), 0)
end


-- Calls a function of the host. Its errors name the script's line, instead of one of this file.
local function call(f, ...)
  local ok, first, second, third = pcall(f, ...)
  if not ok then
    error(first, 0)
  end
  return first, second, third
end


-- Returns a copy of the list; raises an error for any other value.
local function check_list(where, children)
  local count = rawlen(children)
  if count > CHILDREN_MAX then
    refuse(where, ("%d objects; at most %d"):format(count, CHILDREN_MAX))
  end
  local list = host.copy(children)
  for key in pairs(list) do
    if math.type(key) ~= "integer" or key < 1 then
      refuse(where, ("expected a list of objects, found the key '%s'"):format(names.text(key)))
    end
    count = math.max(count, key)
  end
  for index = 1, count do
    if list[index] == nil then
      refuse(where, ("a list without gaps is needed, and there is nothing at %d"):format(index))
    end
  end
  return list
end


-- Before anything is written: checks that each is an object that may be a child, and listed once. Returns their names,
-- "Pod default/x", and the entries for the inventory of the children that cannot be owned, as a list and as a set.
local function check_objects(where, list)
  local seen, called, entries = {}, {}, {}
  for index, child in ipairs(list) do
    local id, name, entry = call(host.child_id, child, ("%s: children[%d]"):format(where, index))
    if seen[id] then
      refuse(where, ("%s is there twice, at %d and %d"):format(name, seen[id], index))
    end
    seen[id], called[index] = index, name
    if entry then
      entries[#entries + 1], entries[entry] = entry, true
    end
  end
  return called, entries
end


-- Returns the inventory as a list and as a set: the children that cannot be owned and that were made, or may have been.
-- And true if some of it stands under an earlier name of the controller.
local function read_inventory()
  local inventory = {}
  local text, is_former = host.inventory()
  for entry in text:gmatch "[^,]+" do
    if #inventory < ENTRIES_MAX and not inventory[entry] then
      inventory[#inventory + 1], inventory[entry] = entry, true
    end
  end
  return inventory, is_former
end


local function write_inventory(where, inventory)
  local done, err = call(host.write_inventory, table.concat(inventory, ","))
  if not done then
    refuse(where, ("%s: %s"):format(err.kind, err.message))
  end
end


-- Adds the objects to be made to the inventory. Returns true if that needed a write.
local function list_before_making(where, entries)
  local inventory, is_former = read_inventory()
  local before = is_former and -1 or #inventory
  for _, entry in ipairs(entries) do
    if not inventory[entry] then
      inventory[#inventory + 1] = entry
    end
  end
  if #inventory > before then
    write_inventory(where, inventory)
  end
  return #inventory > before
end


-- Applies one child. Returns "kept", "applied", "deleted", "leaving" or "full"; or nil and the error.
local function carry_out_one(child, label)
  local is_recreate = host.is_recreate(child)
  local state, err = call(host.apply_child, child, label, is_recreate)
  if is_recreate and err and err.kind == "Invalid" then
    return call(host.recreate_child, child, label, err.message)
  end
  return state, err
end


-- Applies the list in its order, and goes on after a failure. Returns how often each state occurred, and the failures.
local function apply_all(where, list, called)
  local count, failures = { leaving = 0, deleted = 0, full = 0 }, {}
  for index, child in ipairs(list) do
    local state, err = carry_out_one(child, ("%s: children[%d]"):format(where, index))
    if state then
      count[state] = (count[state] or 0) + 1
    else
      failures[#failures + 1] = ("%s: %s: %s"):format(called[index], err.kind, err.message)
    end
    if state == "full" then
      break
    end
  end
  return count, failures
end


-- Returns at most `length` bytes from the start of a text: whole characters.
local function head(text, length)
  if #text <= length then
    return text
  end
  while length > 0 and text:byte(length + 1) & 0xc0 == 0x80 do
    length = length - 1
  end
  return text:sub(1, length) .. "…"
end


-- How many there are must not fall off the end of the error.
local function raise_failures(where, failures)
  local first, more = failures[1], #failures - 1
  refuse(where, more == 0 and first or ("%s (and %d more)"):format(head(first, FAILURE_MAX), more))
end


-- Deletes an object, and says why in the trace of deletions. Returns false when the run has no write left.
local function delete(object, why, failures)
  if not host.may_write() then
    return false
  end
  local done, err = call(host.delete_child, object, why)
  if not done then
    failures[#failures + 1] = ("%s %s: %s: %s"):format(object.kind, object.metadata.name, err.kind, err.message)
  end
  return true
end


-- Deletes what the object owns and is not wanted any more. Returns whether it got to all of it.
local function prune(where)
  local why = "no longer returned by " .. where
  local strays, all = host.strays()
  local failures = {}
  for _, object in ipairs(strays) do
    if not delete(object, why, failures) then
      return false
    end
  end
  if failures[1] then
    raise_failures(where, failures)
  end
  return all
end


-- Deletes what the inventory lists and is not wanted, the last first. Returns how many are in which state: "wanted",
-- "going", "gone", "unknown" (of a kind that the script does not own any more), "full" (the run had no write left); and
-- those that are not gone.
local function prune_tracked(where, inventory, wanted, why)
  local count, failures, gone, remaining = { going = 0, gone = 0, unknown = 0, full = 0, wanted = 0 }, {}, {}, {}
  for index = #inventory, 1, -1 do
    local entry = inventory[index]
    local state = not wanted[entry] and host.tracked_child(entry) or "wanted"
    if type(state) == "table" then
      state = delete(state, why, failures) and "going" or "full"
    end
    count[state], gone[entry] = count[state] + 1, state == "gone"
    if state == "full" then
      break
    end
  end
  if failures[1] then
    raise_failures(where, failures)
  end
  for _, entry in ipairs(inventory) do
    remaining[#remaining + 1] = not gone[entry] and entry or nil
  end
  return count, remaining
end


-- The object is being deleted, and finalize is done: what it could not own goes before it.
local function clean_up(where)
  host.await_owned()
  local why = "the object that it was made for is being deleted"
  local count, remaining = prune_tracked(where, read_inventory(), {}, why)
  if count.full > 0 then
    return "later"
  elseif count.going > 0 then
    return "wait"
  elseif count.unknown > 0 then
    local stay = table.concat(remaining, ", ")
    host.event("ChildrenLeft", "of kinds that the script does not own any more, they stay: " .. stay, "Warning")
  end
  return "done"
end


--- Makes the children of the reconciled object what the list says.
---@param where string "cnat.lua:27", where reconcile is defined
---@param children table? none: the object is being deleted, and those that it could not own go
---@return string outcome "done"; or "later": there is more to write than one run may, or the script has to see first
---  what was written; or "wait": objects are going
function M.carry_out(where, children)
  if children == nil then
    return clean_up(where)
  end
  local list = check_list(where, children)
  local called, entries = check_objects(where, list)
  host.await_owned()
  if list_before_making(where, entries) then
    return "later"
  end
  local count, failures = apply_all(where, list, called)
  if count.full > 0 then
    return "later"
  elseif failures[1] then
    raise_failures(where, failures)
  elseif count.deleted > 0 then
    return "later"
  elseif count.leaving > 0 then
    return "done"
  end
  if not prune(where) then
    return "later"
  end
  local pruned, remaining = prune_tracked(where, read_inventory(), entries, "no longer returned by " .. where)
  if pruned.full == 0 and pruned.gone > 0 then
    write_inventory(where, remaining)
  end
  return pruned.full + pruned.gone > 0 and "later" or "done"
end


return M
