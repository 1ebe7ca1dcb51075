--- Patterns of schemas: cluster/regex.lua, cluster/host/lua_regex.cc.
local regex = require "cluster.regex"


describe("schema.regex", function()
  local function match(pattern, text)
    return assert(regex.compile(pattern)):match(text)
  end

  -- Each with what Go's regexp says.
  local cases = {
    { "b", "abc", true }, { "^b", "abc", false }, { "^$", "", true }, { "", "x", true }, { "^a$", "a\n", false },
    { "(?m)^b$", "a\nb\nc", true }, { "a.c", "a\nc", false }, { "(?s)a.c", "a\nc", true }, { "^.$", "é", true },
    { "(?i)ABC", "xabc", true }, { "\\d", "٣", false }, { "\\s", "\v", false }, { "[\\s]", "\v", false },
    { "\\v", "\v", true }, { "\\v", "\n", false },
    { "[\\S]", "\v", true }, { "\\w", "é", false }, { "\\bé", "é", false },
    { "^\\pL+$", "éß", true }, { "\\P{L}", "é", false }, { "[[:alpha:]]", "é", false }, { "^[]a]+$", "]a", true },
    { "^[^-a]$", "-", false }, { "a{2}", "aa", true }, { "a{,2}", "a{,2}", true }, { "a{x", "a{x", true },
    { "^(a|b)*c$", "ababc", true }, { "\\Qa.b\\E+", "a.bbb", true }, { "\\Qa.b", "axb", false },
    { "\\x41\\x{e9}", "Aé", true },
    { "\\z\\z", "x", true }, { "^*a", "a", true }, { "(?P<n>a)(?<m>b)", "ab", true }, { "\\_\\-\\/", "_-/", true },
    { "a #b", "a #b", true }, { "[a-\\x{e9}]", "é", true }, { "(|a)+$", "aaa", true }, { "x*", "\0", true },
    { "^(?<n>a)(?<n>b)$", "ab", true }, { "[(?<n>]", "P", false }, { "\\(?<n>", "<n>", true },
    { "^\\Q(?<n>\\E$", "(?<n>", true }, { "^[[:alpha:](?<n>]+$", "a(?<n>", true },
    { "(?i)^\\w$", "ſ", true }, { "(?i)^\\p{Lu}$", "a", true },
    { "^a(?i)*$", "aaa", true }, { "\\p{Greek}", "\u{345}", false }, { "\\p{Han}", "、", false },
  }
  for _, case in ipairs(cases) do
    it(("says that %q %s %q"):format(case[1], case[3] and "matches" or "does not match", case[2]), function()
      assert.equal(case[3], (match(case[1], case[2])))
    end)
  end

  -- Go's messages, behind "error parsing regexp: ".
  local refused = {
    { "(a", "missing closing ): `(a`" }, { "a)", "unexpected ): `a)`" }, { "[a", "missing closing ]: `[a`" },
    { "[b-a]", "invalid character class range: `b-a`" }, { "*a", "missing argument to repetition operator: `*`" },
    { "a|*", "missing argument to repetition operator: `*`" }, { "a**", "invalid nested repetition operator: `**`" },
    { "a++", "invalid nested repetition operator: `++`" }, { "a{1001}", "invalid repeat count: `{1001}`" },
    { "a{2,1}", "invalid repeat count: `{2,1}`" }, { "(a{40}){40}", "invalid repeat count: `{40}`" },
    { "(?=a)", "invalid or unsupported Perl syntax: `(?=`" }, { "(?!a)", "invalid or unsupported Perl syntax: `(?!`" },
    { "(?<=a)", "invalid named capture: `(?<=a)`" }, { "(?P<a-b>c)", "invalid named capture: `(?P<a-b>`" },
    { "(?<é>c)", "invalid named capture: `(?<é>`" }, { "(?<n>a", "missing closing ): `(?<n>a`" },
    { "(a)\\1", "invalid escape sequence: `\\1`" }, { "\\Z", "invalid escape sequence: `\\Z`" },
    { "\\C", "invalid escape sequence: `\\C`" }, { "\\", "trailing backslash at end of expression: ``" },
    { "\\pX", "invalid character class range: `\\pX`" }, { "\\p{No}{", nil },
    { "(?>a)", "invalid or unsupported Perl syntax: `(?>`" },
    { "[[:foo:]]", "invalid character class range: `[:foo:]`" }, { "\xff", "invalid UTF-8: `\xff`" },
    { ("("):rep(1001), "expression nests too deeply: `" .. ("("):rep(1001) .. "`" },
  }
  for _, case in ipairs(refused) do
    it(("%s %q"):format(case[2] and "refuses" or "takes", case[1]:sub(1, 20)), function()
      local compiled, message = regex.compile(case[1])
      assert.equal(case[2] == nil, compiled ~= nil)
      assert.equal(case[2] and "error parsing regexp: " .. case[2], message)
    end)
  end

  it("answers patterns that make backtracking explode", function()
    assert.is_false(match("^(a+)+$", ("a"):rep(40) .. "!"))
    assert.is_true(match("^(a?){20}a{20}$", ("a"):rep(20)))
    assert.is_false(match("(x+x+)+[yz]", ("x"):rep(60)))
    assert.is_false(match("(a|aa)+$", ("a"):rep(253) .. "-"))
  end)

  it("takes time in proportion to the text", function()
    local before = os.clock()
    local matched, message = match("(x+x+)+[yz]", ("x"):rep(1000000))
    assert.is_false(matched)
    assert.is_nil(message)
    assert.same({}, regex.compile("(x+x+)+[yz]"):find_all(("x"):rep(1000000), -1))
    assert.is_true(os.clock() - before < 1)
  end)

  it("matches long texts", function()
    assert.is_true(match("^[a-z ]*$", ("lorem ipsum "):rep(100000)))
    assert.is_true(match("^([a-z]+ )*$", ("lorem ipsum "):rep(10000)))
    assert.is_false(match("needle", ("hay"):rep(100000)))
    assert.is_true(match("(foo|bar)*baz", ("foobar"):rep(4000) .. "baz"))
    assert.is_true(match("([a-z0-9]+\\.)+example", ("a."):rep(15000) .. "example"))
    assert.is_true(match("(BEGIN(.|\\n)+END\\n?)+", "BEGIN\n" .. ("QUJD\n"):rep(600) .. "END\n"))
    assert.is_false(match("^(\\w+\\s?)+$", ("word "):rep(1000) .. "!"))
  end)

  it("says when a text is no UTF-8", function()
    local matched, message = match("a", "\xff")
    assert.is_false(matched)
    assert.is_truthy(message:find "UTF%-8", message)
  end)

  it("finds all matches, as Go's FindAllString does", function()
    for _, case in ipairs {
      { "[0-9]+", "12 ab 3", -1, { 1, 2, 7, 7 } },
      { "[0-9]+", "12 ab 3", 1, { 1, 2 } },
      { "a*", "baab", -1, { 1, 0, 2, 3, 5, 4 } },
      { "", "ä", -1, { 1, 0, 3, 2 } },
      { "^a", "aaa", -1, { 1, 1 } },
      { "x", "abc", -1, {} },
      { "ö", "höhö", -1, { 2, 3, 5, 6 } },
      { "\\B", "ö.", -1, { 1, 0, 3, 2, 4, 3 } },
    } do
      assert.same(case[4], regex.compile(case[1]):find_all(case[2], case[3]), case[1])
    end
  end)

  it("says when not all matches are found", function()
    for _, case in ipairs { { "a", "\xff", "UTF%-8" }, { "x+y|x", ("x"):rep(1000000), "too long" } } do
      local places, message = regex.compile(case[1]):find_all(case[2], -1)
      assert.is_nil(places)
      assert.is_truthy(message:find(case[3]), message)
    end
  end)
end)
