local sandbox = require "sandbox"

local function run(statements)
  return sandbox.run("local regex = require 'moonloop.regex' " .. statements)
end


-- All results of an expression, and where nil is one.
local function results(expression)
  return run("local function show(...) local out = {} for i = 1, select('#', ...) do "
    .. "out[i] = tostring((select(i, ...))) end return table.concat(out, '|') end return show(" .. expression .. ")")
end


describe("regex.match and regex.find", function()
  it("return groups, or all of the match", function()
    for call, expected in pairs {
      [ [[regex.match("web-7", "[0-9]+")]] ] = "7",
      [ [[regex.match("nginx:1.25", "^([^:]+):(.+)$")]] ] = "nginx|1.25",
      [ [[regex.match("nginx", "^([^:]+)(?::(.+))?$")]] ] = "nginx|false",
      [ [[regex.match("b", "(a)?b")]] ] = "false",
      [ [[regex.match("b", "(a)")]] ] = "nil",
      [ [[regex.match("abc", "")]] ] = "",
      [ [[regex.match("a\0b", "\\x00(.)")]] ] = "b",
      [ [[regex.match("äöü", "^.(.).$")]] ] = "ö",
      [ [[regex.match("\xffa\xff", "[^b]+")]] ] = "a",
      [ [[regex.match("\xff", ".")]] ] = "nil",
      [ [[regex.match("K", "(?i)k")]] ] = "K",
      [ [[regex.find("hello", "l+")]] ] = "3|4|table",
      [ [[regex.find("hello", "l", 4)]] ] = "4|4|table",
      [ [[regex.find("hello", "l", -1)]] ] = "nil",
      [ [[regex.find("hello", "o", -1)]] ] = "5|5|table",
      [ [[regex.find("hello", "h", -100)]] ] = "1|1|table",
      [ [[regex.find("hello", "", 6)]] ] = "6|5|table",
      [ [[regex.find("hello", "", 7)]] ] = "nil",
      [ [[regex.find("hello", "^l", 3)]] ] = "nil",
      [ [[regex.find("hello", "h", 0)]] ] = "1|1|table",
    } do
      assert.equal(expected, (results(call):gsub("table.*", "table")), call)
    end
  end)

  it("names groups", function()
    assert.same("nginx 1.25 false b b", run [[
      local _, _, groups = regex.find("nginx:1.25", "^(?P<name>[^:@]+):(?<tag>[^@]+)(@(?P<digest>.+))?$")
      local _, _, either = regex.find("b", "(?P<x>a)|(?P<x>b)")
      local _, _, numbered = regex.find("ab", "(a)(?P<n>b)")
      assert(groups[2] == groups.tag and groups[4] == false and numbered[1] == "a" and numbered[2] == "b")
      return ("%s %s %s %s %s"):format(groups.name, groups.tag, groups.digest, either.x, numbered.n)
    ]])
    assert.same("1.25", run [[
      local _, _, groups = regex.find("nginx:1.25", "^(?:[^:]+)(?i:\\:)((?:(?P<tag>.+)))$")
      return groups.tag
    ]])
  end)
end)


describe("regex.gmatch", function()
  it("gives each match", function()
    for call, expected in pairs {
      ['"12 ab 3", "[0-9]+"'] = "12,3", ['"baab", "a*"'] = ",aa,", ['"ä", ""'] = ",",
      ['"a=1,b=2", "(\\\\w)=(\\\\w)"'] = "a1,b2",
      ['"aaa", "^a"'] = "a", ['"b", "(a)?b"'] = "false",
    } do
      assert.equal(expected, run(("local list = {} for a, b in regex.gmatch(%s) do "
        .. "list[#list + 1] = tostring(a) .. (b or '') end return table.concat(list, ',')"):format(call)), call)
    end
  end)

  it("goes on when other expressions took its place, and stays at its end", function()
    assert.equal("1234|nil", run [[
      local seen, next = "", regex.gmatch("1 2 3 4", "\\d")
      for digit in next do
        seen = seen .. digit
        for i = 1, 100 do regex.match("x", "x" .. i) end
      end
      return seen .. "|" .. tostring(next())
    ]])
  end)
end)


describe("regex.gsub", function()
  it("takes a template, a table or a function", function()
    for call, expected in pairs {
      ['"hello", "l", "L"'] = "heLLo|2", ['"hello", "l", "L", 1'] = "heLlo|1", ['"hello", "l", "L", 0'] = "hello|0",
      ['"ab", "(a)(b)", "$2$1"'] = "ba|1", ['"ab", "(?P<x>a)(b)", "${2}_${x}_$x$$$0"'] = "b_a_a$ab|1",
      ['"b", "(a)?b", "[$1]"'] = "[]|1", ['"b", "(?P<x>a)|(?P<x>b)", "[$x]"'] = "[b]|1",
      ['"a", "(a)", "${1}x"'] = "ax|1", ['"baab", "a*", "-"'] = "-b-b-|3", ['"ä", "", "-"'] = "-ä-|2",
      ['"a b c", "[a-b]", { a = "1" }'] = "1 b c|2", ['"x1 y2", "([a-z])([0-9])", { x = "X", y = false }'] = "X y2|2",
      ['"a-b", "(\\\\w)-(\\\\w)", function(x, y) return y .. x end'] = "ba|1",
      ['"ab", ".", function(c) return c == "a" and 7 or nil end'] = "7b|2", ['"", "^", "x"'] = "x|1",
      ['"b", "(a)?b", function(a) return tostring(a) end'] = "false|1",
    } do
      assert.equal(expected, results(("regex.gsub(%s)"):format(call)), call)
    end
  end)

  it("calls functions that use other expressions", function()
    assert.equal("2 4", run [[return (regex.gsub("1 2", "\\d", function(d)
      for i = 1, 100 do regex.match("x", "x" .. i) end
      return math.tointeger(2 * d)
    end))]])
  end)
end)


describe("regex.quote", function()
  it("makes a pattern of any text", function()
    assert.equal("1\\+1 \\(a\\.b\\)", run [[return regex.quote "1+1 (a.b)"]])
    assert.is_true(run [[local all = {} for i = 0, 127 do all[#all + 1] = string.char(i) end
      all = table.concat(all) return regex.match(all .. "x", "^" .. regex.quote(all) .. "x$") == all .. "x"]])
  end)
end)


describe("an expression that is wrong", function()
  local MATCH, FIND = "regex.match(text, pattern): ", "regex.find(text, pattern [, init]): "
  local PATTERN, GSUB = MATCH .. "pattern: ", "regex.gsub(text, pattern, replacement [, max]): "

  local function message(call)
    return (run(("local done, why = pcall(function() return %s end) return done and 'OK' or why"):format(call))
      :gsub("^[^:]+:%d+: ", ""))
  end

  it("says what, and what to do", function()
    for call, why in pairs {
      [ [[regex.match("a", "(a")]] ] = PATTERN .. "missing closing ) at '(a'",
      [ [[regex.find("a", "[b-a]")]] ] = FIND .. "pattern: invalid character class range at 'b-a'",
      [ [[regex.match("a", "a**")]] ] = PATTERN .. "invalid nested repetition operator at '**'",
      [ [[regex.match("a", "(a{1000}){1000}")]] ] = PATTERN .. "invalid repeat count at '{1000}'",
      [ [[regex.match("a", "(?=a)")]] ] = PATTERN .. "invalid or unsupported Perl syntax at '(?='",
      [ [[regex.match("a", "\\C")]] ] = PATTERN .. "invalid escape sequence at '\\C'",
      [ [[regex.match("a", "\xff")]] ] = PATTERN .. "invalid UTF-8",
      [ [[regex.match("a", "(" .. ("ä"):rep(99))]] ] =
        PATTERN .. "missing closing ) at '(" .. ("ä"):rep(49) .. "…'",
      [ [[regex.match("a", "(%d+")]] ] = PATTERN .. "missing closing ) at '(%d+'; "
        .. "'%d' is of Lua's patterns; here it is '\\d'",
      [ [[regex.match("a", "[%w-.]")]] ] = PATTERN .. "invalid character class range at 'w-.'; "
        .. "'%w' is of Lua's patterns; here it is '[[:alnum:]]'",
      [ [[regex.match("a", ("a"):rep(100000))]] ] =
        PATTERN .. "too long: 100000; at most 1024 bytes, where each \\p counts for 30 more and "
          .. "each {…} for 10 more: use several, one after the other",
      [ [[regex.match("a", "\\pL{1000}")]] ] = PATTERN .. "expression too large",
      [ [[regex.match("a", ("\\pL"):rep(40))]] ] = PATTERN .. "too long: 1320; at most 1024 bytes, "
        .. "where each \\p counts for 30 more and each {…} for 10 more: use several, one after the other",
      [ [[regex.match("a", ("()"):rep(65))]] ] =
        PATTERN .. "more than 64 groups; write (?:…) for those whose text is not needed",
      [ [[regex.match(7, "a")]] ] = MATCH .. "text: expected a string, got a number",
      [ [[regex.match("a")]] ] = PATTERN .. "expected a string, got a nil",
      [ [[regex.gmatch("a", {})]] ] = "regex.gmatch(text, pattern): pattern: expected a string, got a table",
      [ [[regex.quote()]] ] = "regex.quote(text): expected a string, got a nil",
      [ [[regex.find("a", "a", 1.5)]] ] = FIND .. "init: expected a whole number",
      [ [[regex.gsub("a", "a")]] ] = GSUB .. "replacement: expected a string, a table or a function, got a nil",
      [ [[regex.gsub("a", "a", "b", "x")]] ] = GSUB .. "max: expected a whole number",
      [ [[regex.gsub("a", "(a)", "$2")]] ] = GSUB .. "replacement: there is no group '2' in the pattern",
      [ [[regex.gsub("a", "(a)", "$1x")]] ] = GSUB .. "replacement: there is no group '1x'; did you mean '${1}x'?",
      [ [[regex.gsub("a", "(?P<x>a)", "${y}")]] ] = GSUB .. "replacement: there is no group 'y' in the pattern",
      [ [[regex.gsub("a", "a", "5 $")]] ] =
        GSUB .. "replacement: behind a '$' stands a group, as in $1 or ${name}; '$' itself is '$$'",
      [ [[regex.gsub("a", "a", function() return {} end)]] ] =
        GSUB .. "replacement: expected a string for 'a', got a table",
      [ [[regex.match(("a"):rep(1000000), "(?:(a|b)?){300}x")]] ] = MATCH .. "text: 1000000 bytes; for a "
        .. "pattern of this size at most 1740: pass a part of it, such as a line, or make the pattern smaller",
    } do
      assert.equal(why, message(call), call)
    end
  end)
end)


describe("regex and Go's regexp", function()
  -- "pattern<TAB>text<TAB>from-to<TAB>groups<TAB>replaced" of one case, as tools/regex/main.go writes it.
  local ANSWER = [[
    local function answer(pattern, text)
      local from, to, first = regex.find(text, pattern)
      local list = {}
      regex.gsub(text, pattern, function(...)
        for index = 1, first[1] == nil and 0 or select("#", ...) do
          list[#list + 1] = ((select(index, ...)) or "-") .. ","
        end
        list[#list + 1] = ";"
      end)
      local replaced = regex.gsub(text, pattern, first and first[1] ~= nil and "<$0|$1>" or "<$0>")
      return table.concat({ pattern, text, from and from .. "-" .. to or "none", table.concat(list), replaced }, "\t")
    end
    local out = {}
    for index, case in ipairs(CASES) do out[index] = answer(case[1], case[2]) end
    return table.concat(out, "\n")
  ]]

  it("find the same in the same", function()
    local lines, cases = {}, {}
    for line in io.lines "spec/lua/regex_matches.tsv" do
      local pattern, text = line:match "^([^\t]*)\t([^\t]*)"
      lines[#lines + 1], cases[#cases + 1] = line, ("{ %q, %q },"):format(pattern, text)
    end
    assert.equal(400, #lines)
    local count = 0
    local function run_some(first)
      local some = table.concat(cases, "", first, first + 49)
      for line in (run("local CASES = {" .. some .. "} " .. ANSWER) .. "\n"):gmatch "(.-)\n" do
        count = count + 1
        assert.equal(lines[count], line)
      end
    end
    for first = 1, #cases, 50 do
      run_some(first)
    end
    assert.equal(#lines, count)
  end)
end)
