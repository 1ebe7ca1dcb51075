--- Kubernetes' libraries of the language: cluster/cel/lib.
local cel = require "cluster.cel"


local env = cel.env()


local function run(text)
  local program, issues = env:compile(text)
  if not program then
    return tostring(issues)
  end
  local value, err = program:run()
  if err then
    return { error = err.message }
  end
  return cel.to_json(value)
end


local function gives(cases)
  for text, expected in pairs(cases) do
    assert.same(expected, run(text), text)
  end
end


local function holds(list)
  for _, text in ipairs(list) do
    assert.equal(true, run(text), text)
  end
end


local function fails(cases)
  for text, message in pairs(cases) do
    assert.same({ error = message }, run(text), text)
  end
end


describe("cel's library of texts", function()
  it("counts characters, not bytes", function()
    gives {
      ["'tacöt'.charAt(3)"] = "ö", ["'abc'.charAt(3)"] = "", ["'höhö'.indexOf('ö')"] = 1,
      ["'höhö'.indexOf('ö', 2)"] = 3,
      ["'abc'.indexOf('z')"] = -1, ["'abc'.indexOf('', 2)"] = 2, ["'höhö'.lastIndexOf('h')"] = 2,
      ["'höhö'.lastIndexOf('h', 1)"] = 0, ["'abc'.lastIndexOf('')"] = 3, ["'äöü'.substring(1)"] = "öü",
      ["'äöü'.substring(1, 2)"] = "ö", ["'ABCÄ'.lowerAscii()"] = "abcÄ", ["'abcä'.upperAscii()"] = "ABCä",
      ["' \\u00a0a b\\t'.trim()"] = "a b", ["strings.quote('a\"\\n')"] = '"a\\"\\n"',
    }
    fails {
      ["'abc'.charAt(4)"] = "index out of range: 4", ["'abc'.substring(2, 1)"] =
        "invalid substring range. start: 2, end: 1", ["'abc'.indexOf('a', -1)"] = "index out of range: -1",
    }
  end)

  it("cuts and joins", function()
    gives {
      ["'a,b,c'.split(',')"] = { "a", "b", "c" }, ["'a,b,c'.split(',', 2)"] = { "a", "b,c" },
      ["'äb'.split('')"] = { "ä", "b" },
      ["size('a'.split(',', 0))"] = 0, ["['a', 'b'].join()"] = "ab", ["['a', 'b'].join('-')"] = "a-b",
      ["'aaa'.replace('a', 'b')"] = "bbb", ["'aaa'.replace('a', 'b', 2)"] = "bba", ["'ab'.replace('', '-')"] = "-a-b-",
    }
  end)

  it("formats", function()
    gives {
      ["'%s is %d%%'.format(['it', 5])"] = "it is 5%", ["'%.2f'.format([1234.567])"] = "1,234.57",
      ["'%e'.format([1500.0])"] = "1.500000\u{202f}×\u{202f}10⁰³",
      ["'%x %X %b %o'.format([255, 'z', 5, 8])"] = "ff 7A 101 10",
      ["'%s'.format([['a', 'b']])"] = '["a", "b"]', ["'%s'.format([{'k': 1}])"] = '{"k":1}',
      ["'%b'.format([-5])"] = "-101",
      ["'%s'.format([duration('90s')])"] = "90s", ["'%s'.format([null])"] = "null",
      ["'%s %s'.format([1.5, true])"] = "1.5 true",
    }
    fails { ["('%' + 'd').format([1.5])"] = "error during formatting: decimal clause can only be used on integers, was "
      .. "given double" }
  end)

  it("finds patterns", function()
    gives {
      ["'abc 123'.find('[0-9]+')"] = "123", ["'abc'.find('[0-9]')"] = "", ["'12 34 5'.findAll('[0-9]+')"] = { "12",
      "34", "5" },
      ["'12 34 5'.findAll('[0-9]+', 2)"] = { "12", "34" }, ["'äbä'.findAll('ä')"] = { "ä", "ä" },
      ["'baab'.findAll('a*')"] = { "", "aa", "" }, ["'abc'.findAll('^a|b$')"] = { "a" },
    }
    assert.matches("^Illegal regex: error parsing regexp", run("'a'.find('(' + 'b')").error)
  end)
end)


describe("cel's libraries of lists", function()
  it("have sums, extremes and places", function()
    holds {
      "[1, 2, 2].isSorted()", "!['b', 'a'].isSorted()", "[1, 2].sum() == 3", "[1.5, 2.0].sum() == 3.5",
      "[duration('1s'), duration('1m')].sum() == duration('61s')", "[3, 1].min() == 1", "['a', 'c'].max() == 'c'",
      "[1, 2, 1].indexOf(1) == 0", "[1, 2, 1].lastIndexOf(1) == 2", "['a'].indexOf('b') == -1", "[].sum() == 0 || true",
    }
    fails { ["[1].filter(x, x > 1).min()"] = "min called on empty list" }
  end)

  it("cut, sort and flatten", function()
    gives {
      ["[1, 2, 3, 4].slice(1, 3)"] = { 2, 3 }, ["[[1], [2, 3]].flatten()"] = { 1, 2, 3 },
      ["[3, 1, 2].sort()"] = { 1, 2, 3 },
      ["['ccc', 'a', 'bb'].sortBy(s, size(s))"] = { "a", "bb", "ccc" }, ["[1, 2, 1].distinct()"] = { 1, 2 },
      ["[1, 2].reverse()"] = { 2, 1 }, ["lists.range(3)"] = { 0, 1, 2 }, ["[[[1], [2]]].flatten(2)"] = { 1, 2 },
    }
    fails {
      ["[1].slice(0, 2)"] = "cannot slice(0, 2), list is length 1",
      ["[1].slice(-1, 0)"] = "cannot slice(-1, 0), negative indexes not supported",
    }
  end)

  it("compare sets", function()
    holds {
      "sets.contains([1, 2, 3], [3, 1])", "!sets.contains([1], [2])", "sets.equivalent([1, 2, 2], [2, 1])",
      "sets.intersects([1, 2], [2, 3])", "!sets.intersects([1], [])", "sets.contains([], [])",
    }
  end)
end)


describe("cel's library of URLs", function()
  it("takes them apart", function()
    gives {
      ["url('https://u@a.example:8443/x%20y/z?k=a&k=b%21#f').getHost()"] = "a.example:8443",
      ["url('https://a.example:8443/').getHostname()"] = "a.example",
      ["url('https://[::1]:80/').getHostname()"] = "::1",
      ["url('https://a.example:8443/').getPort()"] = "8443", ["url('https://a.example/').getPort()"] = "",
      ["url('https://a/x%20y/z').getEscapedPath()"] = "/x%20y/z", ["url('/path').getScheme()"] = "",
      ["url('HTTPS://a/').getScheme()"] = "https", ["url('https://a/?k=a&k=b%21').getQuery()"] = { k = { "a", "b!" } },
    }
    holds { "isURL('https://a/b')", "isURL('/a')", "!isURL('a b')", "!isURL('../x')", "!isURL('https://a:b/')",
      "url('https://a/') == url('https://a/')" }
    fails { ["url('x y')"] = 'URL parse error during conversion from string: parse "x y": invalid URI for request' }
  end)
end)


describe("cel's libraries of addresses", function()
  it("reads and writes addresses as Go does", function()
    holds {
      "string(ip('2001:DB8:0:0:1:0:0:1')) == '2001:db8::1:0:0:1'", "ip.isCanonical('::1')", "!ip.isCanonical('0::1')",
      "ip('192.168.0.1').family() == 4", "ip('::1').family() == 6", "ip('127.0.0.1').isLoopback()",
      "ip('::').isUnspecified()",
      "ip('224.0.0.1').isLinkLocalMulticast()", "ip('fe80::1').isLinkLocalUnicast()",
      "ip('169.254.1.1').isLinkLocalUnicast()",
      "ip('8.8.8.8').isGlobalUnicast()", "!ip('255.255.255.255').isGlobalUnicast()", "ip('1.2.3.4') == ip('1.2.3.4')",
      "!isIP('1.2.3')", "!isIP('1.2.3.04')", "!isIP('::ffff:1.2.3.4')", "!isIP('fe80::1%eth0')", "isIP('::1')",
      "!isIP('1::2::3')",
    }
    fails {
      ["ip('1.2.3.400')"] = 'IP Address "1.2.3.400" parse error during conversion from string: ParseAddr("1.2.3.400"): '
        .. "IPv4 field has value >255",
      ["ip('2001:db8:::1')"] = 'IP Address "2001:db8:::1" parse error during conversion from string: '
        .. 'ParseAddr("2001:db8:::1"): each colon-separated field must have at least one digit (at ":1")',
      ["ip('::ffff:1.2.3.4')"] = 'IPv4-mapped IPv6 address "::ffff:1.2.3.4" is not allowed',
    }
  end)

  it("knows networks", function()
    holds {
      "cidr('10.0.0.0/8').containsIP('10.9.8.7')", "!cidr('10.0.0.0/8').containsIP(ip('11.0.0.0'))",
      "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16')", "!cidr('10.1.0.0/16').containsCIDR(cidr('10.0.0.0/8'))",
      "cidr('10.1.2.3/16').masked() == cidr('10.1.0.0/16')", "cidr('10.1.2.3/16').prefixLength() == 16",
      "cidr('2001:db8::/32').containsIP('2001:db8:1::1')", "cidr('10.1.2.3/16').ip() == ip('10.1.2.3')",
      "string(cidr('10.0.0.0/8')) == '10.0.0.0/8'", "!isCIDR('10.0.0.0')", "!isCIDR('10.0.0.0/33')", "isCIDR('::/0')",
    }
  end)
end)


describe("cel's libraries of quantities and versions", function()
  it("compares and adds quantities", function()
    holds {
      "quantity('1Ki') == quantity('1024')", "quantity('500m').isLessThan(quantity('1'))",
      "quantity('2').isGreaterThan(quantity('1'))",
      "quantity('1').compareTo(quantity('1000m')) == 0", "quantity('1k').asInteger() == 1000",
      "!quantity('1.5').isInteger()",
      "quantity('1.5').asApproximateFloat() == 1.5", "sign(quantity('-1')) == -1",
      "quantity('1').add(quantity('2')) == quantity('3')",
      "quantity('1').add(2).sub(1) == quantity('2')", "isQuantity('1Gi')", "!isQuantity('1 Gi')",
    }
    holds {
      "quantity('12345678901234567890').isGreaterThan(quantity('12345678901234567889'))",
      "quantity('12345678901234567889Mi') == quantity('9223372036854775807')",
      "quantity('12345678901234567890').sub(quantity('12345678901234567889')).asInteger() == 1",
      "!quantity('12345678901234567890').isInteger()", "!isQuantity('10Mm')",
    }
    fails {
      ["quantity('1.5').asInteger()"] = "cannot convert value to integer",
      ["quantity('10Mm')"] = "unable to parse quantity's suffix",
    }
  end)

  it("orders versions", function()
    holds {
      "semver('1.2.3').isLessThan(semver('1.10.0'))", "semver('1.0.0-rc.1').isLessThan(semver('1.0.0'))",
      "semver('1.0.0-alpha.1').compareTo(semver('1.0.0-alpha.beta')) == -1", "semver('v1.2', true).patch() == 0",
      "semver('1.2.3').major() == 1 && semver('1.2.3').minor() == 2", "!isSemver('v1.2.3')", "isSemver('v1.02', true)",
      "!isSemver('1.2')", "semver('1.2.3+a') == semver('1.2.3+b')", "semver('2.0.0').isGreaterThan(semver('1.0.0'))",
    }
    fails { ["semver('1.2')"] = "No Major.Minor.Patch elements found" }
  end)
end)


describe("cel's library of formats", function()
  it("says what is wrong with a name", function()
    holds {
      "!format.dns1123Label().validate('my-name').hasValue()", "format.dns1123Label().validate('My').hasValue()",
      "format.named('uuid').value().validate('x').value()[0] == 'does not match the UUID format'",
      "!format.named('uuid').value().validate('123e4567-e89b-12d3-a456-426614174000').hasValue()",
      "!format.named('x').hasValue()",
      "!format.date().validate('2024-02-29').hasValue()", "format.date().validate('2023-02-29').hasValue()",
      "!format.dns1123LabelPrefix().validate('a-').hasValue()", "format.uri().validate('x y').hasValue()",
      "!format.qualifiedName().validate('a.example/b').hasValue()", "!format.labelValue().validate('').hasValue()",
      "format.dns1035Label() == format.dns1035Label()", "format.byte().validate('!').hasValue()",
    }
  end)
end)
