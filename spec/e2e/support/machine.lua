-- Helpers for specs that run servers in pods of a `moonloop dev` of their own: a client, the user who runs it, and the
-- files and processes that are left on the machine afterwards.
local host = require "spec.e2e.support.host"
local shell = require "spec.e2e.support.shell"
local wait = require "spec.e2e.support.wait"

local M = {}

local KUBECTL = os.getenv "KUBECTL" or "kubectl"
local NOBODY = 65534
local FOLDERS = "moonloop-open."

--- Are these specs run by root, who can be anybody else?
M.is_root = shell.run "id -u" == "0\n"

--- For dev.start: what runs a command as an ordinary user.
M.AS_NOBODY = ("setpriv --reuid=%d --regid=%d --clear-groups"):format(NOBODY, NOBODY)

--- A folder that other users may enter, as those of a run may not be, with a copy of the binary, and `data`, a folder
--- of an ordinary user's.
function M.open_folder()
  local folder = shell.must(("mktemp -d -t %sXXXXXX"):format(FOLDERS)):match "%S+"
  shell.must(("chmod 755 %s && cp %s %s/moonloop && mkdir %s/data"):format(
    folder, shell.quote(host.binary), folder, folder))
  if M.is_root then
    shell.must(("chown %d %s/data"):format(NOBODY, folder))
  end
  return folder
end


--- Files of the machine's: those that a container's root, or its user, could have written if it were not held.
function M.files()
  return shell.must "find / -maxdepth 1; find /etc /usr /opt /srv /home -xdev; ls -A ~"
end


--- Returns the ordinary user's files, but for those in /proc and in folders of open_folder's: other specs have some at
--- the same time. That user runs the search: it can own files only in folders that it may enter.
function M.files_of_nobody()
  return shell.run(("%s find / -xdev \\( -name '%s*' -o -path /proc \\) -prune -o -user %d -print 2>/dev/null"):format(
    M.AS_NOBODY, FOLDERS, NOBODY))
end


--- kubectl on a server of dev.start's; it must succeed; returns what it prints.
function M.kubectl(server, ...)
  return shell.must(("KUBECONFIG=%s %s"):format(server.kubeconfig, shell.line { KUBECTL, ... }))
end


--- Applies a manifest with a Job `client`, and waits for its end; returns what that printed.
function M.client(server, manifest)
  M.kubectl(server, "apply", "-f", manifest)
  wait.till("the client to end", 60, function()
    local job = server:get "/apis/batch/v1/namespaces/default/jobs/client"
    return (job.status or {}).conditions, server:story()
  end)
  return M.kubectl(server, "logs", "job/client")
end


-- Returns all processes but zombies.
local function all_processes()
  local all = {}
  for line in shell.must "ps -e -o pid=,ppid=,stat=,lstart=,args=":gmatch "[^\n]+" do
    local pid, parent, state, since, command = line:match "^%s*(%d+)%s+(%d+)%s+(%S+)%s+(.-%d%d%d%d) (.*)$"
    if state:sub(1, 1) ~= "Z" then
      all[#all + 1] = { pid = pid, parent = parent, since = since, command = command }
    end
  end
  return all
end


--- The processes that one has started, itself too, those of its pods as well.
---@return table[] processes { pid =, parent =, since =, command = }
function M.processes(pid)
  local found, known, all = {}, {}, all_processes()
  repeat
    local before = #found
    for _, process in ipairs(all) do
      local own = process.pid == tostring(pid) or known[process.parent]
      if own and not known[process.pid] then
        known[process.pid] = true
        found[#found + 1] = process
      end
    end
  until #found == before
  return found
end


--- The command lines of those that are still there.
function M.left(processes)
  local now, left = {}, {}
  for _, process in ipairs(all_processes()) do
    now[process.pid .. process.since] = true
  end
  for _, process in ipairs(processes) do
    left[#left + 1] = now[process.pid .. process.since] and process.command or nil
  end
  return left
end


return M
