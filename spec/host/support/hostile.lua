-- The bytes of clients that mean harm, and the right answers to them. HOST and AUTH stand for the lines that an honest
-- request has.
--
-- A case: { name, bytes, answer }. `answer`: a pattern of the code; nil when nothing is said until a time is over,
-- which is short in the units of net/http_server.c and 30 s here.
local M = {}

local MIB = 1024 * 1024

-- Like the beginning of a gzip file: nobody is to look into it.
local GZIP = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03" .. ("\xec\xc1\x01\x01"):rep(2000)


local function get(path, more)
  return "GET " .. path .. " HTTP/1.1\r\nHOSTAUTH" .. (more or "") .. "\r\n"
end


local function post(more, body)
  return "POST PATH HTTP/1.1\r\nHOSTAUTHContent-Type: application/json\r\n" .. more .. "\r\n" .. (body or "")
end


local function headers(count, size)
  local lines = {}
  for i = 1, count do
    lines[i] = ("X-%d: %s\r\n"):format(i, ("v"):rep(size))
  end
  return table.concat(lines)
end


--- Requests with a broken head.
M.HEADS = {
  { "a header of 1 MiB", get("/version", "X: " .. ("x"):rep(MIB) .. "\r\n"), "4%d%d" },
  { "10,000 headers", get("/version", headers(10000, 10)), "4%d%d" },
  { "2,000 small headers", get("/version", headers(2000, 1)), "[24]%d%d" },
  { "a request line of 1 MiB", "GET /" .. ("a"):rep(MIB) .. " HTTP/1.1\r\nHOSTAUTH\r\n", "4%d%d" },
  { "a method of 1 MiB", ("G"):rep(MIB) .. " / HTTP/1.1\r\nHOSTAUTH\r\n", "4%d%d" },
  { "no method", " / HTTP/1.1\r\nHOSTAUTH\r\n", "4%d%d" },
  { "an unknown method", "BREW /version HTTP/1.1\r\nHOSTAUTH\r\n", "405" },
  { "a method in small letters", "get /version HTTP/1.1\r\nHOSTAUTH\r\n", "40[05]" },
  { "CONNECT", "CONNECT 127.0.0.1:22 HTTP/1.1\r\nHOSTAUTH\r\n", "4%d%d" },
  { "TRACE", "TRACE /version HTTP/1.1\r\nHOSTAUTH\r\n", "40[45]" },
  { "OPTIONS *", "OPTIONS * HTTP/1.1\r\nHOSTAUTH\r\n", "40[0345]" },
  { "HTTP/0.9", "GET /version\r\n\r\n", "400" },
  { "HTTP/0.9 to its end", "GET /version\r\n", "400" },
  { "HTTP/1.2", "GET /version HTTP/1.2\r\nHOSTAUTH\r\n", "[245]%d%d" },
  { "HTTP/9.9", "GET /version HTTP/9.9\r\nHOSTAUTH\r\n", "400" },
  { "HTTP/1.1 twice", "GET /version HTTP/1.1 HTTP/1.1\r\nHOSTAUTH\r\n", "4%d%d" },
  { "the preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0", "4%d%d" },
  { "an upgrade to h2c", get("/version", "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
    .. "HTTP2-Settings: AAMAAABkAAQAAP__\r\n"), "[24]%d%d" },
  { "an upgrade to a websocket", get("/version", "Connection: Upgrade\r\nUpgrade: websocket\r\n"), "[24]%d%d" },
  { "a folded header", get("/version", "X: a\r\n b\r\n\tc\r\n"), "[24]%d%d" },
  { "a first header that is folded", "GET /version HTTP/1.1\r\n folded\r\nHOSTAUTH\r\n", "4%d%d" },
  { "a header without a colon", get("/version", "nonsense\r\n"), "400" },
  { "a header without a name", get("/version", ": x\r\n"), "400" },
  { "a space before the colon", get("/version", "X : y\r\n"), "400" },
  { "a NUL in a header", get("/version", "X: a\0b\r\n"), "400" },
  { "a NUL in a header's name", get("/version", "X\0Y: b\r\n"), "400" },
  { "a NUL in the path", "GET /ver\0sion HTTP/1.1\r\nHOSTAUTH\r\n", "4%d%d" },
  { "bytes of all kinds in the path", "GET /\x01\x7f\x80\xff HTTP/1.1\r\nHOSTAUTH\r\n", "4%d%d" },
  { "line ends of one byte", "GET /version HTTP/1.1\nHost: x\nConnection: close\n\n", "[24]%d%d" },
  { "only line ends", ("\r\n"):rep(10000), "400" },
  { "only NULs", ("\0"):rep(100000), "4%d%d" },
  { "no Host", "GET /version HTTP/1.1\r\nAUTH\r\n", "[24]%d%d" },
  { "two Hosts", "GET /version HTTP/1.1\r\nHost: a\r\nHost: b\r\nAUTH\r\n", "400" },
}

--- Requests that lie about the length of the body. PATH is that of a collection.
M.BODIES = {
  { "a body above the limit", post("Content-Length: 4000000\r\n", (" "):rep(4000000)), "413" },
  { "a huge Content-Length", post("Content-Length: 99999999999\r\n", "{}"), nil },
  { "a Content-Length beyond 64 bits", post("Content-Length: 99999999999999999999999\r\n", "{}"), nil },
  { "a body longer than it says", post("Content-Length: 2\r\nConnection: close\r\n", "{}{}{}{}"), "4%d%d" },
  { "a body shorter than it says", post("Content-Length: 100\r\n", "{}"), nil },
  { "a negative Content-Length", post("Content-Length: -1\r\n", "{}"), "400" },
  { "a Content-Length with a plus", post("Content-Length: +2\r\n", "{}"), "400" },
  { "a Content-Length in hex", post("Content-Length: 0x2\r\n", "{}"), "400" },
  { "a Content-Length with a word behind", post("Content-Length: 2 bytes\r\n", "{}"), "400" },
  { "an empty Content-Length", post("Content-Length: \r\n", "{}"), "400" },
  { "a list of Content-Lengths", post("Content-Length: 2, 2\r\n", "{}"), "400" },
  { "two Content-Lengths", post("Content-Length: 2\r\nContent-Length: 40\r\n",
    "{}GET /version HTTP/1.1\r\n\r\n"), "400" },
  { "two Content-Lengths that agree", post("Content-Length: 2\r\nContent-Length: 2\r\n", "{}"), "4%d%d" },
  { "chunks and a Content-Length", post("Content-Length: 2\r\nTransfer-Encoding: chunked\r\n",
    "0\r\n\r\nGET /version HTTP/1.1\r\nHOST\r\n"), "400" },
  { "chunks and a Content-Length before", post("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
    "0\r\n\r\nGET /version HTTP/1.1\r\nHOST\r\n"), "400" },
  { "chunks twice", post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"), "[45]%d%d" },
  { "chunks and identity", post("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", "0\r\n\r\n"),
    "[45]%d%d" },
  { "chunks behind gzip", post("Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n"), "[45]%d%d" },
  { "a coding that is none", post("Transfer-Encoding: xchunked\r\n", "0\r\n\r\n"), "[45]%d%d" },
  { "chunked with a vertical tab", post("Transfer-Encoding: \x0bchunked\r\n", "0\r\n\r\n"), "[45]%d%d" },
  { "chunks of HTTP/1.0", "POST PATH HTTP/1.0\r\nHOSTAUTHTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    "4%d%d" },
  { "a chunk of 2^64 bytes", post("Transfer-Encoding: chunked\r\n", "ffffffffffffffff\r\n{}"), nil },
  { "a chunk of 2^63 bytes", post("Transfer-Encoding: chunked\r\n", "7fffffffffffffff\r\n{}"), nil },
  { "a chunk beyond 64 bits", post("Transfer-Encoding: chunked\r\n", ("f"):rep(40) .. "\r\n{}"), nil },
  { "a negative chunk", post("Transfer-Encoding: chunked\r\n", "-2\r\n{}\r\n0\r\n\r\n"), "4%d%d" },
  { "a chunk with 0x", post("Transfer-Encoding: chunked\r\n", "0x2\r\n{}\r\n0\r\n\r\n"), "4%d%d" },
  { "a chunk whose size is no number", post("Transfer-Encoding: chunked\r\n", "zz\r\n{}\r\n0\r\n\r\n"), "4%d%d" },
  { "a chunk without its end", post("Transfer-Encoding: chunked\r\n", "2\r\n{}XX0\r\n\r\n"), "4%d%d" },
  { "a chunk extension of 1 MiB", post("Transfer-Encoding: chunked\r\n",
    "2;x=" .. ("e"):rep(MIB) .. "\r\n{}\r\n0\r\n\r\n"), "4%d%d" },
  { "chunks of one byte", post("Transfer-Encoding: chunked\r\n", ("1\r\n \r\n"):rep(100000) .. "0\r\n\r\n"), "4%d%d" },
  { "chunks without end", post("Transfer-Encoding: chunked\r\n", ("10000\r\n" .. (" "):rep(65536) .. "\r\n"):rep(60)),
    "413" },
  { "trailers of 1 MiB", post("Transfer-Encoding: chunked\r\n", "2\r\n{}\r\n0\r\nX: " .. ("t"):rep(MIB) .. "\r\n\r\n"),
    "4%d%d" },
  { "a gzip bomb", post(("Content-Encoding: gzip\r\nContent-Length: %d\r\n"):format(#GZIP), GZIP), "4%d%d" },
  { "a gzip bomb in its type", ("POST PATH HTTP/1.1\r\nHOSTAUTHContent-Type: application/gzip\r\nContent-Length: %d\r\n"
    .. "\r\n%s"):format(#GZIP, GZIP), "4[01]5" },
  { "a promise of a body", post("Content-Length: 100\r\nExpect: 100-continue\r\n"), "100" },
  { "a promise of too large a body", post("Content-Length: 99999999\r\nExpect: 100-continue\r\n"), "[14]%d%d" },
  { "an expectation nobody knows", post("Content-Length: 2\r\nExpect: 200-ok\r\n", "{}"), "4%d%d" },
  { "a body of a GET", get("/version", "Content-Length: 26\r\n") .. "GET /smuggled HTTP/1.1\r\n\r\n", "[24]%d%d" },
  { "a body of a HEAD", "HEAD /version HTTP/1.1\r\nHOSTAUTHContent-Length: 5\r\n\r\nhello", "[245]%d%d" },
}

--- Paths and queries that try to be another.
M.PATHS = {
  "http://127.0.0.1/version", "https://evil.example/api", "//evil.example/version", "/../../etc/passwd",
  "/api/../version",
  "/%2e%2e/%2e%2e/etc/passwd", "/api/v1/%2e%2e/%2e%2e/version", "/..%2f..%2fetc%2fpasswd", "/api/v1/namespaces/%00",
  "/api/v1/namespaces/default%00/configmaps", "/version%0d%0aX-Injected:%20yes", "/%0d%0aSet-Cookie:%20a=b",
  "/%", "/%zz",
  "/%c0%ae%c0%ae/", "/api/v1/namespaces/../secrets", "/api/v1/namespaces/a%2fb/secrets", "/api//v1",
  "/" .. ("/"):rep(9000),
  "/" .. ("a/"):rep(9000), "*", "version", "?", "/?" .. ("a&"):rep(9000), "/version?" .. ("%"):rep(9000), "/version#x",
  "/version;x=y", "\\version", "/api\\v1",
}


--- The request for one of the paths.
function M.get(path)
  return "GET " .. path .. " HTTP/1.1\r\nHOSTAUTHConnection: close\r\n\r\n"
end


--- The bytes of a case for a server.
--- @param token string? that goes with it
--- @param path string for PATH
function M.bytes(text, token, path)
  local auth = token and "Authorization: Bearer " .. token .. "\r\n" or ""
  return (text:gsub("HOST", "Host: localhost\r\n", 1):gsub("AUTH", auth, 1):gsub("PATH", path, 1))
end


--- Values of an Authorization header that let nobody in. TOKEN is the one that does.
M.CREDENTIALS = {
  "", "Bearer", "Bearer ", "Bearer  ", "bearer", "TOKEN", "Basic TOKEN", "Token TOKEN",
  "Bearer TOKENx", "Bearer xTOKEN",
  "Bearer TOKEN,", "Bearer TOKEN\0", "Bearer TOKEN\0x", "Bearer TOKEN\tx", "Bearer \"TOKEN\"",
  "Bearer 'TOKEN'", "Bearer %54OKEN", "Bearer undefined", "Bearer null", "Bearer a.b.c", "Bearer ..",
  "Bearer eyJhbGciOiJub25lIn0.e30.",
  "Bearer " .. ("x"):rep(30000), "Bearer " .. ("a."):rep(10000), "Negotiate x", "Digest username=\"admin\"",
  "AWS4-HMAC-SHA256 x", "\xff\xfe",
}


return M
