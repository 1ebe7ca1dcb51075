-- The writer of a volume's files: what a reader finds at each moment.
local atomic_writer = require "cluster.kubelet.atomic_writer"
local hostlua = require "hostlua"
local testfolder = require "testfolder"


local function files_of(texts)
  local files = {}
  for name, text in pairs(texts) do
    files[name] = { text = text, mode = 420 }
  end
  return files
end


describe("The writer of a volume", function()
  local folder, writer

  before_each(function()
    hostlua.freeze(1783072800)
    folder = testfolder.new()
    writer = atomic_writer.new(folder, "v")
  end)

  local function version()
    return folder.entries["/v/..data"].target
  end

  it("shows files as links through ..data, which leads to a folder that has a time as its name", function()
    assert.is_true(writer:write(files_of { a = "1", ["dir/sub/b"] = "2" }))
    assert.matches("^%.%.2026_07_03_10_00_00%.%d+$", version())
    assert.equal("..data/a", folder.entries["/v/a"].target)
    assert.equal("..data/dir", folder.entries["/v/dir"].target)
    assert.equal("1", folder:text "v/a")
    assert.equal("2", folder:text "v/dir/sub/b")
    assert.equal(511, folder.entries["/v"].mode)
    assert.equal(493, folder:at("v/dir/sub").mode)
    assert.equal(420, folder:at("v/a").file_mode)
  end)

  it("writes nothing when the texts are the same", function()
    writer:write(files_of { a = "1" })
    local before = version()
    folder.step = function() error "something was written" end
    assert.is_true(writer:write(files_of { a = "1" }))
    assert.equal(before, version())
  end)

  it("removes the names that are gone and the folder of the version before", function()
    writer:write(files_of { a = "1", b = "2", ["dir/x"] = "3", ["dir/y"] = "4" })
    local before = version()
    writer:write(files_of { b = "2", ["dir/y"] = "5", c = "6" })
    assert.same({ version(), "..data", "b", "c", "dir" }, folder:names "v")
    assert.same({ "y" }, folder:names("v/" .. version() .. "/dir"))
    assert.is_false(folder:has("v/" .. before))
  end)

  it("keeps an empty folder when all files go", function()
    writer:write(files_of { a = "1" })
    writer:write {}
    assert.same({ version(), "..data" }, folder:names "v")
  end)

  it("shows at each step all files of one version", function()
    writer:write(files_of { a = "old", b = "old", ["dir/c"] = "old" })
    local seen = {}
    folder.step = function()
      local a = folder:text "v/a"
      assert.equal(a, folder:text "v/b")
      assert.equal(a, folder:text "v/dir/c")
      seen[a] = true
    end
    writer:write(files_of { a = "new", b = "new", ["dir/c"] = "new" })
    assert.same({ old = true, new = true }, seen)
  end)

  it("keeps the files when there is no place for others, and leaves nothing behind", function()
    writer:write(files_of { a = "1" })
    local before = version()
    folder.full = true
    local ok, why = writer:write(files_of { a = "2" })
    assert.is_nil(ok)
    assert.equal("No space left on device", why)
    assert.same({ before, "..data", "a" }, folder:names "v")
    folder.full = false
    assert.is_true(writer:write(files_of { a = "2" }))
    assert.equal("2", folder:text "v/a")
  end)
end)
