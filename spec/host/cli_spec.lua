-- The command line: help, mistakes, and the exit codes that tell them apart.
local host = require "spec.e2e.support.host"

local NO_CLUSTER = { KUBECONFIG = false, HOME = "/nonexistent", KUBERNETES_SERVICE_HOST = false }

local function run(...)
  return host.command({ ... }, NO_CLUSTER)
end


describe("moonloop", function()
  it("without a word prints its commands to standard error and exits 2", function()
    local result = run()
    assert.equal(2, result.code)
    assert.equal("", result.out)
    assert.matches("Usage: moonloop COMMAND", result.err, 1, true)
  end)

  for _, word in ipairs { "--help", "-h", "help" } do
    it(("%s prints its commands and exit codes"):format(word), function()
      local result = run(word)
      assert.equal(0, result.code)
      assert.equal("", result.err)
      assert.matches("\n  run  +run the operator", result.out)
      assert.matches("\n  check  +compile and load scripts", result.out)
      assert.matches("Exit codes: 0 fine", result.out, 1, true)
    end)
  end

  for _, word in ipairs { "version", "--version" } do
    it(("%s prints its version"):format(word), function()
      local result = run(word)
      assert.equal(0, result.code)
      assert.matches("^moonloop %d+%.%d+%.%d+\n$", result.out)
    end)
  end

  it("refuses a command that it does not have", function()
    local result = run "rnu"
    assert.equal(2, result.code)
    assert.matches('unknown command "rnu"', result.err, 1, true)
  end)

  for _, command in ipairs {
    "run", "check", "plan", "snapshot", "rollback", "pause", "retry", "dev", "test", "rbac", "types", "manifests",
  } do
    it(("%s --help shows its options and an example"):format(command), function()
      local result = run(command, "--help")
      assert.equal(0, result.code)
      assert.equal("", result.err)
      assert.matches("^Usage: moonloop " .. command, result.out)
      assert.matches("Example:\n  moonloop " .. command, result.out, 1, true)
    end)
  end

  local MISTAKES = {
    { "an option nearly right", { "run", "--script", "x" }, "unknown option --script; did you mean --scripts?" },
    { "a misspelt option with a value", { "run", "--kubeconfg=x" }, "did you mean --kubeconfig?" },
    { "an option unlike any", { "run", "--zzzzzzzz" }, "unknown option --zzzzzzzz; see --help" },
    { "an option without its value", { "run", "--scripts" }, "--scripts needs a value: --scripts PATH" },
    { "an origin that is none", { "run", "--scripts", "reconcilers", "--allow-http", "billing" },
      "--allow-http billing: expected an origin, such as https://billing.example.com" },
    { "an address that nobody may ask", { "run", "--scripts", "reconcilers", "--allow-http", "http://169.254.169.254" },
      "--allow-http http://169.254.169.254: scripts may never ask this address" },
    { "no file of certificates", { "run", "--scripts", "reconcilers", "--http-ca-file", "/nowhere" },
      "--http-ca-file /nowhere: No such file" },
    { "a word too many", { "run", "reconcilers" }, 'unexpected word "reconcilers"' },
    { "a size that is none", { "run", "--script-memory", "lots" }, "--script-memory lots: expected bytes" },
    { "a size beyond all bounds", { "run", "--script-memory", "99999999999Gi" }, "expected bytes" },
    { "a number that is none", { "run", "--rollout-sample", "-1" }, "--rollout-sample -1: expected a whole number" },
    { "a sample of nothing", { "run", "--scripts", "x", "--rollout-sample", "0" },
      "--rollout-sample 0: expected 1 to 10000" },
    { "a percentage above 100", { "run", "--scripts", "x", "--rollout-max-deletes-percent", "101" },
      "--rollout-max-deletes-percent 101: expected 0 to 100" },
    { "too many deletions", { "run", "--scripts", "x", "--rollout-max-deletes", "1000001" },
      "--rollout-max-deletes 1000001: expected 0 to 1000000" },
    { "another percentage", { "run", "--scripts", "x", "--rollout-max-failures-percent", "x" },
      "--rollout-max-failures-percent x: expected a whole number" },
    { "a rollout that there is not", { "run", "--scripts", "x", "--rollout", "careful" },
      "--rollout careful: expected guarded, canary, plan or immediate" },
    { "seconds that are none", { "run", "--drain-seconds", "-1" }, "--drain-seconds -1: expected seconds" },
    { "a log format that is none", { "run", "--log-format", "xml" }, "expected json or text" },
    { "a log level that is none", { "run", "--log-level", "loud" }, "expected debug, info, warn or error" },
    { "no scripts to run", { "run" }, "no scripts: give --scripts PATH or --scripts-configmap NAMESPACE/NAME" },
    { "a ConfigMap without namespace", { "run", "--scripts-configmap", "scripts" }, "expected NAMESPACE/NAME" },
    { "nothing to print types of", { "types" }, "nothing to print: moonloop types PATH, or --crds PATH" },
    { "no scripts to check", { "check" }, "no scripts given: moonloop check PATH" },
  }

  for _, mistake in ipairs(MISTAKES) do
    local what, words, message = table.unpack(mistake)
    it(("refuses %s with exit code 2"):format(what), function()
      local result = host.command(words, NO_CLUSTER)
      assert.equal(2, result.code, result.err)
      if words[1] == "run" then -- what reads the log alone sees it, too
        assert.matches('^{"level":"error",[^\n]+"exit_code":2}\n$', result.out)
        assert.matches('"msg":"ending because of an error"', result.out, 1, true)
      else
        assert.equal("", result.out)
      end
      assert.matches("^moonloop " .. words[1] .. ": [^\n]+\n$", result.err)
      assert.matches(message, result.err, 1, true)
    end)
  end

  it("says why it cannot start in the log, in the format that is asked for, and in a sentence", function()
    for code, words in pairs {
      [2] = { "run", "--nonsense", "--log-format", "text" },
      [3] = { "run", "--scripts", "reconcilers", "--log-format=text", "--kubeconfig", "/nowhere/config" },
    } do
      local result = host.command(words, NO_CLUSTER)
      assert.equal(code, result.code, result.err)
      local line = "^[^ ]+ error host: ending because of an error error=[^\n]+ exit_code=%d\n$"
      assert.matches(line:format(code), result.out)
      assert.matches("^moonloop run: [^\n]+\n$", result.err)
    end
  end)
end)
