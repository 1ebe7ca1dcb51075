/* cluster.process, and on it the runtime of cluster/kubelet/process_runtime.lua. The tests
 * are Lua. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lua_process_unit.h"

#include "net/http_routes.h"

static void test_script_process_runs_commands(void **state)
{
    lua_wait(*state, "local running = run('echo $A; pwd; exit 3', function(said, how)\n"
                     "  equal('1\\n/usr\\n', said)\n"
                     "  equal({ code = 3, started = true, too_many = false, message = '' }, how)\n"
                     "  done()\n"
                     "end, { env = { PATH, 'A=1' }, directory = '/usr' })\n"
                     "assert(running:pid() == nil)\n");
    lua_wait(*state, "run('kill -9 $$', function(_, how)\n"
                     "  equal({ 137, 9 }, { how.code, how.signal })\n"
                     "  done()\n"
                     "end)\n");
    lua_wait(*state, "run('', function(_, how)\n"
                     "  equal({ code = 128, started = false, too_many = false,\n"
                     "    message = 'exec: \"nope\": executable file not found in $PATH' }, how)\n"
                     "  done()\n"
                     "end, { argv = { 'nope' } })\n");
}

static void test_script_process_has_an_input_and_a_terminal(void **state)
{
    skip_without_terminals();
    /* It reads only when it is told to: before, the pipe takes a part of what is written. */
    lua_wait(*state,
             "local errors, drained, running = {}, 0, nil\n"
             "local script = 'trap go=1 USR1; echo bad >&2; until [ $go ]; do :; done; wc -c'\n"
             "running = run(script, function(said, how)\n"
             "  equal({ '2100000\\n', 'bad\\n', 1, 0 },\n"
             "    { said, table.concat(errors), drained, how.code })\n"
             "  equal(0, running:write 'x')\n"
             "  running:end_input() running:resize(1, 2)\n"
             "  done()\n"
             "end, { input = true, drained = function() drained = drained + 1 end,\n"
             "  errors = function(bytes)\n"
             "    table.insert(errors, bytes)\n"
             "    assert(running:write(('x'):rep(2100000)) > 1000000)\n"
             "    assert(running:write(('x'):rep(4000000)) == nil)\n"
             "    running:end_input() running:signal(10)\n"
             "  end })\n");
    lua_wait(*state, "local said, running, is_resized = '', nil, false\n"
                     "running = assert(process.start { env = { PATH }, input = true,\n"
                     "  argv = { 'sh', '-c', 'stty size; read line; stty size; echo $line >&2' },\n"
                     "  terminal = { rows = 3, columns = 4 },\n"
                     "  output = function(bytes)\n"
                     "    said = said .. bytes\n"
                     "    if not is_resized and said:find '^3 4\\r\\n' then\n"
                     "      is_resized = true\n"
                     "      running:resize(6, 5)\n"
                     "      running:write 'typed\\n'\n"
                     "    end\n"
                     "  end,\n"
                     "  ended = function(how)\n"
                     "    equal({ true, 0 }, { is_resized, how.code })\n"
                     "    assert(said:find '5 6\\r\\ntyped\\r\\n$', said)\n"
                     "    done()\n"
                     "  end })\n");
}

static void test_script_process_handles_outlive_the_process(void **state)
{
    lua_wait(*state, "local running\n"
                     "running = run('sleep 100', function(_, how)\n"
                     "  equal(15, how.signal)\n"
                     "  running:stop(1) running:signal(1) running:pause(true)\n"
                     "  equal(host.json.null, running:pid() or host.json.null)\n"
                     "  done()\n"
                     "end)\n"
                     "running:pause(true) running:pause(false)\n"
                     "running:stop(60)\n");
}

static void test_script_process_raises_on_misuse(void **state)
{
    lua(*state, "local function nothing() end\n"
                "local good = { argv = { 'true' }, env = {}, output = nothing, ended = nothing }\n"
                "for name, bad in pairs { argv = {}, env = 'x', output = 1, ended = {}, count_max "
                "= -1,\n"
                "  errors = 1, drained = 'x', terminal = 1 } do\n"
                "  local options = {}\n"
                "  for key, value in pairs(good) do options[key] = value end\n"
                "  options[name] = bad\n"
                "  assert(not pcall(process.start, options), name)\n"
                "end\n"
                "for _, bad in ipairs { { rows = -1 }, { columns = 65536 }, { rows = 'x' } } do\n"
                "  good.terminal = bad\n"
                "  assert(not pcall(process.start, good))\n"
                "end\n"
                "good.terminal, good.argv = nil, { 'a\\0b' }\n"
                "assert(not pcall(process.start, good))\n"
                "assert(not pcall(process.connect, 'localhost', 1, 1, nothing))\n"
                "assert(not pcall(process.connect, '127.0.0.1', 0, 1, nothing))\n"
                "assert(not pcall(process.get, 'http://x', { 'a' }, 1, nothing))\n");
}

static void test_script_process_is_killed_with_its_state(void **state)
{
    lua(*state, "local function fail() error 'called' end\n"
                "assert(process.start { argv = { 'sleep', '100' }, env = { PATH }, output = fail,\n"
                "  ended = fail })\n"
                "process.connect('192.0.2.1', 80, 100, fail)\n"
                "process.get('http://192.0.2.1/', {}, 100, fail)\n"); /* and teardown */
}

static void answer_probe(void *context, struct ml_http_page *page)
{
    (void)context;
    page->status = strcmp(page->query, "bad") == 0 ? 500 : 200;
}

static struct ml_http_routes *serve(struct fixture *f)
{
    struct ml_http_routes *routes;
    struct ml_err err = ML_ERR_INIT;
    char port[32];
    assert_int_equal(ml_http_routes_new(f->net.loop, "127.0.0.1:0", &routes, &err), 0);
    ml_http_routes_add(routes, "/up", answer_probe, NULL);
    snprintf(port, sizeof port, "PORT = %d", ml_http_server_port(ml_http_routes_server(routes)));
    lua(f, port);
    return routes;
}

static void test_script_process_looks_whether_somebody_answers(void **state)
{
    struct fixture *f = *state;
    struct ml_http_routes *routes = serve(f);
    lua_wait(f, "process.connect('127.0.0.1', PORT, 5, function(zero, why)\n"
                "  equal({ 0 }, { zero, why }) done()\n"
                "end)\n");
    lua_wait(f, "process.get(('http://127.0.0.1:%d/up?bad'):format(PORT), { { 'X', 'y' } }, 5,\n"
                "  function(code, why) equal({ 500 }, { code, why }) done() end)\n");
    ml_http_routes_free(routes);
    lua_wait(f,
             "process.connect('127.0.0.1', PORT, 5, function(zero, why)\n"
             "  assert(zero == nil)\n"
             "  equal(('connect to 127.0.0.1:%d: Connection refused'):format(PORT), why) done()\n"
             "end)\n");
    lua_wait(f, "process.get(('http://127.0.0.1:%d/up'):format(PORT), {}, 5, function(code, why)\n"
                "  assert(code == nil and why:find 'refused', why) done()\n"
                "end)\n");
}

static void test_script_process_keeps_folders(void **state)
{
    lua(*state, "local base = assert(process.open_folder(FOLDER))\n"
                "assert(base:make_folder 'a/b c' and base:make_folder '/a//b c/')\n"
                "assert(base:write('a/b c/f', 'text', 384))\n"
                "assert(base:link('/', 'a/root') and base:link('/x', 'a/root'))\n"
                "equal('text', (read(FOLDER .. '/a/b c/f')))\n"
                "equal('xt', base:read_end('a/b c/f', 2))\n"
                "assert(base:has 'a/b c/f' and not base:has 'a/g' and base:has 'a/root')\n"
                "assert(base:has_folder 'a' and not base:has_folder 'a/root')\n"
                "assert(not base:make_folder 'a/b c/f/g')\n"
                "assert(not base:unlink 'a' and base:unlink 'a/b c/f' and base:unlink 'a/b c/f')\n"
                "assert(base:remove 'a' and not base:has 'a')\n"
                "assert(base:remove 'a' and exists '/usr')\n"
                "equal('No such file or directory', (select(2, base:write('a/b', '', 0))))\n");
}

static void test_script_process_replaces_links(void **state)
{
    lua(*state, "local base = assert(process.open_folder(FOLDER))\n"
                "assert(base:make_folder('a/b', 1023) and base:write('a/f', 'old', 384))\n"
                "assert(base:write('a/b/f', 'new', 384) and base:link('f', 'a/l'))\n"
                "equal('old', (read(FOLDER .. '/a/l')))\n"
                "assert(base:replace_link('b/f', 'a/l'))\n"
                "equal('new', (read(FOLDER .. '/a/l')))\n"
                "assert(not base:has 'a/l_tmp' and base:replace_link('f', 'a/b/f'))\n"
                "assert(base:link('/', 'a/out') and not base:replace_link('x', 'a/out/x'))\n"
                "assert(not base:replace_link('x', 'a/b') and base:has_folder 'a/b')\n"
                "assert(not base:replace_link('x', 'none/x'))\n");
}

static void test_script_process_gives_folders_a_mode(void **state)
{
    struct fixture *f = *state;
    char path[256];
    struct stat info;
    lua(f, "base = assert(process.open_folder(FOLDER))\n"
           "assert(base:make_folder('m/n', 511) and base:make_folder('m/n'))\n"
           "assert(base:make_folder 'k' and base:make_folder('k', 1535))\n"
           "assert(base:link('m', 'l') and not base:make_folder('l', 511))\n");
    snprintf(path, sizeof path, "%s/m/n", f->folder);
    assert_true(stat(path, &info) == 0 && (info.st_mode & 07777) == 0777);
    snprintf(path, sizeof path, "%s/m", f->folder);
    assert_true(stat(path, &info) == 0 && (info.st_mode & 07777) == 0700);
    snprintf(path, sizeof path, "%s/k", f->folder);
    assert_true(stat(path, &info) == 0 && (info.st_mode & 07777) == 02777);
}

static void test_script_process_says_why_there_is_no_memory(void **state)
{
    lua(*state,
        "local memory, why = process.memory({ { path = FOLDER .. '/none', bytes = 1, mode = 0 } "
        "})\n"
        "assert(not memory and type(why) == 'string', why)\n"
        "local many = {}\n"
        "for i = 1, 101 do many[i] = { path = FOLDER, bytes = 1, mode = 0 } end\n"
        "equal('a pod has more than 100 of them', (select(2, process.memory(many))))\n"
        "for _, wrong in ipairs { { bytes = 1, mode = 0 }, { path = '/', bytes = -1, mode = 0 },\n"
        "  { path = '/', bytes = 0, mode = 4096 }, { path = '/', mode = 0 } } do\n"
        "  assert(not pcall(process.memory, { wrong }))\n"
        "end\n"
        "assert(not pcall(process.memory, {}, 'a network'))\n"
        "assert(not pcall(process.start, { argv = { 'true' }, env = {}, memory = {},\n"
        "  output = print, ended = print }))\n");
}

/* No path that an object names leads out of a folder of ours: not by "..", by a link that stands in
 * it, or as an absolute one. `precious` stays as it is. */
static void test_script_process_folders_keep_hostile_paths_in(void **state)
{
    lua(*state,
        "local all = assert(process.open_folder(FOLDER))\n"
        "local base = assert(process.open_folder(FOLDER .. '/mine'))\n"
        "assert(all:make_folder 'other' and all:write('other/precious', 'kept', 384))\n"
        "assert(base:make_folder 'sub' and base:link(FOLDER .. '/other', 'out'))\n"
        "assert(base:link('../../other', 'sub/up') and base:link(FOLDER, 'top'))\n"
        "assert(base:link(FOLDER .. '/other/precious', 'file'))\n"
        "for _, path in ipairs { '../other', 'sub/../../other', '..', 'out', 'sub/up', "
        "'top/other',\n"
        "  './../other', 'sub/.././../other' } do\n"
        "  for _, name in ipairs { '/precious', '/new', '/' } do\n"
        "    assert(not base:make_folder(path .. name .. '/x'), path)\n"
        "    assert(not base:write(path .. name, 'lost', 384), path)\n"
        "    assert(not base:link('/', path .. name .. 'x'), path)\n"
        "    assert(not base:replace_link('/', path .. name .. 'x'), path)\n"
        "    assert(not base:has(path .. name) and not base:read_end(path .. name, 9), path)\n"
        "    base:remove(path .. name) base:unlink(path .. name)\n"
        "  end\n"
        "end\n"
        "assert(not base:write('file', 'lost', 384) and not base:read_end('file', 9))\n"
        "for _, path in ipairs { '', '.', '..', '/', 'sub/..', 'sub/.' } do\n"
        "  assert(not base:remove(path) and not base:unlink(path), path)\n"
        "end\n"
        "assert(base:remove 'out' and base:remove 'file' and base:remove 'sub' and base:remove "
        "'top')\n"
        "assert(base:make_folder(FOLDER .. '/other') and base:has(FOLDER .. '/other'))\n"
        "equal('kept', (read(FOLDER .. '/other/precious')))\n"
        "assert(not exists(FOLDER .. '/other/new'))\n");
}

/* Deeper than there are descriptors and than a path may be long, and with folders that forbid their
 * owner everything. */
static void test_script_process_removes_what_containers_leave(void **state)
{
    struct fixture *f = *state;
    char start[128];
    lua(f, "base = assert(process.open_folder(FOLDER)) assert(base:make_folder 'v/shut/in')\n"
           "assert(base:write('v/shut/in/f', 'x', 0))\n");
    snprintf(start, sizeof start, "%s/v", f->folder);
    int at = open(start, O_PATH | O_DIRECTORY | O_CLOEXEC);
    for (int depth = 0; depth < 3000; depth++) {
        assert_int_equal(mkdirat(at, "deep", 0700), 0);
        int next = openat(at, "deep", O_PATH | O_DIRECTORY | O_CLOEXEC);
        close(at);
        assert_true(next >= 0);
        at = next;
    }
    close(at);
    snprintf(start, sizeof start, "%s/v/shut", f->folder);
    assert_int_equal(chmod(start, 0), 0);
    lua(f, "assert(base:remove 'v' and not base:has 'v')");
}

/* A volume is ours by the record beside the folders, never by what an object says. */
static void test_volumes_are_ours_by_their_record(void **state)
{
    lua(*state, "local volumes = require 'cluster.controllers.persistentvolume_folders'\n"
                "local base = assert(process.open_folder(FOLDER))\n"
                "local folders = volumes.open(FOLDER .. '/volumes')\n"
                "local function volume(name, path)\n"
                "  local object = { metadata = { name = name },\n"
                "    spec = { hostPath = { path = path or FOLDER .. '/volumes/' .. name } } }\n"
                "  volumes.sign(object)\n"
                "  return object\n"
                "end\n"
                "assert(base:make_folder 'volumes/pvc-0' and not folders:is_ours(volume 'pvc-0'))\n"
                "assert(folders:record 'pvc-1' and folders:ensure 'pvc-1')\n"
                "assert(folders:is_ours(volume 'pvc-1') and exists(FOLDER .. '/volumes/pvc-1'))\n"
                "assert(not folders:is_ours(volume('pvc-1', '/usr')))\n"
                "assert(not folders:is_ours(volume('pvc-2', FOLDER .. '/volumes/pvc-1')))\n"
                "assert(folders:remove 'pvc-1' and not folders:is_ours(volume 'pvc-1'))\n"
                "assert(folders:record 'pvc-3' and base:make_folder 'other')\n"
                "assert(base:link(FOLDER .. '/other', 'volumes/pvc-3'))\n"
                "assert(not folders:ensure 'pvc-3')\n"
                "assert(folders:remove 'pvc-3' and exists(FOLDER .. '/other'))\n");
}

/* ---- the runtime ---- */

static void test_runtime_runs_a_container_and_keeps_its_log(void **state)
{
    lua_wait(*state,
             "local runtime = open_runtime { variables = { A = '1', B = '2' } }\n"
             "local asked = new_run 'echo $A $B $HOSTNAME; pwd; echo $MOONLOOP_ROOT; exit 3'\n"
             "asked.variables = { B = 'own' }\n"
             "asked.on_exit = function(exit)\n"
             "  equal({ code = 3 }, exit)\n"
             "  local folder = FOLDER .. '/pods/u-1/main'\n"
             "  equal('1 own p\\n' .. folder .. '\\n' .. folder .. '\\n', text_of(asked))\n"
             "  assert(exists(folder))\n"
             "  runtime:forget(asked.pod)\n"
             "  assert(not exists(FOLDER .. '/pods/u-1'))\n"
             "  assert(not logs:find(asked.pod, 'main'))\n"
             "  done()\n"
             "end\n"
             "assert(runtime:start(asked))\n");
}

/* Paths in a pod, and links that its process left, lead nowhere: `precious` stays as it is. */
static void test_runtime_keeps_hostile_paths_in_the_pod(void **state)
{
    lua(*state, "all = assert(process.open_folder(FOLDER))\n"
                "assert(all:make_folder 'other/sub' and all:write('other/precious', 'kept', 384))\n"
                "runtime = open_runtime()\n"
                "root = 'pods/u-1/main'\n"
                "assert(all:make_folder(root) and all:make_folder 'pods/u-1/volumes/v')\n"
                "assert(all:link(FOLDER .. '/other', root .. '/out'))\n"
                "assert(all:link(FOLDER .. '/other', 'pods/u-1/volumes/v/out'))\n"
                "function start(change)\n"
                "  local asked = new_run('true', change)\n"
                "  asked.read = function(kind) return kind == 'ConfigMap' and { data = { k = "
                "'lost' } } end\n"
                "  asked.on_exit = function() done() end\n"
                "  return runtime:start(asked)\n"
                "end\n");
    for (int i = 1; i <= 6; i++) {
        char text[512];
        snprintf(
            text, sizeof text,
            "local paths = { '../../../other/precious', '/../../../other/precious', '..', '/',\n"
            "  'out/precious', '/out/sub' }\n"
            "assert(start(function(_, _, c) c.terminationMessagePath = paths[%d] end))\n",
            i);
        lua_wait(*state, text);
    }
    lua(*state,
        "for _, path in ipairs { '../../../other/new', 'out/new', '..' } do\n"
        "  assert(not start(function(_, _, c) c.workingDir = path end), path)\n"
        "end\n"
        "function start_with_file(path)\n"
        "  return start(function(_, spec, c)\n"
        "    spec.volumes = { { name = 'v', configMap = { name = 'm', items = { { key = 'k',\n"
        "      path = path } } } } }\n"
        "    c.volumeMounts = { { name = 'v', mountPath = 'vol' } } end)\n"
        "end\n"
        "for _, path in ipairs { '../../../../other/precious', FOLDER .. '/../other/precious' } "
        "do\n"
        "  assert(not start_with_file(path), path)\n"
        "end\n");
    lua_wait(*state, "assert(start_with_file 'out/precious')\n");
    lua_wait(*state, "assert(start_with_file 'out/sub/new')\n");
    lua(*state,
        "for _, path in ipairs { 'out', 'out/sub', 'vol' } do\n"
        "  local handle = start(function(_, spec, c)\n"
        "    spec.volumes = { { name = 'v', emptyDir = {} } }\n"
        "    c.volumeMounts = { { name = 'v', mountPath = path .. '/a', subPath = 'out/b' } } "
        "end)\n"
        "  assert(not handle, path)\n"
        "end\n"
        "equal('kept', (read(FOLDER .. '/other/precious')))\n"
        "assert(all:has_folder 'other/sub' and not all:has 'other/new' and not all:has 'other/b')\n"
        "assert(not all:has 'other/a' and not all:has 'other/sub/a')\n");
}

static void test_runtime_says_what_it_cannot_run(void **state)
{
    lua(*state,
        "local runtime = open_runtime()\n"
        "local function refused(wanted, change, kind)\n"
        "  local handle, reason, message = runtime:start(new_run('true', change))\n"
        "  equal(kind or 'CreateContainerError', not handle and reason)\n"
        "  assert(message:find(wanted, 1, true), message)\n"
        "end\n"
        "refused('no program is known for \"redis:7\": moonloop dev --image', function(_, _, c)\n"
        "  c.image, c.command = 'redis:7', nil end, 'ErrImagePull')\n"
        "refused('no program', function(asked, _, c)\n"
        "  c.image, c.command, asked.command = 'postgres:17-alpine', nil, { '--port=1' } end,\n"
        "  'ErrImagePull')\n"
        "refused('image \"redis:7\" is not present with pull policy of Never: ', function(_, _, "
        "c)\n"
        "  c.image, c.command, c.imagePullPolicy = 'redis:7', nil, 'Never' end,\n"
        "  'ErrImageNeverPull')\n"
        "refused('couldn\\'t parse image name \"No\": invalid reference format: repository name '\n"
        "  .. '(library/No) must be lowercase', function(_, _, c) c.image = 'No' end,\n"
        "  'InvalidImageName')\n"
        "refused('exec: \"true\": invalid argument', function(asked)\n"
        "  asked.command = { 'true', 'a\\0b' } end)\n"
        "refused('environment variable can', function(asked) asked.variables = { A = 'a\\0b' } "
        "end)\n"
        "refused('a path can', function(_, _, c) c.workingDir = 'a\\0b' end)\n"
        "refused('privileged', function(_, _, c) c.securityContext = { privileged = true } end)\n"
        "refused('runAsUser 4242', function(_, spec) spec.securityContext = { runAsUser = 4242 } "
        "end)\n"
        "refused('capabilities', function(_, _, c)\n"
        "  c.securityContext = { capabilities = { add = { 'NET_ADMIN' } } } end)\n"
        "refused('volume \"v\"', function(_, spec, c)\n"
        "  spec.volumes = { { name = 'v', hostPath = { path = '/' } } }\n"
        "  c.volumeMounts = { { name = 'v', mountPath = 'v' } } end)\n"
        "for path, what in pairs { ['v/../../x'] = '\"..\" is not', ['/v'] = 'volume \"v\" at /v: "
        "without '\n"
        "  .. 'containers, only relative paths are (this machine allows no containers: not here)' "
        "} do\n"
        "  refused(what, function(_, spec, c)\n"
        "    spec.volumes = { { name = 'v', emptyDir = {} } }\n"
        "    c.volumeMounts = { { name = 'v', mountPath = path } } end)\n"
        "end\n"
        "refused('hostAliases', function(_, spec) spec.hostAliases = { { ip = '1.1.1.1' } } "
        "end)\n");
}

static void test_runtime_tells_a_command_that_is_not_there_by_its_exit(void **state)
{
    lua_wait(*state, "local asked = new_run('', function(_, _, c) c.command = { 'nope' } end)\n"
                     "asked.on_exit = function(exit)\n"
                     "  equal({ code = 128, reason = 'StartError',\n"
                     "    message = 'exec: \"nope\": executable file not found in $PATH' }, exit)\n"
                     "  done()\n"
                     "end\n"
                     "assert(open_runtime():start(asked))\n");
}

static void test_runtime_gives_tools_a_shell_and_args(void **state)
{
    lua_wait(*state, "local asked = new_run('', function(_, _, c) c.command = nil end)\n"
                     "asked.on_exit = function(exit) equal({ code = 0 }, exit) done() end\n"
                     "assert(open_runtime():start(asked))\n");
    lua_wait(*state, "local asked = new_run('', function(asked, _, c)\n"
                     "  c.command, asked.command = nil, { 'sh', '-c', 'exit 6' } end)\n"
                     "asked.on_exit = function(exit) equal({ code = 6 }, exit) done() end\n"
                     "assert(open_runtime():start(asked))\n");
}

static void test_runtime_fills_volumes(void **state)
{
    lua_wait(
        *state,
        "local function volume(name, path, more)\n"
        "  more.name = name\n"
        "  return more, { name = name, mountPath = path }\n"
        "end\n"
        "local asked = new_run([[cat etc/c/a etc/c/sub/b; cat s/key; cat t/token t/ns; echo;\n"
        "  cat labels/all; echo; stat -Lc %a s/key; echo x >scratch/y; cat one]],\n"
        "  function(asked, spec, c)\n"
        "    spec.volumes, c.volumeMounts = {}, {}\n"
        "    local function add(name, path, more)\n"
        "      more.name = name\n"
        "      table.insert(spec.volumes, more)\n"
        "      table.insert(c.volumeMounts, { name = name, mountPath = path })\n"
        "    end\n"
        "    add('c', 'etc/c', { configMap = { name = 'cm', items = {\n"
        "      { key = 'a', path = 'a' }, { key = 'b', path = 'sub/b' } } } })\n"
        "    add('s', 's', { secret = { secretName = 'se', defaultMode = 256 } })\n"
        "    add('t', 't/', { projected = { sources = {\n"
        "      { serviceAccountToken = { path = 'token' } },\n"
        "      { downwardAPI = { items = { { path = 'ns',\n"
        "        fieldRef = { fieldPath = 'metadata.namespace' } } } } } } } })\n"
        "    add('l', 'labels', { downwardAPI = { items = { { path = 'all',\n"
        "      fieldRef = { fieldPath = 'metadata.labels' } } } } })\n"
        "    add('e', 'scratch', { emptyDir = {} })\n"
        "    table.insert(c.volumeMounts, { name = 'c', mountPath = 'one', subPath = 'a' })\n"
        "    asked.pod.metadata.labels = { b = '2\"', a = '1' }\n"
        "    function asked.read(kind, namespace, name)\n"
        "      equal('ns', namespace)\n"
        "      return kind == 'Secret' and name == 'se' and { data = { key = 'c2VjcmV0' } } or\n"
        "        name == 'cm' and { data = { a = 'A', b = 'B', unused = 'C' } } or nil\n"
        "    end\n"
        "  end)\n"
        "local runtime = open_runtime()\n"
        "asked.on_exit = function(exit)\n"
        "  equal('ABsecreta tokenns\\na=\"1\"\\nb=\"2\\\\\"\"\\n400\\nA', text_of(asked))\n"
        "  equal({ code = 0 }, exit)\n"
        "  if asked.attempt == 1 then\n"
        "    runtime:forget(asked.pod)\n"
        "    return done()\n"
        "  end\n"
        "  asked.attempt = 1\n" /* as after a crash, in the same folder */
        "  assert(runtime:start(asked))\n"
        "end\n"
        "assert(runtime:start(asked))\n");
    lua(*state, "local asked = new_run('true', function(_, spec, c)\n"
                "  spec.volumes = { { name = 'c', configMap = { name = 'gone' } } }\n"
                "  c.volumeMounts = { { name = 'c', mountPath = 'c' } }\n"
                "end)\n"
                "local _, reason, message = open_runtime():start(asked)\n"
                "equal('CreateContainerConfigError', reason)\n"
                "equal('MountVolume.SetUp failed for volume \"c\" : configmap \"gone\" not found', "
                "message)\n");
}

/* Words in the file of terminationMessagePath, or the end of the log. */
static void test_runtime_keeps_the_last_words(void **state)
{
    lua_wait(
        *state,
        "local cases = {\n"
        "  { 'echo fine >dev/termination-log', 'File', 'fine\\n' },\n"
        "  { 'echo no >dev/termination-log; exit 1', 'FallbackToLogsOnError', 'no\\n' },\n"
        "  { 'echo log; echo more; exit 1', 'FallbackToLogsOnError', 'log\\nmore\\n' },\n"
        "  { 'echo log; exit 1', 'File' },\n"
        "  { 'echo log', 'FallbackToLogsOnError' },\n"
        "  { 'seq 1000; exit 1', 'FallbackToLogsOnError', function(text)\n"
        "    return text:match '^921\\n922\\n' and text:match '\\n1000\\n$' end },\n"
        "  { 'yes 0123456789abcdef | head -c 9000 >dev/termination-log', 'File', function(text)\n"
        "    return #text == 4096 end },\n"
        "  { 'yes 0123456789abcdef0123456789abcdef0123456789 | head -90; exit 1',\n"
        "    'FallbackToLogsOnError', function(text) return #text == 2048 end },\n"
        "  { 'mkfifo dev/termination-log', 'File' },\n"
        "  { 'ln -s /etc/passwd dev/termination-log', 'File' },\n"
        "}\n"
        "local runtime = open_runtime()\n"
        "local function next_case(i)\n"
        "  if not cases[i] then return done() end\n"
        "  local script, policy, wanted = table.unpack(cases[i])\n"
        "  local asked = new_run(script, function(asked, _, c)\n"
        "    asked.attempt = i\n"
        "    c.terminationMessagePath, c.terminationMessagePolicy = '/dev/termination-log', "
        "policy\n"
        "  end)\n"
        "  asked.on_exit = function(exit)\n"
        "    local got = exit.message\n"
        "    if type(wanted) == 'function' then assert(wanted(got), got)\n"
        "    else assert(wanted == got, ('%s: %s'):format(script, got)) end\n"
        "    next_case(i + 1)\n"
        "  end\n"
        "  assert(runtime:start(asked))\n"
        "end\n"
        "next_case(1)\n");
}

/* The mounts of mounts.lua in a real container. Its hook and its probe run in it. */
static void test_runtime_makes_containers(void **state)
{
    struct fixture *f = *state;
    char folder[128];
    struct ml_err err = ML_ERR_INIT;
    snprintf(folder, sizeof folder, "%s/try", f->folder);
    assert_int_equal(mkdir(folder, 0700), 0);
    if (ml_processes_try_container(folder, &err) < 0) {
        print_message("no containers here: %s\n", err.message);
        skip();
    }
    lua_wait(f,
             "local runtime = open_runtime { no_containers = false }\n"
             "local asked = new_run([[cat /etc/c/a /one; pwd; id -u; hostname; echo $HOME; cat "
             "/etc/hosts;\n"
             "  echo no >/etc/c/a && echo bad; echo 1 >/scratch/x; echo said >/tmp/words;\n"
             "  until test -e /hooked; do sleep 0.01; done; echo hooked; sleep 100]],\n"
             "  function(asked, spec, c)\n"
             "    spec.hostAliases = { { ip = '192.0.2.7', hostnames = { 'seven', 'sept' } } }\n"
             "    spec.volumes = { { name = 'c', configMap = { name = 'cm' } },\n"
             "      { name = 'e', emptyDir = {} } }\n"
             "    c.volumeMounts = { { name = 'c', mountPath = '/etc/c' },\n"
             "      { name = 'c', mountPath = '/one/../one', subPath = 'a' },\n"
             "      { name = 'e', mountPath = '/scratch' } }\n"
             "    c.workingDir = '/srv/app'\n"
             "    c.securityContext = { runAsUser = 4242 }\n"
             "    c.terminationMessagePath = '/tmp/words'\n"
             "    c.lifecycle = { postStart = { exec = { command = { 'touch', '/hooked' } } } }\n"
             "    function asked.read() return { data = { a = 'A\\n' } } end\n"
             "  end)\n"
             "local handle\n"
             "asked.on_exit = function(exit)\n"
             "  local text = text_of(asked)\n"
             "  assert(text:find('A\\nA\\n/srv/app\\n4242\\np\\n/root\\n', 1, true), text)\n"
             "  assert(text:find('192.0.2.7\\tseven\\tsept\\n', 1, true), text)\n"
             "  assert(not text:find 'bad', text)\n"
             "  equal({ code = 143, message = 'said\\n' }, exit)\n"
             "  equal('1\\n', (read(FOLDER .. '/pods/u-1/volumes/e/x')))\n"
             "  runtime:forget(asked.pod)\n"
             "  assert(not exists(FOLDER .. '/pods/u-1'))\n"
             "  done()\n"
             "end\n"
             "handle = assert(runtime:start(asked))\n"
             "logs:find(asked.pod, 'main'):follow(function(line)\n"
             "  if not line or not line:find 'hooked' then return end\n"
             "  handle:probe({ exec = { command = { 'cat', '/hooked', '/scratch/x' } } }, "
             "function(ok, said)\n"
             "    equal({ true, '1\\n' }, { ok, said })\n"
             "    handle:stop(60)\n"
             "  end)\n"
             "end)\n");
}

static void test_runtime_refuses_containers_what_no_kubelet_allows(void **state)
{
    lua(*state,
        "local fit = require 'cluster.kubelet.unsupported_features'\n"
        "local function refused(wanted_reason, wanted, change)\n"
        "  local asked = new_run('true', change)\n"
        "  local reason, message = fit.problem(asked.pod, asked.container, 1000)\n"
        "  equal({ wanted_reason, wanted }, { reason, message })\n"
        "end\n"
        "for _, path in ipairs { '/', '/..', '.', '/a/../' } do\n"
        "  refused('CreateContainerError', ('error mounting volume \"v\" to rootfs at %q: '\n"
        "    .. 'mounting over / is prohibited'):format(path), function(_, spec, c)\n"
        "    spec.volumes = { { name = 'v', emptyDir = {} } }\n"
        "    c.volumeMounts = { { name = 'v', mountPath = path } } end)\n"
        "end\n"
        "refused('CreateContainerConfigError', \"container's runAsUser breaks non-root policy\",\n"
        "  function(_, spec) spec.securityContext = { runAsUser = 0, runAsNonRoot = true } end)\n"
        "refused('CreateContainerError', 'cannot be given to a local container: a privileged "
        "container',\n"
        "  function(_, _, c) c.securityContext = { privileged = true } end)\n");
}

static void test_runtime_knows_images_that_stand_for_a_program(void **state)
{
    lua(*state,
        "local fit = require 'cluster.kubelet.unsupported_features'\n"
        "local images = require 'cluster.kubelet.images'.new { web = { "
        "source = '/opt/bin/server', arguments = { '-v' } } }\n"
        "equal('/moonloop', images:find({ image = 'registry:5000/team/moonloop:0.1' }).target)\n"
        "local program = images:find { image = 'example.com/web@sha256:1' }\n"
        "equal({ source = '/opt/bin/server', target = '/server', arguments = { '-v' } }, program)\n"
        "local web = { image = 'web' }\n"
        "equal({ '/server', 'run' }, (fit.command(web, { 'run' }, program)))\n"
        "equal({ '/server', '-v' }, (fit.command(web, { }, program)))\n"
        "web.command = { 'sleep' }\n"
        "equal({ 'sleep', '1' }, (fit.command(web, { 'sleep', '1' }, program)))\n"
        "for _, image in ipairs { 'moonloop-tools', 'moonloop/redis:7', 'redis:moonloop', 'web/x' "
        "} do\n"
        "  assert(images:find { image = image } == nil, image)\n"
        "  assert(fit.command({ image = image }, { 'run' }) == nil, image)\n"
        "end\n");
}

static void test_runtime_stops_and_forgets_what_runs(void **state)
{
    lua_wait(*state,
             "local runtime = open_runtime()\n"
             "local asked = new_run 'trap \"\" TERM; echo up; while :; do sleep 100; done'\n"
             "local handle\n"
             "asked.on_exit = function(exit)\n"
             "  equal({ code = 137 }, exit)\n"
             "  assert(not exists(FOLDER .. '/pods/u-1'))\n"
             "  done()\n"
             "end\n"
             "handle = assert(runtime:start(asked))\n"
             "logs:find(asked.pod, 'main'):follow(function(line)\n"
             "  if not line then return end\n"
             "  handle:stop(60)\n"
             "  handle:stop(0)\n"
             "  runtime:forget(asked.pod)\n"
             "  assert(exists(FOLDER .. '/pods/u-1'))\n"
             "end)\n");
}

static void test_runtime_kills_who_has_too_many_processes(void **state)
{
    lua_wait(*state, "local asked = new_run\n"
                     "  'i=0; while [ $i -lt 60 ]; do sleep 100 & i=$((i+1)); done; wait'\n"
                     "asked.on_exit = function(exit)\n"
                     "  equal({ code = 137, reason = 'TooManyProcesses',\n"
                     "    message = 'killed: more than 20 processes' }, exit)\n"
                     "  done()\n"
                     "end\n"
                     "assert(open_runtime { count_max = 20 }:start(asked))\n");
}

/* Others get their turn while it prints, and the output that is kept is bounded. */
static void test_runtime_slows_down_who_prints_without_end(void **state)
{
    lua_wait(*state, "local asked = new_run 'exec yes \"a line that comes again and again\"'\n"
                     "local turns, handle = 0, nil\n"
                     "asked.on_exit = function(exit)\n"
                     "  equal({ code = 143 }, exit)\n"
                     "  assert(turns > 5, turns)\n"
                     "  done()\n"
                     "end\n"
                     "local function turn()\n"
                     "  turns = turns + 1\n"
                     "  if turns < 50 then host.after(0.01, turn) else handle:stop(60) end\n"
                     "end\n"
                     "handle = assert(open_runtime():start(asked))\n"
                     "turn()\n");
}

static void test_runtime_probes(void **state)
{
    struct fixture *f = *state;
    struct ml_http_routes *routes = serve(f);
    lua_wait(
        f,
        "local asked = new_run('sleep 100', function(_, _, c)\n"
        "  c.ports = { { name = 'web', containerPort = PORT } }\n"
        "end)\n"
        "local handle = assert(open_runtime():start(asked))\n"
        "local cases = {\n"
        "  { { exec = { command = { 'sh', '-c', 'echo fine' } } }, true, 'fine\\n' },\n"
        "  { { exec = { command = { 'sh', '-c', 'echo bad; exit 1' } } }, false, 'bad\\n' },\n"
        "  { { exec = { command = { 'nope' } } }, false,\n"
        "    'exec: \"nope\": executable file not found in $PATH' },\n"
        "  { { exec = { command = { 'sleep', '100' } }, timeoutSeconds = 1 }, false,\n"
        "    'command timed out: \"sleep 100\" timed out after 1s' },\n"
        "  { { httpGet = { path = '/up', port = 'web' } }, true },\n"
        "  { { httpGet = { path = 'up?bad', port = PORT } }, false,\n"
        "    'HTTP probe failed with statuscode: 500' },\n"
        "  { { tcpSocket = { port = 'web' } }, true },\n"
        "  { { tcpSocket = { port = 1 } }, false, 'connect to 127.0.0.1:1: Connection refused' },\n"
        "  { { tcpSocket = { port = 'unknown' } }, false,\n"
        "    '127.0.0.1:unknown: an address and a port are needed' },\n"
        "}\n"
        "local function next_case(i)\n"
        "  if not cases[i] then\n"
        "    handle:probe({ exec = { command = { 'sleep', '100' } } }, error)\n"
        "    return handle:stop(0)\n"
        "  end\n"
        "  local probe, wanted, says = table.unpack(cases[i])\n"
        "  handle:probe(probe, function(ok, message)\n"
        "    equal(wanted, ok)\n"
        "    if says then equal(says, message) end\n"
        "    next_case(i + 1)\n"
        "  end)\n"
        "end\n"
        "asked.on_exit = function() done() end\n"
        "next_case(1)\n");
    net_settle(&f->net, 100);
    ml_http_routes_free(routes);
}

static void test_runtime_runs_a_pre_stop_hook_once_before_its_end(void **state)
{
    lua_wait(
        *state,
        "local asked = new_run('sleep 100', function(_, _, c)\n"
        "  c.lifecycle = { preStop = { exec = { command = { 'sh', '-c', 'echo x >>hooks' } } } }\n"
        "end)\n"
        "local handle\n"
        "asked.on_exit = function()\n"
        "  equal('x\\n', (read(FOLDER .. '/pods/u-1/main/hooks')))\n"
        "  done()\n"
        "end\n"
        "handle = assert(open_runtime():start(asked))\n"
        "handle:pre_stop(60, function()\n"
        "  assert(not handle.is_over)\n"
        "  handle:pre_stop(60, function() handle:stop(60) end)\n"
        "end)\n");
}

static void test_runtime_runs_hooks(void **state)
{
    lua_wait(
        *state,
        "local asked = new_run('trap \"\" TERM; while :; do sleep 0.1; done', function(_, _, c)\n"
        "  c.lifecycle = { preStop = { exec = { command = { 'sh', '-c', 'kill -9 $(cat pid)' } } "
        "},\n"
        "    postStart = { exec = { command = { 'sh', '-c', 'echo >started' } } } }\n"
        "  c.command = { 'sh', '-c', 'echo $$ >new; mv new pid; ' .. c.command[3] }\n"
        "end)\n"
        "local handle\n"
        "asked.on_exit = function(exit) equal({ code = 137 }, exit) done() end\n"
        "handle = assert(open_runtime():start(asked))\n"
        "local function look()\n"
        "  local folder = FOLDER .. '/pods/u-1/main/'\n"
        "  local up = exists(folder .. 'started') and exists(folder .. 'pid')\n"
        "  if up then handle:stop(60) else host.after(0.01, look) end\n"
        "end\n"
        "look()\n");
    lua_wait(*state, "local asked = new_run('sleep 100', function(_, _, c)\n"
                     "  c.lifecycle = { postStart = { exec = { command = { 'sh', '-c', 'echo no; "
                     "exit 1' } } } }\n"
                     "end)\n"
                     "asked.on_exit = function(exit)\n"
                     "  equal({ code = 137, message = 'PostStartHook failed: no\\n' }, exit)\n"
                     "  done()\n"
                     "end\n"
                     "assert(open_runtime():start(asked))\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRIPT(test_script_process_runs_commands),
        SCRIPT(test_script_process_has_an_input_and_a_terminal),
        SCRIPT(test_script_process_handles_outlive_the_process),
        SCRIPT(test_script_process_raises_on_misuse),
        SCRIPT(test_script_process_is_killed_with_its_state),
        SCRIPT(test_script_process_looks_whether_somebody_answers),
        SCRIPT(test_script_process_keeps_folders),
        SCRIPT(test_script_process_replaces_links),
        SCRIPT(test_script_process_gives_folders_a_mode),
        SCRIPT(test_script_process_says_why_there_is_no_memory),
        SCRIPT(test_script_process_folders_keep_hostile_paths_in),
        SCRIPT(test_script_process_removes_what_containers_leave),
        SCRIPT(test_volumes_are_ours_by_their_record),
        SCRIPT(test_runtime_runs_a_container_and_keeps_its_log),
        SCRIPT(test_runtime_keeps_hostile_paths_in_the_pod),
        SCRIPT(test_runtime_says_what_it_cannot_run),
        SCRIPT(test_runtime_tells_a_command_that_is_not_there_by_its_exit),
        SCRIPT(test_runtime_gives_tools_a_shell_and_args),
        SCRIPT(test_runtime_fills_volumes),
        SCRIPT(test_runtime_keeps_the_last_words),
        SCRIPT(test_runtime_makes_containers),
        SCRIPT(test_runtime_refuses_containers_what_no_kubelet_allows),
        SCRIPT(test_runtime_knows_images_that_stand_for_a_program),
        SCRIPT(test_runtime_stops_and_forgets_what_runs),
        SCRIPT(test_runtime_kills_who_has_too_many_processes),
        SCRIPT(test_runtime_slows_down_who_prints_without_end),
        SCRIPT(test_runtime_probes),
        SCRIPT(test_runtime_runs_hooks),
        SCRIPT(test_runtime_runs_a_pre_stop_hook_once_before_its_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
