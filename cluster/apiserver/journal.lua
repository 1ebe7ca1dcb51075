--- State in a folder: a journal of changes. A change is written before it takes effect; now and then the file is
--- written again without outdated lines.
---
--- A line is "CHECK KIND REVISION ID REST". CHECK covers everything behind it. REST of KIND "P" is the stored JSON,
--- REST of "D" is "namespace/name". A "D" of nothing says that revisions may have been given out up to its own: changes
--- that pass (see Store:passing) are not written. If the last line is incomplete, the process ended while it wrote the
--- line: that change has not happened. Any other damage is an error.
local host = require "cluster.host"
local store = require "cluster.apiserver.store"

local M = {}
M.__index = M

local SYNC_AFTER = 0.2 -- seconds: what a failing machine may lose; a failing process loses nothing
local COMPACT_FROM = 16 * 1024 * 1024 -- bytes
local CHECK_LENGTH = 12
local RESERVED = 10000 -- revisions at a time, for changes that are not written: a day of a node's heartbeats


local function line_of(kind, revision, id, rest)
  local text = ("%s %d %s %s"):format(kind, revision, id, rest)
  return host.sha256(text):sub(1, CHECK_LENGTH) .. " " .. text .. "\n"
end


-- A deletion that names nothing.
local function mark_of(revision)
  return line_of("D", revision, "-", "/")
end


-- @return kind, revision, id, rest; nothing when the line is damaged
local function read_line(line)
  local check, text = line:match "^(%x+) (.*)$"
  if check and host.sha256(text):sub(1, CHECK_LENGTH) == check then
    local kind, revision, id, rest = text:match "^(%u) (%d+) (%S+) (.*)$"
    return kind, math.tointeger(tonumber(revision)), id, rest
  end
end


local function key_of(id, object_text)
  local meta = host.json.decode(object_text).metadata
  return ("%s %s/%s"):format(id, meta.namespace or "", meta.name)
end


-- Reads the text of the file: the objects by their key, the highest revision, and how many of its bytes are good.
local function replay(text)
  local objects, highest, at = {}, 0, 1
  while at <= #text do
    local stop = text:find("\n", at, true)
    local kind, revision, id, rest = nil, nil, nil, nil
    if stop then
      kind, revision, id, rest = read_line(text:sub(at, stop - 1))
    end
    if not kind then
      if stop and stop < #text then
        return nil, ("damaged at byte %d"):format(at)
      end
      break
    end
    highest = math.max(highest, revision)
    if kind == "P" then
      objects[key_of(id, rest)] = { id = id, text = rest, revision = revision }
    else
      objects[id .. " " .. rest] = nil
    end
    at = stop + 1
  end
  return { objects = objects, revision = highest, size = at - 1 }
end


local function in_order(objects)
  local records = {}
  for _, record in pairs(objects) do
    records[#records + 1] = record
  end
  table.sort(records, function(a, b) return a.revision < b.revision end)
  return records
end


--- Opens the folder, which is made when it is not there.
--- @return table|nil journal, with `restored_state` as the server's settings have it (nil when it is empty)
--- @return string|nil why there is none
function M.open(folder)
  local made, why = host.file.make_folder(folder)
  if not made then
    return nil, why
  end
  local self = setmetatable({ folder = folder, path = folder .. "/cluster.log" }, M)
  self.file, why = host.file.open(self.path)
  if not self.file then
    return nil, why
  end
  local text = assert(self.file:read())
  local state
  state, why = replay(text)
  if not state then
    self.file:close()
    return nil, ("%s: %s; move the file away to begin anew"):format(self.path, why)
  end
  if state.size < #text then
    assert(self.file:cut(state.size))
    host.log("warn", "the last change had not been written whole; it is dropped", { file = self.path })
  end
  self.size, self.live, self.reserved_revision = state.size, nil, state.revision
  if state.revision > 0 then
    self.restored_state = { records = in_order(state.objects), revision = state.revision }
  end
  return self
end


-- Writes are on the disk a little later, many at a time.
local function sync_soon(self)
  if self.timer then
    return
  end
  self.timer = host.after(SYNC_AFTER, function()
    self.timer = nil
    local ok, why = self.file:sync()
    if not ok then
      host.log("error", "state may not be on the disk", { file = self.path, error = why })
    end
  end)
end


local function line_for(change)
  local entry = change.entry
  local is_gone = change.type == "DELETED"
  return line_of(is_gone and "D" or "P", change.revision, change.id,
    is_gone and entry.namespace .. "/" .. entry.name or store.kept_text(change.id, entry))
end


--- Keeps a change; for Store.on_commit. Of one that passes only the revision counts: none is given out twice.
--- @return true|nil, or nil and why it cannot be kept
function M:keep(change)
  if change.is_passing and change.revision <= self.reserved_revision then
    return true
  end
  local line = change.is_passing and mark_of(change.revision + RESERVED) or line_for(change)
  local ok, why = self.file:write(line)
  if not ok then
    return nil, ("%s: %s"):format(self.path, why)
  end
  self.reserved_revision = change.is_passing and change.revision + RESERVED or self.reserved_revision
  self.size = self.size + #line
  sync_soon(self)
  if self.size > COMPACT_FROM and self.size > 2 * (self.live or 0) and not self.compacting then
    self.compacting = true
    host.defer(function()
      self:compact()
      self.compacting = false
    end)
  end
  return true
end


local function write_all(file, storage)
  local lines, size = {}, 0
  for _, id in ipairs(storage:ids()) do
    storage:collection(id):each(nil, nil, function(entry)
      lines[#lines + 1] = line_of("P", entry.revision, id, store.kept_text(id, entry))
      size = size + #lines[#lines]
    end)
  end
  -- Nothing that is left need be as young as the last change.
  lines[#lines + 1] = mark_of(storage.revision)
  local ok, why = file:write(table.concat(lines))
  if ok then
    ok, why = file:sync()
  end
  return ok, why, size
end


--- Writes the file anew, with what is there now. When that fails the old one stays in use.
function M:compact()
  local beside = self.path .. ".new"
  os.remove(beside)
  local file, why = host.file.open(beside)
  local ok, size
  if file then
    ok, why, size = write_all(file, self.store)
  end
  if ok then
    ok, why = os.rename(beside, self.path)
  end
  if not ok then
    if file then
      file:close()
    end
    os.remove(beside)
    self.live = self.size -- not again before it has doubled
    host.log("warn", "state could not be written anew; going on with the old file", { file = self.path, error = why })
    return
  end
  host.file.sync_folder(self.folder)
  self.file:close()
  self.file, self.size, self.live, self.reserved_revision = file, size, size, self.store.revision
end


--- Keeps what the store commits from now on.
function M:attach(storage)
  self.store = storage
  function storage.on_commit(change)
    return self:keep(change)
  end
end


--- Writes out and closes.
function M:close()
  if self.timer then
    self.timer:stop()
  end
  self.store.on_commit = function()
    return nil, "the state's file is closed"
  end
  self.file:sync()
  self.file:close()
end


return M
