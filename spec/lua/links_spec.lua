-- Links in the documentation: the file is there, and so is the heading.
local function lines_of(path)
  local list, in_code = {}, false
  for line in io.lines(path) do
    if line:find "^%s*```" then
      in_code = not in_code
    elseif not in_code then
      list[#list + 1] = line
    end
  end
  return list
end


-- The anchor that a heading gets, as GitHub makes it.
local function anchor_of(heading)
  return (heading:lower():gsub("[^%w%s_%-]", ""):gsub(" ", "-"))
end


local function has_heading(path, anchor)
  for _, line in ipairs(lines_of(path)) do
    local heading = line:match "^#+ (.+)$"
    if heading and anchor_of(heading) == anchor then
      return true
    end
  end
  return false
end


local function is_file(path)
  local file = io.open(path)
  return file ~= nil and file:close()
end


-- Returns the error of a link of the page, or nil. Links out of the repository are not looked at.
local function wrong_with(page, link)
  if link:find "^%a+:" then
    return nil
  end
  local path, anchor = link:match "^([^#]*)#?(.*)$"
  local target = path == "" and page or (page:match "^.*/" or "") .. path
  if not is_file(target) then
    return ("%s: no file %s"):format(page, link)
  elseif anchor ~= "" and not has_heading(target, anchor) then
    return ("%s: no heading %s"):format(page, link)
  end
end


describe("The links in the documentation", function()
  it("lead to a file and its heading", function()
    local pages = assert(io.popen "find . -name '*.md' -not -path './build/*' -not -path './.*'")
    local wrong, count = {}, 0
    for page in pages:lines() do
      for _, line in ipairs(is_file(page) and lines_of(page) or {}) do
        for link in line:gsub("`[^`]*`", ""):gmatch "%]%(([^)%s]+)%)" do
          count = count + 1
          wrong[#wrong + 1] = wrong_with(page, link)
        end
      end
    end
    pages:close()
    assert.same({}, wrong)
    assert.is_true(count > 50)
  end)
end)
