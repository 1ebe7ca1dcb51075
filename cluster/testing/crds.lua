--- The CustomResourceDefinitions of a world: those beside the test, or those of the option `crds`.
local coverage = require "cluster.testing.coverage"
local host = require "cluster.host"
local paths = require "cluster.testing.paths"

local M = {}

local PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

-- Contents by path: a world is made for each test.
local read = {}


--- The folder crds/ for a test's file: in its folder, or beside that. @return table list of paths, empty when none is
function M.beside(file)
  local folder = paths.folder_of(file)
  for _, path in ipairs { folder .. "/crds", folder .. "/../crds" } do
    if paths.is_folder(path) then
      return { path }
    end
  end
  return {}
end


local function files_of(path)
  if not paths.is_folder(path) then
    return { path }
  end
  local files = {}
  for _, file in ipairs(paths.list(path)) do
    if file:match "%.ya?ml$" or file:match "%.json$" then
      files[#files + 1] = file
    end
  end
  return files
end


local function definitions_in(path)
  if not read[path] then
    local file = assert(io.open(path))
    local documents, why = host.yaml.decode(file:read "a")
    file:close()
    if not documents then
      error(host.escape(("%s: %s"):format(path, why)), 0)
    end
    read[path] = {}
    for _, document in ipairs(documents) do
      if type(document) == "table" and document.kind == "CustomResourceDefinition" then
        coverage.note_definition(document)
        table.insert(read[path], document)
      end
    end
  end
  return read[path]
end


--- Creates the definitions in these files and folders. Raises what the server has against one.
function M.apply(server, files)
  for _, path in ipairs(files) do
    for _, file in ipairs(files_of(path)) do
      for _, definition in ipairs(definitions_in(file)) do
        local code, answer = server:call("POST", PATH, definition)
        if code >= 300 then
          error(host.escape(("%s: %s"):format(file, answer.message)), 0)
        end
      end
    end
  end
end


return M
