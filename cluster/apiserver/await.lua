--- Runs what may wait for a webhook on behalf of a request.
---
--- Others are served meanwhile, so the objects that the request read may have changed when it goes on:
--- `request.has_waited` tells those who store; see verbs/init.lua. A request whose client has gone ends here.


--- @param request table  @param fn function called with what follows; returns two values at most
--- @return any first, any second what fn returned
return function(request, fn, ...)
  request.has_waited = true
  request.reply.on_close = function() request.is_gone = true end
  local first, second = fn(...)
  if request.is_gone then
    error("the client has gone", 0)
  end
  return first, second
end
