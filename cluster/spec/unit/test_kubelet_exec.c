/* Further commands in a container, and attachments to it: cluster/kubelet/exec.lua
 * and attach.lua, as processes and, where the machine allows them, in containers. */
#include <sys/stat.h>

#include "lua_process_unit.h"

/* Lua that the tests share. A test is run once with each kind of runtime. */
static const char shared[] =
    /* Starts a container and calls fn(handle, asked) once it has printed "up". */
    "function start(script, change, fn)\n"
    "  runtime = open_runtime { no_containers = NO_CONTAINERS }\n"
    "  local asked = new_run(script, change)\n"
    "  local handle\n"
    "  asked.on_exit = function(exit) asked.exit = exit if asked.over then asked.over(exit) end "
    "end\n"
    "  handle = assert(runtime:start(asked))\n"
    "  logs:find(asked.pod, 'main'):follow(function(line)\n"
    "    if line and line:find ' up' then host.defer(function() fn(handle, asked) end) end\n"
    "  end)\n"
    "  return handle, asked\n"
    "end\n"
    /* Ends the container and the test. */
    "function finish(handle, asked)\n"
    "  asked.over = done\n"
    "  handle:stop(0)\n"
    "end\n"
    /* Runs a command; fn(how, output, errors). */
    "function exec(handle, options, fn)\n"
    "  local said, complained = {}, {}\n"
    "  options.output = function(bytes) said[#said + 1] = bytes end\n"
    "  options.errors = function(bytes) complained[#complained + 1] = bytes end\n"
    "  options.ended = function(how) fn(how, table.concat(said), table.concat(complained)) end\n"
    "  return assert(handle:exec(options))\n"
    "end\n"
    /* Attaches; texts and the end go into the result. */
    "function attach(handle, more)\n"
    "  local client = { output = '', errors = '' }\n"
    "  local options = { }\n"
    "  for _, name in ipairs { 'output', 'errors' } do\n"
    "    options[name] = function(bytes)\n"
    "      client[name] = client[name] .. bytes\n"
    "      if client.heard then client.heard() end\n"
    "    end\n"
    "  end\n"
    "  options.ended = function(how) assert(not client.how) client.how = how end\n"
    "  for name, value in pairs(more or {}) do options[name] = value or nil end\n"
    "  client.attachment = assert(handle:attach(options))\n"
    "  return client\n"
    "end\n"
    /* Calls fn once a client has heard the text. */
    "function when_heard(client, text, fn)\n"
    "  local function look()\n"
    "    if client.output:find(text, 1, true) then\n"
    "      client.heard = nil\n"
    "      host.defer(fn)\n"
    "    end\n"
    "  end\n"
    "  client.heard = look\n"
    "  look()\n"
    "end\n";

static bool has_containers(struct fixture *f)
{
    char folder[128];
    struct ml_err err = ML_ERR_INIT;
    snprintf(folder, sizeof folder, "%s/try", f->folder);
    mkdir(folder, 0700);
    return ml_processes_try_container(folder, &err) == 0;
}

static void run_both(struct fixture *f, const char *text)
{
    lua(f, shared);
    lua(f, "NO_CONTAINERS = 'not here'");
    lua_wait(f, text);
    if (!has_containers(f))
        return;
    lua(f, "NO_CONTAINERS = false");
    lua_wait(f, text);
}

static void test_exec_runs_beside_the_container(void **state)
{
    run_both(
        *state,
        "start('echo here >mine; echo up; exec sleep 100', function(asked, _, c)\n"
        "  c.workingDir, asked.variables = 'srv', { A = 'own' }\n"
        "end, function(handle, asked)\n"
        "  local running\n"
        "  running = exec(handle, { stdin = true,\n"
        "    command = { 'sh', '-c', 'cat mine; echo $A $TERM; cat; echo bad >&2; exit 3' } },\n"
        "    function(how, said, complained)\n"
        "      equal({ code = 3, started = true, message = '' }, how)\n"
        "      equal({ 'here\\nown\\nin\\n', 'bad\\n' }, { said, complained })\n"
        "      equal(0, running:write 'late')\n"
        "      running:end_input() running:resize(1, 1) running:signal(1) running:stop(1)\n"
        "      finish(handle, asked)\n"
        "    end)\n"
        "  running:write 'in\\n'\n"
        "  running:end_input()\n"
        "end)\n");
}

static void test_exec_gives_a_terminal(void **state)
{
    skip_without_terminals();
    run_both(*state, "start('echo up; exec sleep 100', nil, function(handle, asked)\n"
                     "  local running\n"
                     "  running = exec(handle, { stdin = true, tty = true,\n"
                     "    command = { 'sh', '-c', 'until stty size | grep \"^30 90\"; do sleep "
                     "0.01; done; echo $TERM; read x; echo \"<$x>\" >&2; exit 4' } },\n"
                     "    function(how, said, complained)\n"
                     "      equal({ code = 4, started = true, message = '' }, how)\n"
                     "      for _, line in ipairs { '30 90', 'xterm', '<typed>' } do\n"
                     "        assert(said:find(line .. '\\r\\n', 1, true), said)\n"
                     "      end\n"
                     "      equal('', complained)\n"
                     "      finish(handle, asked)\n"
                     "    end)\n"
                     "  running:resize(90, 30)\n"
                     "  running:write 'typed\\n'\n"
                     "end)\n");
}

/* In runc's words, with its exit codes. */
static void test_exec_says_why_a_command_cannot_start(void **state)
{
    run_both(
        *state,
        "start('echo up; exec sleep 100', nil, function(handle, asked)\n"
        "  local cases = {\n"
        "    { 'nope', 127, 'exec: \"nope\": executable file not found in $PATH' },\n"
        "    { '/no/such', 127, 'exec: \"/no/such\": no such file or directory' },\n"
        "    { '/etc/passwd', 126, 'exec: \"/etc/passwd\": permission denied' },\n"
        "  }\n"
        "  local function next_case(i)\n"
        "    if not cases[i] then return finish(handle, asked) end\n"
        "    exec(handle, { command = { cases[i][1] } }, function(how)\n"
        "      equal({ code = cases[i][2], started = false, message = 'OCI runtime exec failed: '\n"
        "        .. 'exec failed: unable to start container process: ' .. cases[i][3] }, how)\n"
        "      next_case(i + 1)\n"
        "    end)\n"
        "  end\n"
        "  next_case(1)\n"
        "end)\n");
}

static void test_exec_ends_with_the_container(void **state)
{
    run_both(*state,
             "start('echo up; exec sleep 100', nil, function(handle, asked)\n"
             "  local hows = {}\n"
             "  asked.over = function()\n"
             "    local running, why = handle:exec { command = { 'true' } }\n"
             "    equal({ 'the container does not run' }, { running or why })\n"
             "    equal({ 'the container does not run' }, { select(2, handle:attach {}) })\n"
             "  end\n"
             "  local said = ''\n"
             "  handle:exec { command = { 'sh', '-c', 'trap \"\" TERM; echo on; sleep 100' },\n"
             "    output = function(bytes)\n"
             "      said = said .. bytes\n"
             "      if said == 'on\\n' then handle:stop(0) end\n"
             "    end,\n"
             "    ended = function(how) equal({ 137, 9, true }, { how.code, how.signo, how.started "
             "}) done() end }\n"
             "end)\n");
}

/* Requests to a container that starts just now wait until it has started, and fail if it does
 * not. */
static void test_exec_waits_for_the_start(void **state)
{
    run_both(*state, "local handle, asked = start('exec sleep 100')\n"
                     "local drained = 0\n"
                     "local running = exec(handle, { stdin = true, command = { 'wc', '-c' },\n"
                     "  drained = function() drained = drained + 1 end }, function(how, said)\n"
                     "  equal({ 0, '3000000\\n', 1 }, { how.code, said, drained })\n"
                     "  finish(handle, asked)\n"
                     "end)\n"
                     "equal(3000000, running:write(('x'):rep(3000000)))\n"
                     "assert(running:write(('x'):rep(3000000)) == nil)\n"
                     "running:end_input()\n"
                     "equal(0, running:write 'x')\n");
    run_both(*state,
             "local handle, asked = start('', function(_, _, c) c.command = { 'nope' } end)\n"
             "exec(handle, { command = { 'true' } }, function(how)\n"
             "  equal(false, how.started)\n"
             "  assert(how.message:find('the container has ended', 1, true), how.message)\n"
             "  equal(128, asked.exit.code)\n"
             "  done()\n"
             "end)\n");
}

/* ---- attachments ---- */

static void test_attach_passes_on_what_is_printed_from_now_on(void **state)
{
    run_both(*state,
             "start('echo up; read go; echo one; echo two >&2; exit 5', function(_, _, c)\n"
             "  c.stdin = true end, function(handle, asked)\n"
             "  local first, second = attach(handle), attach(handle, { errors = false })\n"
             "  local gone = attach(handle)\n"
             "  gone.attachment:close()\n"
             "  asked.over = function(exit)\n"
             "    local how = { code = 5, started = true, message = '' }\n"
             "    equal({ 'one\\n', 'two\\n', how }, { first.output, first.errors, first.how })\n"
             "    equal(8, #second.output)\n" /* errors as well */
             "    equal({ '', 0, 0 }, { gone.output, gone.how or 0, gone.attachment:write 'x' })\n"
             "    equal(0, first.attachment:write 'x')\n"
             "    local text = text_of(asked)\n"
             "    assert(text == 'up\\none\\ntwo\\n' or text == 'up\\ntwo\\none\\n', text)\n"
             "    equal(5, exit.code)\n"
             "    done()\n"
             "  end\n"
             "  first.attachment:write 'go\\n'\n"
             "end)\n");
}

/* Parts of lines, of two streams, are no line. */
static void test_attach_keeps_the_lines_of_two_streams_apart(void **state)
{
    run_both(*state,
             "start('echo up; printf a; read go; printf x >&2; read go; echo b; echo y >&2;'\n"
             "  .. 'printf last; printf words >&2', function(_, _, c) c.stdin = true end,\n"
             "  function(handle, asked)\n"
             "    asked.over = function()\n"
             "      local text = text_of(asked)\n"
             "      assert(text:find('ab\\n', 1, true) and text:find('xy\\n', 1, true), text)\n"
             "      assert(text:find('lastwords$'), text)\n"
             "      done()\n"
             "    end\n"
             "    attach(handle).attachment:write 'go\\ngo\\n'\n"
             "  end)\n");
}

static void test_attach_closes_the_input_with_the_first_client(void **state)
{
    static const char *const leaves[] = {"close", "end_input"};
    for (size_t i = 0; i < ML_COUNT(leaves); i++) {
        ML_AUTO_FREE char *text = ml_asprintf(
            "start('echo up; cat; exit 6', function(_, _, c)\n"
            "  c.stdin, c.stdinOnce = true, true end, function(handle, asked)\n"
            "  local watching, client = attach(handle), attach(handle)\n"
            "  watching.attachment:close()\n"
            "  watching = attach(handle)\n"
            "  asked.over = function(exit)\n"
            "    equal({ 'in\\n', 6 }, { watching.output, exit.code })\n"
            "    done()\n"
            "  end\n"
            "  client.attachment:write 'in\\n'\n"
            "  client.attachment:%s()\n"
            "  equal(0, client.attachment:write 'more')\n"
            "  equal(0, watching.attachment:write 'more')\n"
            "end)\n",
            leaves[i]);
        run_both(*state, text);
    }
}

static void test_attach_leaves_the_input_open_otherwise(void **state)
{
    run_both(*state,
             "start('echo up; cat', function(_, _, c) c.stdin = true end, function(handle, asked)\n"
             "  local first, second = attach(handle, { stdin = true }), attach(handle)\n"
             "  first.attachment:write 'one\\n'\n"
             "  first.attachment:end_input()\n"
             "  first.attachment:write 'never\\n'\n"
             "  when_heard(first, 'one\\n', function()\n"
             "    first.attachment:close()\n"
             "    second.attachment:write 'two\\n'\n"
             "    when_heard(second, 'one\\ntwo\\n', function() finish(handle, asked) end)\n"
             "  end)\n"
             "end)\n");
}

static void test_attach_reaches_the_terminal(void **state)
{
    skip_without_terminals();
    run_both(*state,
             "start('echo $TERM; stty size; test -t 2 && echo up; read x; stty size; echo $x', "
             "function(_, _, c)\n"
             "  c.stdin, c.tty, c.stdinOnce = true, true, true end, function(handle, asked)\n"
             "  local left, client = attach(handle), attach(handle)\n"
             "  left.attachment:write ''\n"
             "  left.attachment:close()\n" /* one types on later */
             "  client.attachment:resize(90, 30)\n"
             "  asked.over = function(exit)\n"
             "    equal({ 'typed\\r\\n30 90\\r\\ntyped\\r\\n', 0 }, { client.output, exit.code })\n"
             "    equal('xterm\\r\\n0 0\\r\\nup\\r\\n' .. client.output, text_of(asked))\n"
             "    done()\n"
             "  end\n"
             "  client.attachment:write 'typed\\n'\n"
             "end)\n");
}

static void test_attach_cuts_off_who_does_not_read(void **state)
{
    lua(*state, "require('cluster.kubelet.attach').PAUSE_MAX = 0.2");
    run_both(*state,
             "start('echo up; exec yes', nil, function(handle, asked)\n"
             "  local slow, quick = attach(handle), attach(handle)\n"
             "  slow.attachment:pause(true)\n"
             "  local at_pause, size = nil, 0\n"
             "  quick.attachment.options.output = function(bytes) size = size + #bytes end\n"
             "  host.after(0.1, function()\n"
             "    at_pause = size\n" /* nothing comes meanwhile */
             "    slow.attachment:pause(true)\n"
             "  end)\n"
             "  slow.attachment.options.ended = function(how)\n"
             "    equal({ is_cut = true, message = 'the client has read nothing for 0.2 seconds' "
             "}, how)\n"
             "    equal(at_pause, size)\n"
             "    quick.attachment.options.output = function()\n"
             "      quick.attachment.options.output = function() end\n"
             "      quick.attachment:pause(true) quick.attachment:pause(false)\n"
             "      finish(handle, asked)\n"
             "    end\n"
             "  end\n"
             "end)\n");
}

/* The end of the container does not wait for a client. */
static void test_attach_holds_up_nobody_who_is_killed(void **state)
{
    run_both(*state, "start('echo up; exec yes', nil, function(handle, asked)\n"
                     "  local slow = attach(handle)\n"
                     "  slow.attachment:pause(true)\n"
                     "  asked.over = function(exit)\n"
                     "    equal({ 137, 137 }, { exit.code, slow.how.code })\n"
                     "    done()\n"
                     "  end\n"
                     "  host.after(0.05, function()\n"
                     "    handle:stop(0)\n"
                     "    slow.attachment:pause(false) slow.attachment:pause(true)\n"
                     "  end)\n"
                     "end)\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRIPT(test_exec_runs_beside_the_container),
        SCRIPT(test_exec_gives_a_terminal),
        SCRIPT(test_exec_says_why_a_command_cannot_start),
        SCRIPT(test_exec_ends_with_the_container),
        SCRIPT(test_exec_waits_for_the_start),
        SCRIPT(test_attach_passes_on_what_is_printed_from_now_on),
        SCRIPT(test_attach_keeps_the_lines_of_two_streams_apart),
        SCRIPT(test_attach_closes_the_input_with_the_first_client),
        SCRIPT(test_attach_leaves_the_input_open_otherwise),
        SCRIPT(test_attach_reaches_the_terminal),
        SCRIPT(test_attach_cuts_off_who_does_not_read),
        SCRIPT(test_attach_holds_up_nobody_who_is_killed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
