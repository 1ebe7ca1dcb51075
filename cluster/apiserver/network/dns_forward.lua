--- Names that the cluster does not have: asks the machine's resolvers, and passes on what they answer. Called by
--- dns.lua.
---
--- A query goes with a number of its own from a socket of its own, which gets datagrams of that resolver only; what has
--- not the number and the question is no answer. One without an answer is sent again, to the next resolver if there is
--- one: all together takes less than the five seconds that clients wait. Where a client that asks by TCP would get an
--- answer that is cut, the resolver is asked again by TCP.
local dns_message = require "cluster.apiserver.network.dns_message"
local dns_stream = require "cluster.apiserver.network.dns_stream"
local host = require "cluster.host"
local network = require "cluster.network"

local M = {}
M.__index = M

local PORT = 53
local TRIES, TRY_SECONDS = 3, 1.5
local RESOLVERS_MAX = 3
local UNDER_WAY_MAX = 256 -- queries; one more fails


--- @param resolvers function() -> list of addresses, the best first
function M.new(resolvers)
  return setmetatable({ resolvers = resolvers, under_way = 0 }, M)
end


-- Of an exchange: { sent = bytes, id =, query =, resolvers =, tries =, sockets = list, timer =, reply =, by_tcp = }.
local function close_sockets(exchange)
  for _, socket in ipairs(exchange.sockets) do
    socket:close()
  end
  exchange.sockets = {}
end


local function finish(self, exchange, answer)
  exchange.timer:stop()
  close_sockets(exchange)
  self.under_way = self.under_way - 1
  exchange.reply(answer or dns_message.write(exchange.query, dns_message.FAILED, {}))
end


local send -- one calls the other


-- Asks a resolver by TCP. If that fails, the answer that is cut has to do.
local function ask_by_tcp(self, exchange, address, cut)
  close_sockets(exchange)
  exchange.timer:stop()
  local connection = dns_stream.ask(address, PORT, exchange.sent, function(bytes)
    local is_answer = bytes and dns_message.rcode_of(bytes, exchange.id, exchange.query)
    finish(self, exchange, is_answer and bytes or cut)
  end)
  exchange.timer = host.after(connection and TRY_SECONDS or 0, function()
    if connection then
      connection:close()
    end
    finish(self, exchange, cut)
  end)
end


local function hear(self, exchange, address, bytes)
  local rcode = dns_message.rcode_of(bytes, exchange.id, exchange.query)
  if not rcode then
    return
  end
  local is_of_no_use = rcode == dns_message.FAILED or rcode == dns_message.REFUSED
  if is_of_no_use and exchange.tries < #exchange.resolvers then
    exchange.timer:stop()
    send(self, exchange) -- to another one
  elseif exchange.by_tcp and dns_message.is_cut(bytes) then
    ask_by_tcp(self, exchange, address, bytes)
  else
    finish(self, exchange, bytes)
  end
end


function send(self, exchange)
  local resolvers = exchange.resolvers
  local address = resolvers[exchange.tries % #resolvers + 1]
  local socket = network.outside {
    address = address,
    port = PORT,
    answer = function(bytes)
      hear(self, exchange, address, bytes)
    end,
  }
  exchange.tries = exchange.tries + 1
  exchange.timer = host.after(socket and TRY_SECONDS or 0, function()
    if exchange.tries < TRIES then
      send(self, exchange)
    else
      finish(self, exchange)
    end
  end)
  if socket then
    table.insert(exchange.sockets, socket)
    socket:send(exchange.sent)
  end
end


--- Passes a query on.
--- @param query table as message.read gave it
--- @param bytes string the message itself
--- @param reply function(bytes) with the answer, later or at once
--- @param by_tcp any true where the client asks by TCP
function M:ask(query, bytes, reply, by_tcp)
  local resolvers = { table.unpack(self.resolvers(), 1, RESOLVERS_MAX) }
  if #resolvers == 0 or self.under_way >= UNDER_WAY_MAX then
    reply(dns_message.write(query, dns_message.FAILED, {}))
    return
  end
  local id = (">I2"):unpack(host.secret(2))
  self.under_way = self.under_way + 1
  send(self, {
    id = id,
    sent = dns_message.with_id(bytes, id),
    query = query,
    resolvers = resolvers,
    tries = 0,
    sockets = {},
    by_tcp = by_tcp,
    reply = function(answer)
      reply(dns_message.with_id(answer, query.id))
    end,
  })
end


return M
