--- How a webhook is reached: a URL, or a Service with a path.
---
--- Rules and wordings: apiserver/pkg/util/webhook/validation.go.
local field = require "cluster.apiserver.field"
local names = require "cluster.names"

local M = {}

local FORM <const> = "; desired format: https://host[/path]"
local HTTPS_PORT <const> = 443


--- Fills in what it does not say.
function M.defaults(config)
  if config and config.service then
    config.service.port = config.service.port or HTTPS_PORT
  end
end


-- The parts of a URL as texts, but user: nil where it has none.
local function parse(url)
  local rest, fragment = url:match "^([^#]*)#?(.*)$"
  local front, query = rest:match "^([^?]*)%??(.*)$"
  local scheme, after = front:match "^(%a[%w+.-]*):(.*)$"
  local authority = (after or front):match "^//([^/]*)"
  local user, host = (authority or ""):match "^(.*)@(.*)$"
  return {
    scheme = (scheme or ""):lower(), user = user, host = host or authority or "", query = query, fragment = fragment,
  }
end


local function check_url(url, path, errors)
  local parts = parse(url)
  if parts.scheme ~= "https" then
    errors[#errors + 1] = field.invalid(path, parts.scheme, "'https' is the only allowed URL scheme" .. FORM)
  end
  if parts.host == "" then
    errors[#errors + 1] = field.invalid(path, "", "host must be specified" .. FORM)
  end
  if parts.user then
    errors[#errors + 1] = field.invalid(path, parts.user, "user information is not permitted in the URL")
  end
  if parts.fragment ~= "" then
    errors[#errors + 1] = field.invalid(path, parts.fragment, "fragments are not permitted in the URL")
  end
  if parts.query ~= "" then
    errors[#errors + 1] = field.invalid(path, parts.query, "query parameters are not permitted in the URL")
  end
end


local function check_segments(url_path, path, errors)
  local at = 0
  for step in (url_path:sub(2):gsub("/$", "") .. "/"):gmatch "([^/]*)/" do
    if step == "" then
      errors[#errors + 1] = field.invalid(path, url_path, ("segment[%d] may not be empty"):format(at))
    end
    for _, message in ipairs(step ~= "" and names.subdomain(step) or {}) do
      errors[#errors + 1] = field.invalid(path, url_path, ("segment[%d]: %s"):format(at, message))
    end
    at = at + 1
  end
end


local function check_path(url_path, path, errors)
  if url_path == "" or url_path == "/" then
    return
  elseif url_path == "//" then
    errors[#errors + 1] = field.invalid(path, url_path, "segment[0] may not be empty")
    return
  end
  if url_path:sub(1, 1) ~= "/" then
    errors[#errors + 1] = field.invalid(path, url_path, "must start with a '/'")
  end
  check_segments(url_path, path, errors)
end


local function check_service(service, path, errors)
  -- The real server hands over the two the wrong way round.
  if (service.namespace or "") == "" then
    errors[#errors + 1] = field.required(path .. ".name", "")
  end
  if (service.name or "") == "" then
    errors[#errors + 1] = field.required(path .. ".namespace", "")
  end
  if service.port < 1 or service.port > 65535 then
    errors[#errors + 1] = field.invalid(path .. ".port", service.port,
      "port is not valid: must be between 1 and 65535, inclusive")
  end
  check_path(service.path or "", path .. ".path", errors)
end


--- @param config table clientConfig
function M.validate(config, path, errors)
  config = config or {}
  if (config.url == nil) == (config.service == nil) then
    errors[#errors + 1] = field.required(path, "exactly one of url or service is required")
  elseif config.url then
    check_url(config.url, path .. ".url", errors)
  else
    check_service(config.service, path .. ".service", errors)
  end
end


return M
