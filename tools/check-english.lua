--- Finds sentences that break the rules of English in CONTRIBUTING: in comments of C, Lua, Go, shell, Make, CMake and
--- YAML, in Markdown, in the heads of mutants, and in the messages of the host. Prints each with its file, line and
--- rule, and then exits 1. `--count` prints only their number. Files can be named; without them it reads all that git
--- tracks.

local LANGUAGES = {
  c = "c", cc = "c", h = "c", go = "c", lua = "lua", sh = "hash", cmake = "hash", yaml = "hash", md = "markdown",
  patch = "patch", Makefile = "hash", Dockerfile = "hash", ["CMakeLists.txt"] = "hash", run = "hash",
}

-- Texts of others, and texts made by a program.
local FOREIGN = {
  "^cluster/kinds/", "^cluster/spec/conformance/recorded/", "^cluster/spec/apiserver/recorded/", "^spec/fuzz/corpus/",
  "^spec/unit/fixtures/", "^spec/e2e/fixtures/",
}

-- Folders whose string literals are messages of ours; the embedded API server repeats Kubernetes' own.
local MESSAGES = { "^host/", "^lua/moonloop/", "^cluster/dev/", "^cluster/testing/" }

local OPENERS = { What = true, Whether = true, Who = true, Those = true, Whoever = true, Whatever = true }
local PHRASES = { "%f[%w]that which%f[%W]", "%f[%w]as it is told%f[%W]", "%f[%w]of which%f[%W]" }
local NEGATIVES = {
  ["not"] = true, no = true, never = true, nothing = true, nobody = true, none = true, without = true, nowhere = true,
  cannot = true, ["isn't"] = true, ["doesn't"] = true, ["don't"] = true, ["can't"] = true,
}
-- Two of these within so many words of one clause are a double negative.
local NEAR = 6

local function matches_any(text, patterns)
  for _, pattern in ipairs(patterns) do
    if text:find(pattern) then
      return true
    end
  end
  return false
end

local function has_double_negative(sentence)
  for clause in sentence:gmatch "[^,;:%.%(%)–—|]+" do
    local last
    local position = 0
    for word in clause:gmatch "[%w'_]+" do
      position = position + 1
      if NEGATIVES[word:lower()] then
        if last and position - last <= NEAR then
          return true
        end
        last = position
      end
      if word == "and" or word == "or" or word == "but" or word == "nor" or word == "if" or word == "when" then
        last = nil
      end
    end
  end
  return false
end

-- The name of the rule that a sentence breaks, or nil.
local function broken_rule(sentence)
  local first = sentence:match "^[%s%*_\"'%(%[]*(%a+)"
  if first and OPENERS[first] then
    return "begins with " .. first
  end
  for _, phrase in ipairs(PHRASES) do
    local found = sentence:lower():match(phrase)
    if found then
      return "has “" .. found .. "”"
    end
  end
  if has_double_negative(sentence) then
    return "has two negatives"
  end
  return nil
end

-- Joins the lines of a block and calls back with each sentence and its line.
local function each_sentence(block, call)
  local text, starts = "", {}
  for _, line in ipairs(block) do
    starts[#starts + 1] = { at = #text + 1, number = line.number }
    text = text .. line.text .. " "
  end
  -- Code is one word; positions stay.
  text = text:gsub("`[^`]*`", function(code)
    return "`" .. ("x"):rep(#code - 2) .. "`"
  end)
  local from = 1
  while from <= #text do
    local _, stop = text:find("[%.%?!]['\"%)%*”]*%s+%f[%u\"'%(%*“`]", from)
    local sentence = text:sub(from, stop or #text)
    local number = starts[1].number
    local begins = from + #sentence:match "^%s*"
    for _, start in ipairs(starts) do
      if start.at <= begins then
        number = start.number
      end
    end
    call(sentence:match "^%s*(.-)%s*$", number)
    from = (stop or #text) + 1
  end
end

-- Blocks of the comments of one text: lists of { text, number }.
local readers = {}

local function add_line(blocks, open, text, number)
  local item = text:match "^%s*[%-%*] +(.*)$" or text:match "^%s*%d+%. +(.*)$" or text:match "^%s*@%a+ (.*)$"
  if not open or item or text:match "^%s*$" then
    open = {}
    blocks[#blocks + 1] = open
  end
  open[#open + 1] = { text = (item or text):match "^%s*(.-)%s*$", number = number }
  return open
end

function readers.c(lines, blocks)
  local inside, open = false, nil
  for number, line in ipairs(lines) do
    local bare = line:gsub('"[^"]*"', '""')
    local comment
    if inside then
      comment = line:match "^%s*%*?(.-)%*/" or line:match "^%s*%*?/?(.*)$"
      inside = not line:find("*/", 1, true)
    elseif bare:find("/*", 1, true) then
      comment = line:match "/%*+<?(.-)%*/" or line:match "/%*+<?(.*)$"
      inside = not line:find("*/", 1, true)
      open = nil
    elseif bare:find "//" and not bare:find "://" then
      comment = line:match "//[/<]*(.*)$"
      if not line:match "^%s*//" then
        open = nil
      end
    end
    open = comment and add_line(blocks, open, comment, number) or nil
  end
end

function readers.lua(lines, blocks)
  local inside, open = false, nil
  for number, line in ipairs(lines) do
    local comment
    if inside then
      comment = line:match "^(.-)%]=*%]" or line
      inside = not line:find "%]=*%]"
    elseif line:find "^%s*%-%-%[=*%[" then
      comment = line:match "%-%-%[=*%[(.*)$"
      inside = not line:find "%]=*%]"
    else
      local bare = line:gsub('\\.', "xx"):gsub('"[^"]*"', function(s) return ("x"):rep(#s) end)
        :gsub("'[^']*'", function(s) return ("x"):rep(#s) end)
      local at = bare:find("--", 1, true)
      comment = at and line:sub(at):match "^%-+(.*)$"
      if at and line:sub(1, at - 1):find "%S" then
        open = nil
      end
    end
    open = comment and add_line(blocks, open, comment, number) or nil
  end
end

function readers.hash(lines, blocks)
  local open
  for number, line in ipairs(lines) do
    local comment = line:match "^%s*#+[%s!]+(.*)$" or line:match "%s#+ (.*)$"
    if comment and not line:match "^%s*#" then
      open = nil
    end
    open = comment and add_line(blocks, open, comment, number) or nil
  end
end

function readers.markdown(lines, blocks)
  local fence, open
  for number, line in ipairs(lines) do
    if line:match "^%s*```" then
      fence, open = not fence, nil
    elseif fence or line:match "^%s*$" then
      open = nil
    elseif line:match "^%s*|" then
      for cell in line:gmatch "[^|]+" do
        add_line(blocks, nil, cell, number)
      end
      open = nil
    elseif line:match "^#" then
      add_line(blocks, nil, line:match "^#+%s*(.*)$", number)
      open = nil
    else
      open = add_line(blocks, open, line:gsub("^%s*>", ""), number)
    end
  end
end

function readers.patch(lines, blocks)
  local open
  for number, line in ipairs(lines) do
    if line:match "^diff " or line:match "^%-%-%- " then
      return
    end
    open = add_line(blocks, open, line:gsub("^#%s*", ""), number)
  end
end

local function read_messages(lines, blocks)
  for number, line in ipairs(lines) do
    for literal in line:gmatch '"([^"]*)"' do
      if literal:match "^%u%l+ %w+ %w" then
        blocks[#blocks + 1] = { { text = literal, number = number } }
      end
    end
  end
end

local function tracked_files()
  local files = {}
  local pipe = assert(io.popen "git ls-files")
  for name in pipe:lines() do
    files[#files + 1] = name
  end
  pipe:close()
  return files
end

local function broken_in(name)
  local base = name:match "[^/]+$"
  local language = LANGUAGES[base] or LANGUAGES[base:match "%.(%w+)$" or ""]
  if name:find "^cluster/spec/conformance/s%w+s/.*%.txt$" then -- scenarios and sessions
    language = "hash"
  end
  if not language or matches_any(name, FOREIGN) then
    return {}
  end
  local file = io.open(name)
  if not file then
    return {}
  end
  local lines = {}
  for line in file:lines() do
    lines[#lines + 1] = line
  end
  file:close()
  local blocks, found = {}, {}
  readers[language](lines, blocks)
  if (language == "c" or language == "lua") and matches_any(name, MESSAGES) then
    read_messages(lines, blocks)
  end
  for _, block in ipairs(blocks) do
    each_sentence(block, function(sentence, number)
      local rule = broken_rule(sentence)
      if rule then
        found[#found + 1] = ("%s:%d: %s: %s"):format(name, number, rule, sentence)
      end
    end)
  end
  return found
end

local only_count = arg[1] == "--count"
local files = table.move(arg, only_count and 2 or 1, #arg, 1, {})
local total = 0
for _, name in ipairs(#files > 0 and files or tracked_files()) do
  local found = broken_in(name)
  total = total + #found
  if not only_count and #found > 0 then
    print(table.concat(found, "\n"))
  end
end
if only_count then
  print(total)
end
os.exit(only_count or total == 0)
