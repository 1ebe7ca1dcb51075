--- The blocks of Lua in the pages about scripts. docs_test.lua plays those that are scripts, spec/lua/docs_spec.lua
--- runs the others, and sees that each function has an example.
local M = {}

M.PAGES = { "scripting", "reconciling", "children", "reading", "webhooks", "metrics-and-http", "library", "language" }

--- @return table list of the blocks of one page: { page =, heading =, text =, is_script = }; heading: the one above
function M.of(page)
  local list = {}
  local heading, block
  for line in io.lines(("docs/%s.md"):format(page)) do
    if block and line == "```" then
      local text = table.concat(block, "\n") .. "\n"
      local is_script = text:find("return moonloop.controller {", 1, true) ~= nil
      list[#list + 1] = { page = page, heading = heading, text = text, is_script = is_script }
      block = nil
    elseif block then
      block[#block + 1] = line
    elseif line == "```lua" then
      block = {}
    else
      heading = line:match "^#+ (.+)$" or heading
    end
  end
  assert(not block, page .. ": a block of Lua does not end")
  return list
end


--- @return table list of the blocks of all PAGES
function M.read()
  local list = {}
  for _, page in ipairs(M.PAGES) do
    local blocks = M.of(page)
    table.move(blocks, 1, #blocks, #list + 1, list)
  end
  return list
end


return M
