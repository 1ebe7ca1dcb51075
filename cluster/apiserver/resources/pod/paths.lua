--- Paths and modes of files within pods.
---
--- Rules: kubernetes/pkg/apis/core/validation/validation.go (validateLocalDescendingPath and its neighbours).
local field = require "cluster.apiserver.field"

local M = {}

local MODE_MAX = 511   -- 0777


--- No part of a path may be "..".
function M.no_backsteps(path, at, errors)
  for part in path:gmatch("[^/]+") do
    if part == ".." then
      errors[#errors + 1] = field.invalid(at, path, "must not contain '..'")
      return
    end
  end
end


--- A path below somewhere.
function M.descending(path, at, errors)
  if path:sub(1, 1) == "/" then
    errors[#errors + 1] = field.invalid(at, path, "must be a relative path")
  end
  M.no_backsteps(path, at, errors)
end


--- A path below somewhere that does not begin with two dots, which volumes use themselves.
function M.not_reserved(path, at, errors)
  M.descending(path, at, errors)
  if path:sub(1, 2) == ".." and path ~= ".." and path:sub(1, 3) ~= "../" then
    errors[#errors + 1] = field.invalid(at, path, "must not start with '..'")
  end
end


--- The mode of a file; nil is fine.
function M.mode(mode, at, errors)
  if mode and (mode < 0 or mode > MODE_MAX) then
    errors[#errors + 1] = field.invalid(at, mode,
      "must be a number between 0 and 0777 (octal), both inclusive")
  end
end


return M
