-- The page that says of each field which file acts on it, or that nothing does.
local testfields = require "testfields"

local function read(path)
  local file = io.open(path)
  local text = file and file:read "a"
  if file then
    file:close()
  end
  return text
end


describe("The page about fields", function()
  local page, kept = read "docs/fields.md", testfields.kept(read "docs/embedded-server.md")

  local function problems(text)
    return testfields.problems(testfields.sections(text), { kept = kept, read = read, kinds = testfields.KINDS })
  end

  it("says of each field that it acts, waits or is kept, and is right", function()
    assert.equal("", table.concat(problems(page), "\n"))
  end)

  local LINKS = "| | `enableServiceLinks` | acts | `kubelet/service_env.lua` |\n"
  local CHANGES = {
    {
      name = "a field that stands nowhere", from = LINKS, to = "",
      "PodSpec.enableServiceLinks: neither acts nor is kept: add it to docs/fields.md, as \"acts\" with the files of "
        .. "cluster/ that act on it, or as \"kept\" with the row of \"Kept, and nothing acts on it\" in "
        .. "docs/embedded-server.md that names it",
    },
    {
      name = "a field that there is not", from = "`enableServiceLinks`", to = "`enableServiceLinks` `servants`",
      "PodSpec.servants: there is no such field, or another row has it: take it out of docs/fields.md",
    },
    {
      name = "two rows of one field", from = LINKS, to = LINKS .. LINKS,
      "PodSpec.enableServiceLinks: there is no such field, or another row has it: take it out of docs/fields.md",
    },
    {
      name = "a file that does not have the name of the field",
      from = "`kubelet/service_env.lua`", to = "`kubelet/logs.lua`",
      "PodSpec.enableServiceLinks: cluster/kubelet/logs.lua does not have its name: name the file that acts on it, or "
        .. "say that it is kept",
    },
    {
      name = "a file that there is not", from = "`kubelet/service_env.lua`", to = "`kubelet/links_env.lua`",
      "enableServiceLinks: there is no cluster/kubelet/links_env.lua",
    },
    {
      name = "a field that acts by no file", from = "`kubelet/service_env.lua`", to = "the kubelet",
      "enableServiceLinks: acts, by no file: name one of cluster/",
    },
    {
      name = "a kept field that the other page does not name",
      from = "`enableServiceLinks` | acts | `kubelet/service_env.lua`", to = "`enableServiceLinks` | kept | images",
      "PodSpec.enableServiceLinks: the row \"images\" of docs/embedded-server.md does not name it: add it there",
    },
    {
      name = "a kept field with a row that the other page does not have",
      from = "`imagePullSecrets` | kept | images", to = "`imagePullSecrets` | kept | pictures",
      "PodSpec.imagePullSecrets: \"Kept, and nothing acts on it\" has no row \"pictures\"",
    },
    {
      name = "a word that says nothing", from = "`enableServiceLinks` | acts", to = "`enableServiceLinks` | works",
      "PodSpec.enableServiceLinks: works: acts, waits or kept",
    },
    {
      name = "a type to which nothing leads that acts",
      from = "`dnsConfig` `dnsPolicy` | acts", to = "`dnsConfig` `dnsPolicy` | waits",
      "PodDNSConfig.*: there is no such field, or another row has it: take it out of docs/fields.md",
      "PodDNSConfig: nothing that acts leads to this type: take its rows out of docs/fields.md",
      "PodDNSConfigOption: nothing that acts leads to this type: take its rows out of docs/fields.md",
    },
    {
      name = "a type without rows", from = "| HostAlias | `*` | acts | `kubelet/mounts.lua` |\n", to = "",
      "HostAlias: docs/fields.md has no row of this type: add some",
    },
  }
  for _, change in ipairs(CHANGES) do
    it("is refused with " .. change.name, function()
      local from, to = page:find(change.from, 1, true)
      local before, came = table.concat(problems(page), "\n"), {}
      for _, problem in ipairs(problems(page:sub(1, from - 1) .. change.to .. page:sub(to + 1))) do
        came[#came + 1] = not before:find(problem, 1, true) and problem or nil
      end
      assert.same({ table.unpack(change) }, came)
    end)
  end
end)
