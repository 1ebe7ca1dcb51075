---@meta cluster.process
-- Stubs for editors (lua-language-server) of `require "cluster.process"`: local processes, for the
-- host's own Lua. Never loaded.
-- luacheck: ignore 241
error "moonloop/meta is for editors; require 'cluster.process' instead"

---@class cluster.process
local process = {}

---@class cluster.process.Options
---@field argv string[] a name without '/' is looked up in the PATH of env
---@field env string[] "NAME=value"; there are no others
---@field directory? string where it starts
---@field count_max? integer processes it may have below it, itself counted; 512
---@field container? cluster.process.Container nil: it sees what the host sees
---@field beside? cluster.process.Process in the container of this one, which has started
---@field network? cluster.network.Pod of a container; nil: the machine's
---@field memory? cluster.process.Memory of a container: made with the same network
---@field input? boolean its standard input is what Process:write writes; it is empty otherwise
---@field terminal? cluster.process.Terminal for input, output and error; nil: it has none
---@field started? fun() once it runs
---@field output fun(bytes: string) standard output and error, in pieces as they come
---@field errors? fun(bytes: string) standard error alone; not with a terminal
---@field drained? fun() less than 64 KiB of input wait again
---@field ended fun(how: cluster.process.End) once, after the last output; nothing of it runs any more

--- A process with namespaces and a root of its own: cluster/host/process_root.c.
---@class cluster.process.Container
---@field root string an existing empty folder, which stays empty for all others
---@field hostname string
---@field user integer the number that it sees as its own
---@field group integer
---@field read_only? boolean the root, but not the mounts
---@field mounts cluster.process.Mount[] parents come first

---@class cluster.process.Mount
---@field source? string a folder or a file of the machine; nil: a folder is made at the target, no more
---@field subpath? string of the source; made if it is missing; it cannot lead out of the source
---@field target string absolute, without "." and ".."; made if it is missing
---@field read_only? boolean

--- A terminal of the process's own; in a container, one of the container's. Without a size it is 0: unknown yet.
---@class cluster.process.Terminal
---@field columns? integer
---@field rows? integer

---@class cluster.process.End
---@field code integer exit code, 128 + signal, or 128 when it did not start
---@field signal? integer that ended it
---@field started boolean false: there is no such command, or it cannot be run; see message
---@field too_many boolean it was killed for having too many processes
---@field message string why it did not start, or was killed; else ""

--- Starts a command, without a shell. Callbacks come from the event loop. Processes that it leaves running when it ends
--- are killed, daemons too.
---@param options cluster.process.Options
---@return cluster.process.Process|nil process nil when there are no descriptors, or too long a command
---@return string? message
function process.start(options) end

---@class cluster.process.Process
local Process = {}

--- To all processes of its group. Nothing happens once it has ended.
---@param number integer
function Process:signal(number) end

--- SIGTERM, and after `seconds` everything is killed; at once when that is 0. Asked again, the
--- earlier time counts.
---@param seconds number
function Process:stop(seconds) end

--- While paused, output stays where it is and writers wait; `ended` waits for it.
---@param paused boolean
function Process:pause(paused) end

--- Writes to its standard input. Bytes that it does not read because it has ended, or closed its input, are dropped.
---@param bytes string
---@return integer|nil waiting bytes that wait in this process; nil when more than 4 MiB would: nothing was taken
function Process:write(bytes) end

--- It reads the end of its input behind what was written. Nothing happens with a terminal.
function Process:end_input() end

--- Gives its terminal another size, and it gets SIGWINCH.
---@param columns integer
---@param rows integer
function Process:resize(columns, rows) end

---@return integer|nil pid nil when it does not run
function Process:pid() end

--- Tests if the machine lets its user have containers: makes one, and waits for it some milliseconds.
---@param folder string an existing empty one
---@return true|nil, string? message
function process.try_container(folder) end

--- Tests if somebody listens there. `fn` gets 0, or nil and why not.
---@param address string "127.0.0.1"; no names
---@param port integer
---@param seconds number
---@param fn fun(zero: integer|nil, message: string?)
---@return true|nil, string? message why nothing was started; then fn is not called
function process.connect(address, port, seconds, fn) end

--- Sends a GET; `fn` gets the status of the answer. Certificates are not verified, redirects not followed.
---@param url string
---@param headers string[][] { { name, value }, … }
---@param seconds number
---@param fn fun(status: integer|nil, message: string?)
function process.get(url, headers, seconds, fn) end

---@class cluster.process.MemoryFolder
---@field path string an existing folder, absolute; the containers have it in memory there
---@field bytes integer that its files may have; 0: half of the machine's memory
---@field mode integer permissions, 0 to 07777

--- Folders in memory that the containers of a pod share.
---@class cluster.process.Memory
local Memory = {}

--- They live until this is called, or the object is collected, and the last of these containers has ended.
function Memory:close() end

--- Makes folders in memory; takes some milliseconds.
---@param folders cluster.process.MemoryFolder[]
---@param network? cluster.network.Pod the containers' own
---@return cluster.process.Memory|nil memory, string? message why the machine does not allow it
function process.memory(folders, network) end

--- A folder of ours, whose path no object of the API named: links in it are followed. A missing one is made for its
--- owner alone, in a folder that is there.
---@param path string
---@return cluster.process.Folder|nil folder, string? message
function process.open_folder(path) end

--- Files in a folder of ours. Paths are relative to it and may come from objects of the API: none leads out of it, and
--- links in it are not followed.
---@class cluster.process.Folder
local Folder = {}

--- Makes a folder, and those above it, for their owner only.
---@param path string
---@param mode? integer permissions that the folder itself has then, 0 to 07777
---@return true|nil, string? message
function Folder:make_folder(path, mode) end

--- Removes a file, or a folder with all that is in it; fine when it is not there.
---@param path string
---@return true|nil, string? message
function Folder:remove(path) end

--- Removes a file or a link, and no folder; fine when it is not there.
---@param path string
---@return true|nil, string? message
function Folder:unlink(path) end

---@param path string
---@param text string
---@param mode integer permissions, 0 to 0777
---@return true|nil, string? message
function Folder:write(path, text, mode) end

--- The last `max` bytes of a regular file, at most 4096.
---@param path string
---@param max integer
---@return string|nil text nil when there is no such file
function Folder:read_end(path, max) end

--- A symbolic link at `path`; what is there already stays.
---@param target string
---@param path string
---@return true|nil, string? message
function Folder:link(target, path) end

--- A symbolic link at `path`, in one step in place of the link or file that is there.
---@param target string
---@param path string
---@return true|nil, string? message
function Folder:replace_link(target, path) end

--- Does something exist there, a link as well?
---@param path string
---@return boolean
function Folder:has(path) end

--- Does a folder exist there, and no link to one?
---@param path string
---@return boolean
function Folder:has_folder(path) end

--- The size of the file system that it is in.
---@return integer|nil bytes
function Folder:capacity() end

--- The machine: its first IPv4 address that others could reach (nil when it has none), its
--- architecture as Kubernetes calls it ("amd64"), and the kernel's release.
---@return { address?: string, architecture: string, kernel: string }
function process.machine() end

--- The numbers of the user and of the group that everything runs as.
---@return integer user, integer group
function process.user() end

--- The path of the program that runs.
---@return string|nil path
---@return string? why there is none: its file was replaced or removed
function process.executable() end

return process
