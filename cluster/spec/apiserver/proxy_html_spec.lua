local html = require "cluster.apiserver.proxy.html"

-- A link that begins with "/" gets a prefix.
local function rewrite(link)
  return link:sub(1, 1) == "/" and "/via" .. link or link
end


local function whole(page)
  local rewriter = html.new(rewrite)
  return rewriter:feed(page) .. rewriter:finish()
end


-- The same, byte by byte.
local function bytewise(page)
  local rewriter, out = html.new(rewrite), {}
  for byte in page:gmatch "." do
    out[#out + 1] = rewriter:feed(byte)
  end
  return table.concat(out) .. rewriter:finish()
end


describe("the links of a page", function()
  for page, want in pairs {
    ['<a href="/x">/x</a>'] = '<a href="/via/x">/x</a>',
    ["<A\nHREF = '/x'>"] = '<A\nHREF = "/via/x">',
    ["<img alt=/a src=/b>"] = '<img alt=/a src="/via/b">',
    ['<img src=/b longdesc="/c" />'] = '<img src="/via/b" longdesc="/via/c" />',
    ['<a href="x" title="a > b" href="/y">'] = '<a href="x" title="a > b" href="/via/y">',
    ['<a href="/x?a=1&amp;b=&#39;">'] = '<a href="/via/x?a=1&amp;b=&#39;">',
    ['<form action=/f><input formaction="/g">'] = '<form action="/via/f"><input formaction="/via/g">',
    ['<script src="/s">"<a href=/x>"</script><a href=/y>'] =
      '<script src="/via/s">"<a href=/x>"</script><a href="/via/y">',
    ["<STYLE><a href=/x></Style><a href=/y>"] = '<STYLE><a href=/x></Style><a href="/via/y">',
    ["<title></titl<a href=/x></title>"] = "<title></titl<a href=/x></title>",
    ["<plaintext><a href=/x>"] = "<plaintext><a href=/x>",
  } do
    it("are rewritten where they are links: " .. page, function()
      assert.equal(want, whole(page))
      assert.equal(want, bytewise(page))
    end)
  end

  for _, page in ipairs {
    "", "no page", "a < b", "<", "<a", '<a href="/x', "<!-- <a href=/x> -->", "<!--> <b>", "<!", "<!-",
    "<!doctype html>", "<? <a href=/x", "</a href=/x>", "<p href=/x>", "<a href>", "<a href=>", "<a href", "<a href=/x",
    "<a/>", "<1 href=/x>",
    '<a href="x">', "<a title=/x>", "<script><!-- </scrip", "<textarea><a href=/x>", "<a =/x>", "\0<\0a\xff>",
  } do
    it("are none here: " .. page, function()
      assert.equal(page, whole(page))
      assert.equal(page, bytewise(page))
    end)
  end

  it("stay in a tag that is too long to wait for", function()
    local long = "<a href=/x title='" .. ("y"):rep(9000)
    local rewriter = html.new(rewrite)
    assert.equal(long, rewriter:feed(long))
    assert.equal("'>" .. '<a href="/via/x">', rewriter:feed "'><a href=/x>")
  end)

  it("are passed on as soon as they are whole", function()
    local rewriter = html.new(rewrite)
    assert.equal("text", rewriter:feed "text<a hr")
    assert.equal('<a href="/via/x">', rewriter:feed "ef='/x'>")
    assert.equal("<!-- much", rewriter:feed "<!-- much -")
    assert.equal(" -->", rewriter:feed "->")
  end)
end)
