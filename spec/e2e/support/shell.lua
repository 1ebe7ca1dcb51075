-- Commands and files. Everything that runs another program goes through here.
local M = {}

--- A word that the shell takes as it is.
function M.quote(word)
  return "'" .. tostring(word):gsub("'", "'\\''") .. "'"
end


--- Words quoted and joined.
function M.line(words)
  local quoted = {}
  for index, word in ipairs(words) do
    quoted[index] = M.quote(word)
  end
  return table.concat(quoted, " ")
end


--- Variables as words for env(1), in the order of their names; false unsets one.
---@param variables table<string, string|false>?
function M.env(variables)
  local names, words = {}, { "env" }
  for name in pairs(variables or {}) do
    names[#names + 1] = name
  end
  table.sort(names)
  for _, name in ipairs(names) do
    if not variables[name] then
      table.insert(words, 2, "--unset=" .. name)
    end
  end
  for _, name in ipairs(names) do
    if variables[name] then
      words[#words + 1] = name .. "=" .. variables[name]
    end
  end
  return M.line(words)
end


--- Runs a shell line; returns its standard output and its exit code (128 + n for signal n).
function M.run(line)
  local pipe = assert(io.popen(line))
  local output = pipe:read("a")
  local _, how, code = pipe:close()
  return output, how == "signal" and 128 + code or code
end


--- Runs a shell line that must succeed; returns its output.
function M.must(line)
  local output, code = M.run(line .. " 2>&1")
  if code ~= 0 then
    error(("%s\nexit code %d: %s"):format(line, code, output), 2)
  end
  return output
end


--- The whole content of a file, or nil.
function M.read(path)
  local file = io.open(path, "rb")
  local text = file and file:read("a")
  if file then
    file:close()
  end
  return text
end


--- Writes a file in place.
function M.write(path, text)
  local file = assert(io.open(path, "wb"))
  assert(file:write(text))
  assert(file:close())
end


--- Writes a file the way an editor saves: beside it, then renamed over it.
function M.save(path, text)
  local beside = path .. ".new~"
  M.write(beside, text)
  assert(os.rename(beside, path))
end


local folder, count = nil, 0

-- A folder of this process: each spec is one. Below the folder of run.sh, which removes it with all the rest.
local function own_folder()
  local runs = os.getenv "E2E_TMP"
  local path = M.must("mktemp -d" .. (runs and " -p " .. M.quote(runs) or "")):gsub("%s+$", "")
  if not runs then
    setmetatable(M, { __gc = function() os.execute("rm -rf " .. M.quote(path)) end })
  end
  return path
end


--- A new path for a file or folder of this run; nothing is there yet.
---@param name string
function M.path(name)
  folder = folder or own_folder()
  count = count + 1
  return ("%s/%s-%d"):format(folder, name, count)
end


--- A new folder of this run.
function M.folder(name)
  local path = M.path(name)
  M.must("mkdir " .. M.quote(path))
  return path
end


return M
