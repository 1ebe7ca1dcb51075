--- The form in which the client wants the answer.
---
--- Rules: apiserver/pkg/endpoints/handlers/negotiation/negotiate.go.
local M = {}

local FORMATS = {
  ["application/json"] = "json", ["application/yaml"] = "yaml", ["application/*"] = "json", ["*/*"] = "json",
}
local FORMS = { Table = true, PartialObjectMetadata = true, PartialObjectMetadataList = true }
local PLAIN = { format = "json" }
local PROTOBUF = "application/vnd.kubernetes.protobuf"

-- Headers are few and come again; more than these are read each time.
local REMEMBERED_MAX = 64
local remembered, remembered_count = {}, 0


-- One clause: its media type, parameters and how much it is wanted, "q".
local function read_clause(text)
  local clause = { media = nil, parameters = {}, quality = 1 }
  for part in text:gmatch("[^;]+") do
    part = part:match("^%s*(.-)%s*$")
    if not clause.media then
      clause.media = part:lower()
    else
      local name, value = part:match("^(.-)%s*=%s*(.*)$")
      if name == "q" then
        clause.quality = tonumber(value) or 0
      elseif name then
        clause.parameters[name] = value:gsub('^"(.*)"$', "%1")
      end
    end
  end
  return clause
end


local function clauses_of(header)
  local list = {}
  for text in header:gmatch("[^,]+") do
    local clause = read_clause(text)
    clause.place = #list
    list[#list + 1] = clause
  end
  table.sort(list, function(a, b)
    if a.quality ~= b.quality then
      return a.quality > b.quality
    end
    return a.place < b.place
  end)
  return list
end


local function form_of(clause)
  local parameters = clause.parameters
  local format = FORMATS[clause.media]
  local as = parameters.as
  if not format or not as then
    return format and { format = format }
  end
  local known = FORMS[as] and parameters.g == "meta.k8s.io" and (parameters.v == "v1" or parameters.v == "v1beta1")
  return known and { format = format, as = as, version = parameters.v } or nil
end


-- The form, or what is wrong with all clauses: the worst thing last.
local function negotiate(header, has_tables)
  local why = { refusal = "media" }
  for _, clause in ipairs(clauses_of(header)) do
    local form = form_of(clause)
    if form and (has_tables or form.as ~= "Table") then
      return form
    elseif FORMATS[clause.media] then
      why.refusal = "form"
    elseif clause.media == PROTOBUF and why.refusal == "media" then
      why.refusal = "protobuf"
    end
  end
  return why
end


--- Reads an Accept header.
--- @param header string|nil
--- @param is_tableless boolean? whether no table can be made of the answer
--- @return table|nil form { format = "json"|"yaml", as = "Table"|"PartialObjectMetadata"|
---   "PartialObjectMetadataList"|nil, version = of what `as` names }, or nil and why: "media" (no such media type is
---   made), "protobuf" (a real server makes it, this one does not) or "form" (the media type is made, but not in that
---   form)
function M.read(header, is_tableless)
  if not header or header == "" or header == "application/json" then
    return PLAIN
  end
  local form = remembered[header]
  if form == nil then
    form = negotiate(header, true)
    if remembered_count < REMEMBERED_MAX then
      remembered[header] = form
      remembered_count = remembered_count + 1
    end
  end
  if is_tableless and form.as == "Table" then
    form = negotiate(header, false)
  end
  if form.refusal then
    return nil, form.refusal
  end
  return form
end


return M
