--- @param path string  @return string absolute, without empty parts, "." and "..", and without a slash at its end
return function(path)
  local parts = {}
  for part in path:gmatch "[^/]+" do
    if part == ".." then
      parts[#parts] = nil
    elseif part ~= "." then
      parts[#parts + 1] = part
    end
  end
  return "/" .. table.concat(parts, "/")
end
