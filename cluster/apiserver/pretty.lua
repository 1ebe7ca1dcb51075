--- JSON and YAML for people.
local gofmt = require "cluster.apiserver.gofmt"
local host = require "cluster.host"
local yaml_text = require "cluster.apiserver.yaml_text"

local M = {}


local function indent(depth)
  return "\n" .. ("  "):rep(depth)
end


--- The same JSON with line breaks and two spaces a level.
--- @param text string JSON without blanks between its parts
--- @param give_way function|nil called after each object and list in it
function M.json(text, give_way)
  local out, depth, at = {}, 0, 1
  local function put(piece)
    out[#out + 1] = piece
  end
  while at <= #text do
    local plain = text:match('^[^%[%]{},:"]+', at)
    local char = text:sub(at, at)
    if plain then
      put(plain)
      at = at + #plain
    elseif char == '"' then
      local stop = at + 1
      while true do
        stop = text:find('["\\]', stop)
        if text:byte(stop) == 34 then
          break
        end
        stop = stop + 2
      end
      put(text:sub(at, stop))
      at = stop + 1
    elseif text:find("^%[%]", at) or text:find("^{}", at) then
      put(text:sub(at, at + 1))
      at = at + 2
    else
      if char == "{" or char == "[" then
        depth = depth + 1
        put(char .. indent(depth))
      elseif char == "}" or char == "]" then
        depth = depth - 1
        put(indent(depth) .. char)
        if give_way then
          give_way()
        end
      else
        put(char == "," and "," .. indent(depth) or ": ")
      end
      at = at + 1
    end
  end
  return table.concat(out)
end


local function scalar(value, margin)
  if type(value) ~= "string" then
    return value == host.json.null and "null" or host.json.encode(value)
  end
  return yaml_text.scalar(value, margin)
end


local write


local function nothing() end


-- A value after "key:" or "-": scalars and empty things on the same line, the rest below.
local function write_below(out, value, margin, first)
  if type(value) ~= "table" then
    out[#out + 1] = " " .. scalar(value, margin) .. "\n"
  elseif next(value) == nil then
    out[#out + 1] = (host.json.is_array(value) and " []" or " {}") .. "\n"
  elseif first then
    out[#out + 1] = " "
    write(out, value, margin, true)
  else
    out[#out + 1] = "\n"
    write(out, value, margin, false)
  end
end


function write(out, value, margin, continued)
  if host.json.is_array(value) then
    for i, item in ipairs(value) do
      out[#out + 1] = (continued and i == 1 and "" or margin) .. "-"
      write_below(out, item, margin .. "  ", true)
      out.give_way()
    end
    return
  end
  for i, key in ipairs(gofmt.sorted_keys(value)) do
    local item = value[key]
    out[#out + 1] = (continued and i == 1 and "" or margin) .. scalar(key, margin) .. ":"
    write_below(out, item, host.json.is_array(item) and margin or margin .. "  ", false)
  end
end


--- A JSON object as YAML, keys sorted.
--- @param give_way function|nil called after each item of a list in it
function M.yaml(value, give_way)
  local out = { give_way = give_way or nothing }
  write(out, value, "", false)
  return table.concat(out)
end


return M
