--- Lets others have their turn, when the request has had its own for long. For loops over what a client is shown.
---
--- Not for what checks and writes in one step, nor while a table is filled that others use. A call from within the
--- process goes on: its caller may rely on nothing to change before it returns.
local await = require "cluster.apiserver.await"
local host = require "cluster.host"


return function(request)
  if request.client then
    await(request, host.give_way)
  end
end
