#!/usr/bin/env lua5.4
--- Writes lua/cluster/apiserver/schema/facts/wire/*.lua: the numbers that fields of built-in kinds have in protobuf.
---
--- By hand, after tools/builtin-schemas.lua, with the folders of the Go modules k8s.io/api and k8s.io/apimachinery:
---     LUA_PATH="lua/?.lua" lua5.4 tools/builtin-wire.lua API_DIR APIMACHINERY_DIR
--- Source: the generated.proto files there. What they nest and JSON does not (VolumeSource in Volume) is told by a path
--- of numbers. The form of the files is read by lua/cluster/apiserver/schema/protobuf.lua.
local builtin = require "cluster.apiserver.schema.builtin"
local notation = require "cluster.apiserver.schema.notation"

local API, MACHINERY = assert(arg[1], "the folder of k8s.io/api"), assert(arg[2], "the folder of k8s.io/apimachinery")
local TARGET = "lua/cluster/apiserver/schema/facts/wire/"
local MAX_LINE = 100

-- Kinds that come as JSON only: their types hold JSON of any shape.
local SKIPPED = { apiextensions = true }


local function sorted_keys(map)
  local keys = {}
  for key in pairs(map) do
    keys[#keys + 1] = key
  end
  table.sort(keys)
  return keys
end


-- The messages of a file: name → list of { name =, number =, type = }.
local function read_messages(path)
  local messages, current = {}, nil
  for line in assert(io.open(path)):lines() do
    local opened = line:match "^message (%w+) {"
    if opened then
      current = {}
      messages[opened] = current
    elseif line:match "^}" then
      current = nil
    elseif current and not line:find "^%s*//" then
      local kind, name, number = line:match "^%s+%a+ ([%w%.]+) (%w+) = (%d+);"
      if not kind then
        name, number = line:match "^%s+map<.+> (%w+) = (%d+);"
      end
      if name then
        current[#current + 1] = { name = name, number = number, type = kind }
      end
    end
  end
  return messages
end


local function proto_path(alias, package)
  local words = package.name:match "^io%.k8s%.apimachinery%.(.+)$"
  if words then
    return MACHINERY .. "/" .. words:gsub("%.", "/") .. "/generated.proto"
  end
  return API .. "/" .. alias .. "/v1/generated.proto"
end


-- The path of numbers that leads to the field called `name`, or nil. Some differ from JSON's in capitals ("uID").
local function find(messages, message, name, known)
  for _, field in ipairs(message) do
    if field.name:lower() == name:lower() then
      return field.number
    end
  end
  for _, field in ipairs(message) do
    local inner = not known[field.name] and messages[field.type]
    local rest = inner and find(messages, inner, name, known)
    if rest then
      return field.number .. "." .. rest
    end
  end
end


local function wire_of(messages, record)
  local message, known, words = messages[record.name], {}, {}
  for _, field in ipairs(record.fields) do
    known[field.name] = true
  end
  for _, field in ipairs(record.fields) do
    local typed = record.kind and (field.name == "apiVersion" or field.name == "kind")
    if not typed then
      local number = assert(find(messages, message, field.name, known), record.name .. "." .. field.name)
      words[#words + 1] = field.name .. "=" .. number
    end
  end
  return words
end


local function folded(words)
  local lines, line = {}, ""
  for _, word in ipairs(words) do
    if #line + #word > MAX_LINE then
      lines[#lines + 1] = line
      line = ""
    end
    line = line .. (line == "" and "" or " ") .. word
  end
  lines[#lines + 1] = line
  return table.concat(lines, "\n    ")
end


local function write_package(alias, package)
  local messages = read_messages(proto_path(alias, package))
  local out = { "--- Written by tools/builtin-wire.lua; read by schema/protobuf.lua.", "return {" }
  for _, short in ipairs(sorted_keys(require("cluster.apiserver.schema.facts." .. alias))) do
    local record = builtin.record(package.name .. "." .. short)
    if not record.plain and messages[short] then
      out[#out + 1] = ("  %s = [[\n    %s]],"):format(short, folded(wire_of(messages, record)))
    end
  end
  out[#out + 1] = "}\n"
  local file = assert(io.open(TARGET .. alias .. ".lua", "w"))
  file:write(table.concat(out, "\n"))
  file:close()
end


for _, alias in ipairs(sorted_keys(notation.packages)) do
  if not SKIPPED[alias] then
    write_package(alias, notation.packages[alias])
  end
end
