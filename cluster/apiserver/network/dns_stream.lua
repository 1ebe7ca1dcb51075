--- Names over TCP: messages with their length in front, several on a connection.
---
--- A client may send further queries before the first is answered; answers come as they are ready. A connection is
--- closed when no query has come for ten seconds. While its client does not read, its queries wait.
---
--- Rules: RFC 1035 section 4.2.2, RFC 7766.
local host = require "cluster.host"
local tcp = require "cluster.tcp"

local M = {}

local MESSAGE_MAX <const> = 65535
local CONNECTIONS_MAX <const> = 256 -- one more is closed
local UNDER_WAY_MAX <const> = 64 -- queries of a connection
local UNREAD_MAX <const> = 256 * 1024 -- bytes that wait for a client
local IDLE_SECONDS <const> = 10


-- The message at a place, or nil while it is not whole. @return string|nil message, integer the place behind it
local function message_at(bytes, at)
  if #bytes - at + 1 < 2 or #bytes - at - 1 < (">I2"):unpack(bytes, at) then
    return nil, at
  end
  return (">s2"):unpack(bytes, at)
end


-- A client: { connection =, came = bytes, under_way = queries, is_full = it has much to read, has_ended = it asks no
-- more, is_served =, is_closed =, timer = }.
local function close(server, client)
  if not client.is_closed then
    client.is_closed = true
    client.timer:stop()
    client.connection:close()
    server.count = server.count - 1
  end
end


local function wait(server, client)
  client.timer = host.after(IDLE_SECONDS, function()
    close(server, client)
  end)
end


local function send(client, answer)
  if not client.is_closed then
    client.is_full = client.connection:write((">s2"):pack(answer)) > UNREAD_MAX
  end
end


-- True for a client with many queries under way, or many answers to read: nothing is read from it.
local function is_busy(client)
  return client.is_full or client.under_way >= UNDER_WAY_MAX
end


local serve -- one calls the other


-- Answers a query, now or later; what is no query ends the connection.
local function answer(server, client, query)
  client.timer:stop()
  wait(server, client)
  client.under_way = client.under_way + 1
  local now, is_asked = server.answer(query, function(later)
    client.under_way = client.under_way - 1
    send(client, later)
    serve(server, client)
  end, MESSAGE_MAX)
  if now then
    client.under_way = client.under_way - 1
    send(client, now)
  elseif not is_asked then
    close(server, client)
  end
end


-- Answers what has come.
function serve(server, client)
  if client.is_served then
    return -- further out already
  end
  client.is_served = true
  local query, at = message_at(client.came, 1)
  while query and not client.is_closed and not is_busy(client) do
    client.came = client.came:sub(at)
    answer(server, client, query)
    query, at = message_at(client.came, 1)
  end
  client.is_served = false
  if client.is_closed then
    return
  end
  client.connection:pause(is_busy(client))
  if client.has_ended and client.under_way == 0 and not client.is_full then
    client.connection:end_output()
  end
end


local function accept(server, connection)
  if server.count == CONNECTIONS_MAX then
    return nil
  end
  server.count = server.count + 1
  local client = { connection = connection, came = "", under_way = 0, is_full = false, has_ended = false }
  wait(server, client)
  return {
    data = function(bytes)
      client.came = client.came .. bytes
      serve(server, client)
    end,
    ended = function()
      client.has_ended = true
      serve(server, client)
    end,
    drained = function()
      client.is_full = false
      serve(server, client)
    end,
    closed = function()
      close(server, client)
    end,
  }
end


--- Serves names at an address of the pods' network.
--- @param answer_query function(bytes, reply, most): M:answer of dns.lua
--- @return userdata|nil listener, or nil and why not
function M.serve(address, port, answer_query)
  local server = { answer = answer_query, count = 0 }
  return tcp.listen {
    address = address,
    port = port,
    accepted = function(connection)
      return accept(server, connection)
    end,
  }
end


--- Asks a server.
--- @param address string  @param port integer  @param query string
--- @param fn function(bytes) called once from the loop, unless the connection is closed before: the first message that
---   comes; nil: none did
--- @return userdata|nil connection; nil: there can be none
function M.ask(address, port, query, fn)
  if address:find(":", 1, true) then
    return nil -- IPv4 only
  end
  local came, connection = "", nil
  connection = tcp.connect {
    address = address,
    port = port,
    data = function(bytes)
      came = came .. bytes
      local message = message_at(came, 1)
      if message then
        connection:close()
        fn(message)
      end
    end,
    closed = function()
      fn(nil)
    end,
  }
  if connection then
    connection:write((">s2"):pack(query))
  end
  return connection
end


return M
