--- Makes a container's /etc/passwd. Programs such as initdb and ssh end if their user has no line there.
---
--- Rule: CRI-O's utils.GeneratePasswd, which adds a line for a user that the image's file does not know. Here the
--- machine's file stands for the image's.
local M = {}


local function text_of_machine()
  local file = io.open "/etc/passwd"
  local text = file and file:read "a"
  if file then
    file:close()
  end
  return text or ""
end


--- @param user integer as the container sees itself  @param group integer the same  @param home string a folder
--- @return string|nil text of the file; nil: the machine's will do
function M.text(user, group, home)
  local known = text_of_machine()
  if ("\n" .. known):find(("\n[^:\n]*:[^:\n]*:%d:"):format(user)) then
    return nil
  end
  if not known:find "\n$" and known ~= "" then
    known = known .. "\n"
  end
  return ("%s%d:x:%d:%d:container user:%s:/bin/sh\n"):format(known, user, user, group, home)
end


return M
