-- The script API in one place: each function that a script can call, its arguments, results and errors, and its
-- documentation; at the end the same for the API of tests. `make script-api` (tools/script-api.lua) generates from it
--   lua/moonloop/fields.lua         the names that "did you mean" suggests, for the library and for host/script
--   host/script/ctx_calls.h         how each function of ctx is called, for its error messages
--   lua/moonloop/meta/*.lua         the stubs for editors
--   docs/*.md                       their tables, between <!-- script-api: NAME --> and <!-- end -->
--   spec/fuzz/lua_signatures.h      what the fuzzer of the sandbox calls
--   cluster/testing/signatures.lua  what the functions of tests check; a type with `given` is a table that a test gives
-- `make lint` fails when one of them differs, and when docs/script-limits.md lacks a row or spec/attacks/lib a program
-- for a function. spec/unit/script/test_api.c and spec/testing/api_test.lua compare this file with the real API.
--
-- A function: `call` is how the docs show it ("{Type}" stands for the fields of that type); `params` and `returns` are
-- { name, type of lua-language-server, meaning }, "name?" is optional; `errors` are the kinds of `err` in
-- `nil, err`; `doc` is Markdown, for the docs and for editors. A function of Lua itself has its name and the letters
-- of its arguments (spec/fuzz/lua_grammar.h).
local OBJECT = { "object", "moonloop.Object?", "as the server has it" }
local NAMESPACE = { "namespace?", "string", "that of the reconciled object when left out" }
local ZONE = { "zone?", "string", '"Europe/Berlin"; UTC when left out' }
local BESIDE = { "beside?", "moonloop.Beside", "status and conditions to write with it" }

local api = { modules = {}, types = {}, test_modules = {} }

api.modules[1] = {
  name = "moonloop", var = "moonloop",
  {
    name = "kind", call = "moonloop.kind(apiVersion, kind [, selection])",
    params = {
      { "apiVersion", "string", '"apps/v1"' },
      { "kind", "string", '"Deployment"' },
      { "selection?", "moonloop.Selection", "all of it when left out" },
    },
    returns = { { "kind", "moonloop.Kind" } },
    doc = 'A kind, as manifests name it: `moonloop.kind("apps/v1", "Deployment")`. Has the fields `apiVersion` and '
      .. "`kind`. `selection`: [a part of the kind](reading.md#a-part-of-a-kind).",
  },
  {
    name = "controller", call = "moonloop.controller { … }",
    params = { { "declaration", "moonloop.Declaration" } },
    returns = { { "controller", "moonloop.Controller" } },
    doc = "The declaration; the file returns it. A file that returns a plain table is a module for `require`.",
  },
  {
    name = "recreate", call = "moonloop.recreate(object)",
    params = { { "object", "moonloop.Manifest" } }, returns = { { "object", "moonloop.Manifest" } },
    doc = "Marks an object among returned `children`, and returns it: if the server refuses the change, because a "
      .. "field cannot be changed, the old object is deleted, and the new one is made when the old one is gone.",
  },
  {
    name = "exact", call = "moonloop.exact(object, path, …)",
    params = {
      { "object", "moonloop.Manifest" },
      { "...", "string", 'maps of the object, as "data" or "metadata.labels"; at most 8' },
    },
    returns = { { "object", "moonloop.Manifest" } },
    doc = "Marks an object among returned `children` or for `ctx.apply`, and returns it: these maps get the keys that "
      .. "it gives, and [keys of others are removed](children.md#maps-without-keys-of-others).",
  },
  {
    name = "watch", call = "moonloop.watch(Kind, function(object, ctx) … end [, when])",
    params = {
      { "kind", "moonloop.Kind" },
      { "map", "fun(object: moonloop.Object, ctx: moonloop.Context): (string|moonloop.ObjectName)[]?" },
      { "when?", "moonloop.When", "which changes count; all when left out" },
    },
    returns = { { "watch", "moonloop.Watch" } },
    doc = "An entry of `watches`. The function returns which reconciled objects a change of `object` concerns: a list "
      .. 'of `"namespace/name"` or `{ namespace =, name = }`, or nothing. It is called with the object after and '
      .. "before the change. It can read watched kinds (`ctx.get`, `ctx.list`); it cannot write or wait. Objects "
      .. "whose reconcile looked for `object` by name need not be returned. `when`: as in a controller.",
  },
  {
    name = "index", call = "moonloop.index(Kind, function(object) … end)",
    params = {
      { "kind", "moonloop.Kind" },
      { "keys", "fun(object: moonloop.Object): string[]|string|nil" },
    },
    returns = { { "index", "moonloop.Index" } },
    doc = "An index of a watched kind, made at the top of the file: "
      .. "[objects that refer to another](reading.md#objects-that-refer-to-another). The function returns the keys of "
      .. "an object: a list of strings, one string, or nothing.",
  },
  {
    name = "array", call = "moonloop.array(list)", generic = "T",
    params = { { "list?", "T[]" } }, returns = { { "list", "T[]" } },
    doc = "Marks the table as a list, so that it stays `[]` when it is empty, and returns it. Without an argument: a "
      .. "new table. Only a table without a metatable can be marked.",
  },
  {
    name = "null", type = "moonloop.Null",
    doc = "JSON's `null`. An absent field is `nil`. In the changes of `ctx.patch`, and in a returned status, it "
      .. "removes a field.",
  },
  {
    name = "is_null", call = "moonloop.is_null(value)",
    params = { { "value", "any" } }, returns = { { "is_null", "boolean" } },
    doc = "True if the value is `moonloop.null`.",
  },
  {
    name = "copy", call = "moonloop.copy(value)", generic = "T",
    params = { { "value", "T" } }, returns = { { "copy", "T" } },
    doc = "A deep copy, in plain tables that the script may change, also of an object that was read: "
      .. "[copies](library.md#copies-merges-and-comparisons).",
  },
  {
    name = "merge", call = "moonloop.merge(a, b)", generic = "T",
    params = { { "a", "T", "stays as it is" }, { "b", "table", "wins; stays as it is" } },
    returns = { { "merged", "T" } },
    doc = "A new object: `a` with `b` merged over it. Lists of Kubernetes are merged by their keys, other lists are "
      .. "replaced: [merges](library.md#copies-merges-and-comparisons).",
  },
  {
    name = "equal", call = "moonloop.equal(a, b)",
    params = { { "a", "any" }, { "b", "any" } }, returns = { { "is_equal", "boolean" } },
    doc = 'Are they the same? Tables by their contents, and amounts by their value (`"1Gi"` and `"1024Mi"`, `80` and '
      .. '`"80"`): [comparisons](library.md#copies-merges-and-comparisons).',
  },
}

api.modules[2] = {
  name = "ctx", var = "ctx", class = "moonloop.Context",
  {
    name = "get", call = "ctx.get(Kind, name [, namespace])",
    params = { { "kind", "moonloop.Kind" }, { "name", "string" }, NAMESPACE },
    returns = { { "object", "moonloop.Object?" } },
    errors = "NotFound Forbidden LimitExceeded",
    doc = "The object. Watched kinds (`reconciles`, `owns`, `watches`) are read from the cache, whose only error is "
      .. "`NotFound`; kinds of `uses` are read by a request.",
  },
  {
    name = "list", call = "ctx.list(Kind [, {ListOptions}])",
    params = { { "kind", "moonloop.Kind" }, { "options?", "moonloop.ListOptions" } },
    returns = { { "objects", "moonloop.Object[]?", "a list sorted by namespace and name" } },
    errors = "Invalid NotFound Forbidden LimitExceeded",
    doc = "A list sorted by namespace and name; from the cache, without errors, or by a request, as with `get`. An "
      .. "object must have all `labels` and [`fields`](reading.md#objects-that-refer-to-another); `owned = true`: only "
      .. "objects that this object controls; `index` and `key`: "
      .. "[only objects with that key](reading.md#objects-that-refer-to-another).",
  },
  {
    name = "ensure", call = "ctx.ensure(object [, {WriteOptions}])",
    params = { { "object", "moonloop.Manifest" }, { "options?", "moonloop.WriteOptions" } }, returns = { OBJECT },
    errors = "AlreadyExists Invalid NotFound Forbidden LimitExceeded",
    doc = "The object of that name. Creates it if there is none, and returns when the cache shows it. If an object of "
      .. "an owned kind exists and this object does not control it: `AlreadyExists`, which "
      .. "[says whose it is](children.md#whose-an-object-is). Nothing else of an existing object is changed: `apply` "
      .. "does that.",
  },
  {
    name = "create", call = "ctx.create(object)",
    params = { { "object", "moonloop.Manifest" } }, returns = { OBJECT },
    errors = "AlreadyExists Invalid NotFound Forbidden LimitExceeded",
    doc = "Creates the object without a look at the cache: `AlreadyExists` if there is one of that name.",
  },
  {
    name = "apply", call = "ctx.apply(object [, {WriteOptions}])",
    params = { { "object", "moonloop.Manifest" }, { "options?", "moonloop.WriteOptions" } }, returns = { OBJECT },
    errors = "AlreadyExists Invalid NotFound Forbidden LimitExceeded",
    doc = "Server-side apply: sets the given fields (and takes them over from other managers), removes those that this "
      .. "controller set before and that are not given any more, leaves other fields alone, creates the object if it "
      .. "is missing. If an object of an owned kind exists and this object does not control it: `AlreadyExists`, which "
      .. "[says whose it is](children.md#whose-an-object-is). Sent only when the object or the given fields have "
      .. "changed since the last time that this process applied it.",
  },
  {
    name = "patch", call = "ctx.patch(object, changes)",
    params = {
      { "object", "moonloop.Object", "as it was read" },
      { "changes", "table", "`moonloop.null` removes a field" },
    },
    returns = { OBJECT },
    errors = "Invalid NotFound Forbidden LimitExceeded",
    doc = "A merge patch of an object that was read. If the object has changed since, the reconcile ends and is tried "
      .. "again. Sends nothing if nothing would change. Not for `status`.",
  },
  {
    name = "delete", call = "ctx.delete(object)",
    params = { { "object", "moonloop.Object", "as it was read" } },
    returns = { { "done", "true?" } },
    errors = "Forbidden LimitExceeded",
    doc = "Deletes the object that was read: never a later one of the same name, and not if it has changed since (the "
      .. "reconcile then runs again). Returns `true`, also when the object is already gone.",
  },
  {
    name = "once", call = "ctx.once(name, { key = function() … end } [, namespace])",
    params = {
      { "name", "string" },
      { "functions", "table<string, fun(): string>", "1 to 100; each makes the value of its key" },
      { "namespace?", "string", "for a cluster-scoped object; else that of the reconciled object" },
    },
    returns = { { "values", "table<string, string>?", "the values of these keys" } },
    errors = "AlreadyExists Invalid NotFound Forbidden LimitExceeded",
    doc = "[Values that are made once](children.md#values-that-are-made-once), such as passwords: an owned Secret of "
      .. "that name with these keys. Returns its values, decoded. A function is called only when the Secret lacks its "
      .. "key. If this object does not control the Secret: `AlreadyExists`. Declare `Secret` in `owns`, or in `uses`.",
  },
  {
    name = "event", call = "ctx.event(reason, note [, {EventOptions}])",
    params = {
      { "reason", "string", "CamelCase, 1 to 128 bytes" },
      { "note", "string" },
      { "options?", 'moonloop.EventOptions|"Normal"|"Warning"', 'a type alone, or these; "Normal" when left out' },
    },
    doc = 'A Kubernetes Event on the reconciled object, or [on another one](reconciling.md#events-on-other-objects). '
      .. '`"Warning"` alone may stand for `{ type = "Warning" }`. A repeated Event raises the count of the first. The '
      .. "note is cut at 1024 bytes, the API's limit; at most 25 Events in one reconcile, the rest is dropped.",
  },
  {
    name = "log", call = "ctx.log(message [, fields])",
    params = { { "message", "string" }, { "fields?", "table" } },
    doc = "A log line with the controller, the object's namespace and name, and the run's `reconcileID`. At most 100 "
      .. "in one reconcile. The message is cut at 1024 bytes, the whole line holds 16 KiB.",
  },
  {
    name = "metric", call = "ctx.metric(name, value [, labels])",
    params = {
      { "name", "string", "of a metric in `metrics`" },
      { "value", "number" },
      { "labels?", "table<string, string>", "a value for each declared label" },
    },
    doc = "Sets a gauge, adds to a counter, or observes a value of a histogram: "
      .. "[metrics](metrics-and-http.md#metrics). At most 1000 in one reconcile.",
  },
  {
    name = "http", call = "ctx.http {HttpRequest}",
    params = { { "request", "moonloop.HttpRequest" } },
    returns = { { "response", "moonloop.HttpResponse?" } },
    errors = "Timeout Network TLS Forbidden LimitExceeded",
    doc = "Asks another server: [HTTP](metrics-and-http.md#http). Returns its answer, whatever the status: "
      .. "`{ status =, headers =, body = }`.",
  },
  {
    name = "now", call = "ctx.now()", params = {}, returns = { { "seconds", "number" } },
    doc = "Seconds since 1970, as a float. The only clock.",
  },
  {
    name = "invalid", call = "ctx.invalid(field, why [, {Beside}])", to_return = true,
    params = { { "field", "string", '"spec.schedule"' }, { "why", "string" }, BESIDE },
    returns = { { "outcome", "moonloop.Outcome", "for reconcile to return" } },
    doc = "The object asks for something impossible. An Event and the condition `Reconciled` say so; the key waits for "
      .. "an edit. The status and conditions of the third argument are written with it.",
  },
  {
    name = "terminal", call = "ctx.terminal(why [, {Beside}])", to_return = true,
    params = { { "why", "string" }, BESIDE },
    returns = { { "outcome", "moonloop.Outcome", "for reconcile to return" } },
    doc = "The reconcile is not tried again before the object changes. An Event and the condition `Reconciled` say so. "
      .. "The status and conditions of the second argument are written with it.",
  },
}

api.modules[3] = {
  name = "moonloop.time", var = "time",
  {
    name = "utc", call = "time.utc {Date}",
    params = { { "date", "moonloop.Date" } },
    returns = { { "seconds", "integer?" }, { "why", "string?" } },
    doc = "Seconds since 1970, or `nil, why`. Fields are whole numbers or strings of digits. They are checked, also "
      .. "the days of the month; `hour`, `min` and `sec` are 0 when left out.",
  },
  {
    name = "parse", call = "time.parse(text)",
    params = { { "text", "string" } },
    returns = { { "seconds", "number?", "an integer, or a float when the text has a fraction" }, { "why", "string?" } },
    doc = "Seconds of an RFC 3339 instant, or `nil, why`.",
  },
  {
    name = "format", call = "time.format(seconds [, zone])",
    params = { { "seconds", "number", "since 1970, in the years 1 to 9999; a fraction is cut off" }, ZONE },
    returns = { { "text", "string" } },
    doc = "RFC 3339, whole seconds: in UTC, as the fields of Kubernetes need it, or with the offset of a zone.",
  },
  {
    name = "duration", call = "time.duration(text)",
    params = { { "text", "string" } },
    returns = { { "seconds", "number?", "an integer when it is whole" }, { "why", "string?" } },
    doc = 'Seconds of `"5m30s"` (`h`, `m`, `s`, `ms`), or `nil, why`.',
  },
  {
    name = "zone", call = "time.zone(name)",
    params = { { "name", "string", "of the IANA database" } },
    returns = { { "zone", "string?" }, { "why", "string?" } },
    doc = 'The name of a [time zone](#time-zones), which the functions beside this take: `time.zone "Europe/Berlin"`. '
      .. "`nil, why` when there is none.",
  },
  {
    name = "fields", call = "time.fields(seconds [, zone])",
    params = { { "seconds", "number", "since 1970, in the years 1 to 9999; a fraction is cut off" }, ZONE },
    returns = { { "date", "moonloop.LocalDate" } },
    doc = "The fields that the clocks of a zone show: `year`, `month`, `day`, `hour`, `min`, `sec`; `weekday`, where 0 "
      .. 'is Sunday; `offset` in seconds east of UTC, and its `abbreviation` (`"CEST"`); `later` for the second of a '
      .. "time that comes twice.",
  },
  {
    name = "instant", call = "time.instant({LocalDate}, zone)",
    params = { { "date", "moonloop.LocalDate" }, { "zone", "string", '"Europe/Berlin"' } },
    returns = { { "seconds", "integer?" }, { "how", "string?", '"repeated" or "skipped"; why there are no seconds' } },
    doc = "Seconds since 1970 at which the clocks of a zone show a date and time, or `nil, why`. Its fields are those "
      .. "of `time.utc`. [A time that comes twice or not at all](#time-zones) has a second result.",
  },
  {
    name = "cron", call = "time.cron(expression, after [, zone])",
    params = { { "expression", "string", '"0 3 * * mon-fri"' }, { "after", "number", "seconds since 1970" }, ZONE },
    returns = { { "seconds", "integer?" }, { "why", "string?" } },
    doc = "The first instant after `after` that a cron expression names, in UTC or in a zone: five fields with names, "
      .. 'ranges, lists and steps (`"*/15 9-17 * * mon-fri"`; 0 and 7 are Sunday), or `@hourly`, `@daily`, `@weekly`, '
      .. "`@monthly`, `@yearly`. `nil, why` for a text that is no expression, and for an expression that never comes.",
  },
  {
    name = "cron_before", call = "time.cron_before(expression, before [, zone])",
    params = { { "expression", "string", '"0 3 * * mon-fri"' }, { "before", "number", "seconds since 1970" }, ZONE },
    returns = { { "seconds", "integer?" }, { "why", "string?" } },
    doc = "The last instant before `before` that a cron expression names.",
  },
}

api.modules[4] = {
  name = "cjson", var = "cjson",
  {
    name = "encode", call = "cjson.encode(value)",
    params = { { "value", "any" } }, returns = { { "text", "string" } },
    doc = "JSON of a value; raises an error for values that JSON cannot hold. Keys of plain tables are sorted.",
  },
  {
    name = "decode", call = "cjson.decode(text)",
    params = { { "text", "string" } }, returns = { { "value", "any" } },
    doc = "The value of a JSON text; raises an error for other texts. Integers stay exact, and `[]` and `{}` stay "
      .. "distinct.",
  },
  { name = "null", type = "moonloop.Null", doc = "The same as `moonloop.null`." },
  {
    name = "array", call = "cjson.array(list)", generic = "T",
    params = { { "list?", "T[]" } }, returns = { { "list", "T[]" } },
    doc = "The same as `moonloop.array`.",
  },
}

local QUANTITY = "string|number"
local FORM = { "form?", '"bytes"|"hex"|"base64"' }

api.modules[5] = {
  name = "moonloop.crypto", var = "crypto",
  {
    name = "password", call = "crypto.password(length [, alphabet])",
    params = {
      { "length", "integer", "1 to 1024" },
      { "alphabet?", "string", "2 to 256 different bytes" },
    },
    returns = { { "password", "string" } },
    doc = "A password of 1 to 1024 random characters, all equally likely: letters and digits that do not look alike, "
      .. "or those of `alphabet`.",
  },
  {
    name = "random", call = "crypto.random(bytes [, form])",
    params = { { "bytes", "integer", "1 to 65536" }, FORM },
    returns = { { "random", "string" } },
    doc = 'So many random bytes, 1 to 65536: as they are, or in the form `"hex"` or `"base64"`.',
  },
  {
    name = "uuid", call = "crypto.uuid()", params = {}, returns = { { "uuid", "string" } },
    doc = "A random UUID (version 4).",
  },
  {
    name = "sha256", call = "crypto.sha256(text [, form])",
    params = { { "text", "string", "at most 3 MiB" }, FORM },
    returns = { { "digest", "string" } },
    doc = 'The SHA-256 digest in hexadecimal digits, or in the form `"base64"` or `"bytes"`.',
  },
  {
    name = "hmac_sha256", call = "crypto.hmac_sha256(key, text [, form])",
    params = { { "key", "string" }, { "text", "string", "at most 3 MiB" }, FORM },
    returns = { { "digest", "string" } },
    doc = "The HMAC with SHA-256 of the text; the form as with `sha256`.",
  },
}

api.modules[6] = {
  name = "moonloop.base64", var = "base64",
  {
    name = "encode", call = "base64.encode(bytes)",
    params = { { "bytes", "string" } }, returns = { { "text", "string" } },
    doc = "The base64 of any bytes, with padding, as the `data` of a Secret needs it.",
  },
  {
    name = "decode", call = "base64.decode(text)",
    params = { { "text", "string" } }, returns = { { "bytes", "string?" }, { "why", "string?" } },
    doc = "The bytes, or `nil, why`. Strict: a line end, a missing `=` or a bit left over is an error.",
  },
}

api.modules[7] = {
  name = "moonloop.quantity", var = "quantity",
  {
    name = "parse", call = "quantity.parse(value)",
    params = { { "value", QUANTITY } },
    returns = { { "text", "string?", "canonical" }, { "why", "string?" } },
    doc = "The quantity as an API server would store it: `0.5` is `500m`, `1.5Gi` is `1536Mi`. `nil, why` for a value "
      .. "that is no quantity, and for 10^36 and more.",
  },
  {
    name = "format", call = "quantity.format(value [, form])",
    params = { { "value", QUANTITY }, { "form?", '"binary"|"decimal"|"exponent"' } },
    returns = { { "text", "string?" }, { "why", "string?" } },
    doc = 'The same in another form: `"binary"` (`1536Mi`), `"decimal"` (`1500M`) or `"exponent"` (`1500e6`).',
  },
  {
    name = "number", call = "quantity.number(value)",
    params = { { "value", QUANTITY } }, returns = { { "number", "number?" }, { "why", "string?" } },
    doc = "As a number: an integer when it is whole and fits, else the nearest float.",
  },
  {
    name = "compare", call = "quantity.compare(a, b)",
    params = { { "a", QUANTITY }, { "b", QUANTITY } }, returns = { { "order", "integer?" }, { "why", "string?" } },
    doc = "-1, 0 or 1.",
  },
  {
    name = "add", call = "quantity.add(a, b)",
    params = { { "a", QUANTITY }, { "b", QUANTITY } }, returns = { { "sum", "string?" }, { "why", "string?" } },
    doc = "The sum, exact, in the form of `a` (of `b` if `a` is 0).",
  },
  {
    name = "subtract", call = "quantity.subtract(a, b)",
    params = { { "a", QUANTITY }, { "b", QUANTITY } }, returns = { { "difference", "string?" }, { "why", "string?" } },
    doc = "The difference, likewise.",
  },
  {
    name = "multiply", call = "quantity.multiply(a, b)",
    params = { { "a", QUANTITY }, { "b", QUANTITY } }, returns = { { "product", "string?" }, { "why", "string?" } },
    doc = "The product, in the form of `a`, rounded up to a multiple of 10^-9, as Kubernetes does.",
  },
}

api.modules[8] = {
  name = "moonloop.yaml", var = "yaml",
  {
    name = "encode", call = "yaml.encode(value)",
    params = { { "value", "any" } }, returns = { { "text", "string" } },
    doc = "The YAML of a value, which kubectl reads as that value. Keys of plain tables are sorted. Raises the errors "
      .. "of `cjson.encode`.",
  },
  {
    name = "decode", call = "yaml.decode(text)",
    params = { { "text", "string", "at most 1 MiB" } }, returns = { { "value", "any" }, { "why", "string?" } },
    doc = "The value of a text with one document, read as kubectl reads it, or `nil, why` with the line. "
      .. "`moonloop.null` for an empty one.",
  },
}

api.modules[9] = {
  name = "moonloop.labels", var = "labels",
  {
    name = "match", call = "labels.match(selector, labels)",
    params = { { "selector", "string|moonloop.LabelSelector" }, { "labels?", "table<string, string>" } },
    returns = { { "selects", "boolean?" }, { "why", "string?" } },
    doc = "Does the selector select an object with these labels? It is a string as for `kubectl -l`, or a "
      .. "LabelSelector with `matchLabels` and `matchExpressions`; one without requirements selects all. `nil, why` "
      .. "for a bad one.",
  },
}

api.modules[10] = {
  name = "moonloop.regex", var = "regex",
  {
    name = "match", call = "regex.match(text, pattern)",
    params = { { "text", "string" }, { "pattern", "string", "at most 1024 bytes" } },
    returns = { { "...", "string|false?", "the groups, or all of the match when there are none" } },
    doc = "The groups of the first match, or all of it when the pattern has none; `nil` when nothing matches. A group "
      .. "that took no part is `false`.",
  },
  {
    name = "find", call = "regex.find(text, pattern [, init])",
    params = {
      { "text", "string" }, { "pattern", "string" },
      { "init?", "integer", "where the match may begin; below 0 from the end" },
    },
    returns = {
      { "from", "integer?" }, { "to", "integer?" },
      { "groups", "table<any, string|false>", "by number and by name" },
    },
    doc = "First and last place of the first match, and a table of its groups by number and by name: `groups[1]`, and "
      .. "`groups.tag` for `(?P<tag>…)`.",
  },
  {
    name = "gmatch", call = "regex.gmatch(text, pattern)",
    params = { { "text", "string" }, { "pattern", "string" } },
    returns = { { "next", "fun(): any" } },
    doc = "For a loop over all matches: gives what `match` returns. An empty match that touches the one before it does "
      .. "not count.",
  },
  {
    name = "gsub", call = "regex.gsub(text, pattern, replacement [, max])",
    params = {
      { "text", "string" }, { "pattern", "string" }, { "replacement", "string|table|function" },
      { "max?", "integer", "at most so many matches" },
    },
    returns = { { "text", "string" }, { "count", "integer" } },
    doc = "The text with each match replaced, and how many: by a template with `$1`, `${name}`, `$0` for all of it and "
      .. "`$$` for a dollar; by the value in a table for the first group; or by what a function returns for the groups "
      .. "(`nil` or `false` keeps the match).",
  },
  {
    name = "quote", call = "regex.quote(text)",
    params = { { "text", "string" } }, returns = { { "pattern", "string" } },
    doc = "The pattern that matches this text and nothing else.",
  },
}

-- Types, in the order of the stub. `list`: the name under which fields.lua has the fields, or the values, for messages.
-- A field: { name, type, doc }, and `example` for another first cell in the docs.
local function type_of(entry)
  api.types[#api.types + 1] = entry
end


type_of {
  name = "Kind", list = "kind",
  { "apiVersion", "string" },
  { "kind", "string" },
  { "labels?", "string", "of its selection" },
  { "fields?", "string", "of its selection" },
  { "metadata_only", "boolean", "of its selection" },
}

type_of {
  name = "Selection", list = "selection",
  doc = "Which part of a kind is watched: of `owns` and `watches`, and without `metadata_only` of `reconciles`.",
  {
    "labels?", "string", "A label selector as for `kubectl -l`: only objects that match it. Its syntax is checked when "
      .. "the script is loaded.",
  },
  {
    "fields?", "string", 'A field selector, `"spec.nodeName=n1"`: only objects that match it. The server decides which '
      .. "fields of a kind can be selected. If it does not know a field, the log says so (`field label not "
      .. "supported`), and the script does not go live.",
  },
  {
    "metadata_only?", "boolean", "Only the `metadata` of each object: enough for a script that looks at names, "
      .. "labels and owners. Not for the kind in `reconciles`.", example = "metadata_only = true",
  },
}

type_of { name = "Watch", doc = "Made by `moonloop.watch`." }
type_of { name = "Index", doc = "Made by `moonloop.index`." }
type_of { name = "Controller", doc = "Made by `moonloop.controller`." }
type_of { name = "Null", doc = "JSON's `null`." }

type_of {
  name = "WriteOptions", list = "write",
  {
    "adopt?", "boolean", "`true`: takes over an object that [nobody controls](children.md#whose-an-object-is), whoever "
      .. "made it.",
  },
}

type_of {
  name = "Owned", list = "owned", doc = "An entry of `owns`: a kind, and how the script owns its objects.",
  { "kind", "moonloop.Kind" },
  {
    "adopt?", "boolean", "`true`: `ctx.ensure`, `ctx.apply` and `children` take over objects of this kind that "
      .. "[nobody controls](children.md#whose-an-object-is), whoever made them.",
  },
}

type_of {
  name = "OwnerReference",
  { "apiVersion", "string" },
  { "kind", "string" },
  { "name", "string" },
  { "uid", "string" },
  { "controller?", "boolean" },
  { "blockOwnerDeletion?", "boolean" },
}

type_of {
  name = "Metadata",
  { "name", "string" },
  { "namespace?", "string" },
  { "uid", "string" },
  { "resourceVersion", "string" },
  { "generation?", "integer" },
  { "creationTimestamp", "string" },
  { "deletionTimestamp?", "string" },
  { "labels", "table<string, string>", "an empty table that cannot be filled when there are none" },
  { "annotations", "table<string, string>", "an empty table that cannot be filled when there are none" },
  { "ownerReferences?", "moonloop.OwnerReference[]" },
  { "finalizers?", "string[]" },
}

type_of {
  name = "Object",
  doc = "An object as a reconcile gets it: a plain table, its own copy. If the object has no `spec` or `status`, it "
    .. "reads as an empty table that cannot be filled.",
  { "apiVersion", "string" },
  { "kind", "string" },
  { "metadata", "moonloop.Metadata" },
  { "spec", "table" },
  { "status", "table" },
  { "[string]", "any" },
}

type_of {
  name = "ManifestMetadata",
  { "name", "string" },
  NAMESPACE,
  { "labels?", "table<string, string>" },
  { "annotations?", "table<string, string>" },
  { "ownerReferences?", "moonloop.OwnerReference[]" },
}

type_of {
  name = "Manifest", doc = "An object as a manifest writes it.",
  { "apiVersion", "string" },
  { "kind", "string" },
  { "metadata", "moonloop.ManifestMetadata" },
  { "[string]", "any" },
}

type_of {
  name = "ErrorKind",
  values = { "NotFound", "AlreadyExists", "Invalid", "Forbidden", "Unsupported", "LimitExceeded", "Timeout",
    "Network", "TLS" },
}

type_of {
  name = "Error", list = "error",
  {
    "kind", "moonloop.ErrorKind", "`{ErrorKind}`. `Unsupported`: the server lacks the verb. "
      .. "`LimitExceeded`: the request or its answer is larger than the host allows. `Timeout`, `Network` "
      .. "(no connection) and `TLS` come from `ctx.http` alone.", example = "err.kind",
  },
  { "code", "integer", "The HTTP status; 0 when there was no answer.", example = "err.code" },
  { "message", "string", "The cause. `tostring(err)` also names the request and the kind.", example = "err.message" },
}

type_of {
  name = "ListOptions", list = "list",
  { "namespace?", "string", 'that of the reconciled object when left out; "*" for all' },
  { "labels?", "table<string, string>", "an object must have all of them" },
  { "owned?", "boolean", "only objects that the reconciled object controls" },
  { "fields?", "table<string, string>", 'values that an object must have: `{ ["spec.nodeName"] = "n1" }`' },
  { "index?", "moonloop.Index", "of moonloop.index, with `key`: only objects that have this key in it" },
  { "key?", "string" },
}

type_of {
  name = "EventObject",
  doc = "An object that was read or that the script makes; or a reference to one, as in `ownerReferences` or "
    .. "`involvedObject`, whose other fields are left aside.",
  { "apiVersion", "string" },
  { "kind", "string" },
  { "metadata?", "table", "of an object; else the fields below" },
  { "name?", "string" },
  { "namespace?", "string", "that of the reconciled object when left out, if the script declares the kind" },
  { "uid?", "string" },
  { "[string]", "any" },
}

type_of {
  name = "EventOptions", list = "event_options",
  { "type?", '"Normal"|"Warning"', '"Normal" when left out' },
  { "about?", "moonloop.EventObject", "the object in place of the reconciled one" },
  { "related?", "moonloop.EventObject", "a second object that the Event has to do with" },
}

type_of { name = "Outcome", doc = "Made by `ctx.invalid` and `ctx.terminal`." }

type_of {
  name = "Condition", list = "condition", doc = "Of the object's `status.conditions`; its type is the key.",
  { "status", 'boolean|"Unknown"|"True"|"False"' },
  { "reason?", "string", "one word in CamelCase; the type when left out" },
  { "message?", "string", "for people; empty when left out" },
}

type_of {
  name = "Beside", list = "beside", doc = "Status and conditions to write with `ctx.invalid` or `ctx.terminal`.",
  { "status?", "table" },
  { "conditions?", "table<string, moonloop.Condition|moonloop.Null>" },
}

type_of {
  name = "Result", list = "result",
  {
    "status?", "table", "Merged over the object's status, and written if that changes it: "
      .. "return the current status each time; the host sends only changes. `moonloop.null` "
      .. "removes a field.", example = "{ status = {…} }",
  },
  {
    "conditions?", "table<string, moonloop.Condition|moonloop.Null>", "[Conditions](reconciling.md#conditions) of the "
      .. "object by their type, as in `{ Ready = { status = true } }`.", example = "{ conditions = {…} }",
  },
  {
    "children?", "moonloop.Manifest[]", "All objects of the kinds in `owns` that this object is to have: each is "
      .. "applied, then the others are deleted ([Children](children.md#children)).", example = "{ children = { … } }",
  },
  {
    "requeue_after?", "number|string", "Calls again after that time (also a number of seconds), if nothing changes "
      .. "before.",
    example = '{ requeue_after = "5m30s" }',
  },
  {
    "requeue_at?", "number", "Calls again at that instant, in seconds since 1970. `status` and `conditions` can be in "
      .. "the same table.",
    example = "{ requeue_at = seconds }",
  },
}

type_of {
  name = "ObjectName",
  { "name", "string" },
  { "namespace?", "string" },
}

type_of {
  name = "Part", list = "part",
  doc = "Which part of an object has to change. `generation`: its spec, or any field outside of metadata and status.",
  values = { "generation", "labels", "annotations", "status" },
}

type_of {
  name = "When",
  doc = "Which changes count: those of these parts, or those for which the function returns true. The creation and "
    .. "the deletion of an object, and the begin of its deletion, always count.",
  is = "moonloop.Part[]|fun(old: moonloop.Object, new: moonloop.Object): boolean",
}

type_of {
  name = "Conversion", list = "conversion",
  doc = "Both directions between another version of a kind and the version that is reconciled.",
  { "to", "fun(object: moonloop.Object): moonloop.Object?", "from the other version to the reconciled one" },
  { "from", "fun(object: moonloop.Object): moonloop.Object?", "from the reconciled version to the other one" },
}

type_of {
  name = "Cause", list = "cause", doc = "A field that `validate` refuses.",
  { "field", "string", 'its path: "spec.size"' },
  { "message", "string" },
}

type_of {
  name = "Refusal", doc = "Why an object is refused: a text, fields, or the result of `ctx.invalid`.",
  is = "string|moonloop.Cause[]|moonloop.Outcome",
}

type_of {
  name = "LabelSelector", list = "selector", doc = "As in a manifest.",
  { "matchLabels?", "table<string, string>" },
  { "matchExpressions?", "table[]" },
}

type_of {
  name = "Webhooks", list = "webhooks",
  {
    "failure_policy?", '"Fail"|"Ignore"', "If the webhook cannot be called or fails, the API server refuses the write "
      .. '(`"Fail"`, the default), or goes on without the webhook (`"Ignore"`).', example = 'failure_policy = "Ignore"',
  },
  {
    "timeout_seconds?", "integer", "How long the API server waits for an answer, 1 to 30, by default 10.",
    example = "timeout_seconds = 5",
  },
  {
    "match_policy?", '"Equivalent"|"Exact"', "`\"Exact\"`: only writes in the version of `reconciles`. Default: writes "
      .. "in all versions, which the API server converts first.", example = 'match_policy = "Exact"',
  },
  {
    "namespace_selector?", "moonloop.LabelSelector", "Only objects in namespaces with these labels, as in a manifest: "
      .. '`{ matchLabels = { env = "prod" } }`.', example = "namespace_selector = {…}",
  },
  {
    "object_selector?", "moonloop.LabelSelector", "Only objects with these labels.", example = "object_selector = {…}",
  },
}

type_of {
  name = "Rollout", list = "rollout",
  {
    "mode?", '"guarded"|"canary"|"plan"|"immediate"', '`"guarded"`: a version that would do harm is held or refused. '
      .. '`"canary"`: likewise, and it works for one object first, then for more and more. `"plan"`: a version that '
      .. 'would change anything is held, too. `"immediate"`: each version takes over.',
    example = 'mode = "plan"',
  },
  {
    "max_deletes?", "integer", "A version that would delete more objects than this, and more than "
      .. "`max_deletes_percent`, is held; 0 to 1000000.", example = "max_deletes = 10",
  },
  {
    "max_deletes_percent?", "integer", "In a hundred of the objects that the tried ones own; 0 to 100.",
    example = "max_deletes_percent = 5",
  },
  {
    "max_failures_percent?", "integer", "A version that fails for more than so many in a hundred objects (of 5 or "
      .. "more), for which the running one does not, is refused; 0 to 100.", example = "max_failures_percent = 20",
  },
  {
    "settle_seconds?", "integer", "After all of its objects were reconciled, a new version has to do no harm for so "
      .. "long: in each step of a canary, and until it is not taken back by itself any more; 0 to 86400.",
    example = "settle_seconds = 10",
  },
}

type_of {
  name = "Declaration", list = "controller",
  {
    "name", "string", "A DNS label. The name in logs, events and metrics; writes have the field manager "
      .. "`moonloop-NAME`. These names are reserved for the host's own log lines: `apiserver`, `client`, `connect`, "
      .. "`credentials`, `dev`, `election`, `host`, `informer`, `log`, `scripts`, `shard`, `watchdog`.",
  },
  {
    "formerly?", "string[]", "Names that the controller had before, at most 8: "
      .. "[another name](children.md#another-name).",
  },
  {
    "reconciles", "moonloop.Kind", "The kind whose objects are reconciled: each object once at the start, and after "
      .. "each change. The status that the script itself returned is no such change.",
  },
  {
    "reconcile", "fun(object: moonloop.Object, ctx: moonloop.Context): (moonloop.Result|moonloop.Outcome)?",
    "`function(object, ctx)`. Not called for an object that is being deleted.",
  },
  {
    "finalize?", "fun(object: moonloop.Object, ctx: moonloop.Context): (moonloop.Result|moonloop.Outcome)?",
    "`function(object, ctx)`, called in place of `reconcile` for an object that is being deleted: "
      .. "[cleaning up](children.md#cleaning-up).",
  },
  {
    "when?", "moonloop.When", 'Which changes of the object call `reconcile`, if not all: a list of `"generation"` '
      .. '(its spec, or any field outside of metadata and status), `"labels"`, `"annotations"`, `"status"`; or '
      .. "`function(old, new)` that returns true or false. The creation of an object, and the begin of its deletion, "
      .. "always count.",
  },
  {
    "owns?", "(moonloop.Kind|moonloop.Owned)[]", "A list of kinds. The reconciled object becomes the controller owner "
      .. "of each object of these kinds that the script creates: deleting the owner deletes them, and a change of one "
      .. "of them calls `reconcile` for the owner. `{ kind = Kind, adopt = true }` in place of a kind: objects that "
      .. "[nobody controls](children.md#whose-an-object-is) are taken over. Not the kind in `reconciles`: "
      .. "[what to do then](children.md#an-object-of-its-own-kind).",
  },
  { "watches?", "moonloop.Watch[]", "A list of `moonloop.watch(…)`: changes that concern more than the owner." },
  {
    "uses?", "moonloop.Kind[]", "A list of kinds that are not watched: each read is a request. Good for Secrets and "
      .. "for objects that are rarely needed.",
  },
  {
    "max_concurrent?", "integer", "Reconciles in flight, 1 to 10000, by default 1000. One object is never reconciled "
      .. "twice at a time.",
  },
  {
    "default?", "fun(object: moonloop.Object): moonloop.Object?", "`function(object)` fills in missing fields of an "
      .. "object that somebody creates or updates, before it is stored: it changes the object, and returns it or "
      .. "nothing. See [webhooks](webhooks.md).",
  },
  {
    "validate?", "fun(new: moonloop.Object, old: moonloop.Object?, ctx: moonloop.Context): moonloop.Refusal?, any",
    "`function(new, old, ctx)` checks an object that is created (`old` is nil) or updated: returns nothing, or why it "
      .. "is refused.",
  },
  {
    "convert?", "table<string, moonloop.Conversion>", "The other versions of the kind: "
      .. "`{ v1alpha1 = { to = function(object) … end, from = function(object) … end } }`. `to` makes the version in "
      .. "`reconciles` of an object in v1alpha1, `from` the reverse.",
  },
  { "webhooks?", "moonloop.Webhooks", "How the API server calls `default` and `validate`." },
  {
    "metrics?", "table<string, moonloop.Metric>",
    "[Metrics](metrics-and-http.md#metrics) that the script sets, by their names.",
  },
  {
    "http?", "string[]", 'Origins that the script may ask with [`ctx.http`](metrics-and-http.md#http), as in '
      .. '`{ "https://billing.example.com", "https://*.example.org" }`; at most 16.',
  },
  {
    "wakes?", '"all"', '`"all"`: every change of an owned or watched object calls `reconcile`, whether the last '
      .. "run read the changed fields or not.",
  },
  {
    "rollout?", 'moonloop.Rollout|"guarded"|"canary"|"plan"|"immediate"', "How much harm the next version may do: a "
      .. "mode, or [limits](changing.md#limits). It is asked of the version that runs, not of the one that takes over.",
  },
}

type_of {
  name = "LabelRequirement", module = "moonloop.labels",
  { "key", "string" },
  { "operator", '"In"|"NotIn"|"Exists"|"DoesNotExist"' },
  { "values?", "string[]" },
}

type_of {
  name = "LabelSelector", module = "moonloop.labels",
  { "matchLabels?", "table<string, string>" },
  { "matchExpressions?", "moonloop.LabelRequirement[]" },
}

type_of {
  name = "MetricType", list = "metric_type", values = { "counter", "gauge", "histogram" },
}

type_of {
  name = "Metric", list = "metric",
  { "type", "moonloop.MetricType" },
  { "help", "string", "one line" },
  { "labels?", "string[]", "names of labels, at most 8" },
  { "buckets?", "number[]", "upper bounds of a histogram, ascending" },
  { "sum?", "boolean", "a gauge that adds up over the objects: each sets its part, which goes with it" },
}

type_of {
  name = "HttpRequest", list = "http_request",
  { "method?", '"GET"|"HEAD"|"POST"|"PUT"|"PATCH"|"DELETE"', '"GET" when left out' },
  { "url", "string", "below a declared origin" },
  { "headers?", "table<string, string>", "at most 32" },
  { "body?", "string", "at most 1 MiB" },
  { "timeout?", "number|string", 'seconds, or as in "5s": at most 10 s, which is also the default' },
}

type_of {
  name = "HttpResponse",
  { "status", "integer" },
  { "headers", "table<string, string>", "by names in lower case; several of one name are joined with a comma" },
  { "body", "string" },
}

type_of {
  name = "Date", module = "moonloop.time",
  doc = "Whole numbers or strings of digits, as string.match gives them.",
  { "year", "integer|string" },
  { "month", "integer|string" },
  { "day", "integer|string" },
  { "hour?", "integer|string" },
  { "min?", "integer|string" },
  { "sec?", "integer|string" },
}

type_of {
  name = "LocalDate", module = "moonloop.time",
  doc = "A date and time as the clocks of a zone show it. time.fields sets all fields; time.instant reads those of "
    .. "moonloop.Date and `later`.",
  { "year", "integer|string" },
  { "month", "integer|string" },
  { "day", "integer|string" },
  { "hour?", "integer|string" },
  { "min?", "integer|string" },
  { "sec?", "integer|string" },
  { "later?", "boolean", "the second of a time that comes twice" },
  { "weekday?", "integer", "0 is Sunday" },
  { "offset?", "integer", "seconds east of UTC" },
  { "abbreviation?", "string", '"CEST"' },
}

-- The functions of Lua's own library that a script has. `more`: those that exist only where Lua was built with them.
api.language = {
  { "assert", "v?v" },
  { "error", "v?i" },
  { "getmetatable", "v" },
  { "ipairs", "t" },
  { "next", "t?v" },
  { "pairs", "t" },
  { "pcall", "f?vvv" },
  { "rawequal", "vv" },
  { "rawget", "tv" },
  { "rawlen", "t" },
  { "rawset", "tvv" },
  { "require", "s" },
  { "select", "i?vvv" },
  { "setmetatable", "tm" },
  { "tonumber", "s?i" },
  { "tostring", "v" },
  { "type", "v" },
  { "math.abs", "n" },
  { "math.acos", "n" },
  { "math.asin", "n" },
  { "math.atan", "n?n" },
  { "math.ceil", "n" },
  { "math.cos", "n" },
  { "math.deg", "n" },
  { "math.exp", "n" },
  { "math.floor", "n" },
  { "math.fmod", "nn" },
  { "math.log", "n?n" },
  { "math.max", "n?nn" },
  { "math.min", "n?nn" },
  { "math.modf", "n" },
  { "math.rad", "n" },
  { "math.random", "?ii" },
  { "math.sin", "n" },
  { "math.sqrt", "n" },
  { "math.tan", "n" },
  { "math.tointeger", "v" },
  { "math.type", "v" },
  { "math.ult", "ii" },
  { "string.byte", "s?ii" },
  { "string.char", "?iii" },
  { "string.find", "sp?ib" },
  { "string.format", "F?vvv" },
  { "string.gmatch", "sp?i" },
  { "string.gsub", "spr?i" },
  { "string.len", "s" },
  { "string.lower", "s" },
  { "string.match", "sp?i" },
  { "string.rep", "si?s" },
  { "string.reverse", "s" },
  { "string.sub", "si?i" },
  { "string.upper", "s" },
  { "table.concat", "t?sii" },
  { "table.insert", "tv" },
  { "table.insert", "tiv" },
  { "table.move", "tiii?t" },
  { "table.pack", "?vvv" },
  { "table.remove", "t?i" },
  { "table.sort", "t?c" },
  { "table.unpack", "t?ii" },
  { "utf8.char", "?iii" },
  { "utf8.codepoint", "s?iib" },
  { "utf8.codes", "s?b" },
  { "utf8.len", "s?iib" },
  { "utf8.offset", "si?i" },
}
api.more = {
  "math.atan2", "math.cosh", "math.frexp", "math.ldexp", "math.log10", "math.pow", "math.sinh", "math.tanh",
}

-- The API that only tests have (docs/testing.md).
local WORLD_NAMESPACE = { "namespace?", "string", '"default" when left out' }

api.test_modules[1] = {
  name = "world", var = "world", class = "moonloop.testing.World",
  doc = "Each method, except those that only read, lets the operator finish its work at this instant.",
  {
    name = "apply", call = "world.apply(object)",
    params = { { "what", "moonloop.Manifest|moonloop.Manifest[]|string" } },
    doc = "Applies an object, a list of them, or the documents of a YAML text, as `kubectl apply --server-side` would.",
  },
  {
    name = "patch", call = "world.patch(Kind, name, changes [, subresource [, namespace]])",
    params = {
      { "kind", "moonloop.Kind" }, { "name", "string" }, { "changes", "table" }, { "subresource?", "string" },
      WORLD_NAMESPACE,
    },
    doc = "Merges changes into an object; `moonloop.null` removes a field. For changes of its status, the subresource "
      .. 'is `"status"`; others are those of the server, such as `"scale"`.',
  },
  {
    name = "delete", call = "world.delete(Kind, name [, namespace])",
    params = { { "kind", "moonloop.Kind" }, { "name", "string" }, WORLD_NAMESPACE },
    doc = "Deletes an object, and the objects that it owns. One with finalizers stays until these are gone, and the "
      .. "script's `finalize` is called.",
  },
  {
    name = "get", call = "world.get(Kind, name [, namespace])",
    params = { { "kind", "moonloop.Kind" }, { "name", "string" }, WORLD_NAMESPACE },
    returns = { { "object", "moonloop.Object?" } },
    doc = "The object, or nil.",
  },
  {
    name = "list", call = "world.list(Kind [, selector])",
    params = { { "kind", "moonloop.Kind" }, { "selector?", "string", "of labels" } },
    returns = { { "objects", "moonloop.Object[]" } },
    doc = 'All objects of a kind, by namespace and name; the selector is a label selector: `"app=a"`.',
  },
  {
    name = "expect", call = "world.expect(Kind, name, fields [, namespace])",
    params = { { "kind", "moonloop.Kind" }, { "name", "string" }, { "fields", "table|false" }, WORLD_NAMESPACE },
    doc = "Fails unless the object exists and has these fields; the message shows each difference. `false` as "
      .. "fields: it must not exist.",
  },
  {
    name = "advance", call = 'world.advance("5m")',
    params = { { "duration", "string|number", '"5m", or seconds' } },
    doc = "Advances the clock by a duration, or by seconds (a number), and stops at each instant at which something is "
      .. "due.",
  },
  {
    name = "settle", call = "world.settle()", params = {},
    returns = { { "waiting", "moonloop.testing.Waiting[]" } },
    doc = "Runs until no work is left. The clock advances only to tries again that are due within a second, as after a "
      .. "conflict. Returns the objects that wait then: [below](#objects-that-wait).",
  },
  {
    name = "now", call = "world.now()", params = {}, returns = { { "seconds", "number" } },
    doc = "Seconds since 1970.",
  },
  {
    name = "pods", call = "world.pods(rule)",
    params = { { "rule", "moonloop.testing.PodRule" } },
    doc = "From now on pods do as the rule says: [below](#pods).",
  },
  {
    name = "finish_pod", call = "world.finish_pod(name [, how [, namespace]])",
    params = { { "name", "string" }, { "how?", '"Succeeded"|"Failed"|integer' }, WORLD_NAMESPACE },
    doc = 'Ends a pod: `"Succeeded"` (default), `"Failed"`, or an exit code. Its restartPolicy decides what follows.',
  },
  {
    name = "events", call = "world.events([Kind [, name [, by]]])",
    params = {
      { "kind?", "moonloop.Kind" }, { "name?", "string" },
      { "by?", "string", "the name of a controller: a script's, or of the cluster, as `deployment-controller`" },
    },
    returns = { { "events", "moonloop.testing.Event[]" } },
    doc = "The Events on objects, of this kind and name and by this controller if given, oldest first: `type`, "
      .. '`reason`, `note`, `kind`, `name`, `namespace`, `related`, `by`. `world.events(nil, nil, "site")` are those '
      .. 'of the script `site`. The operator sends them with a short delay: call `world.advance "1s"` first.',
  },
  {
    name = "requests", call = "world.requests([verb [, path]])",
    params = { { "verb?", "string" }, { "path?", "string", "a part of it" } },
    returns = { { "requests", "moonloop.testing.Request[]" } },
    doc = 'The requests of the operator: `verb`, `path`, `code`. `#world.requests("create", "/pods")`',
  },
  {
    name = "fault", call = "world.fault(name [, where])",
    params = { { "name", "moonloop.testing.Fault" }, { "where?", "moonloop.testing.Where" } },
    returns = { { "heal", "fun()" } },
    doc = "The next matching request fails; returns a function that removes the fault.",
  },
  {
    name = "round_trip", call = "world.round_trip(object)",
    params = { { "object", "moonloop.Manifest" } },
    doc = "Converts the object to each other version and back with the script's `convert`. Fails if the result "
      .. "differs, and shows how.",
  },
  {
    name = "metric", call = "world.metric(name [, labels])",
    params = { { "name", "string" }, { "labels?", "table<string, string>" } },
    returns = { { "value", "number?" } },
    doc = "The value of the first series with these labels, of a metric that the script sets by `ctx.metric`; of a "
      .. "histogram, the number of its values. Nil if there is none.",
  },
  {
    name = "http", call = "world.http(function(request) … end)",
    params = { { "answer", "fun(request: table): table?, string?" } },
    doc = "Answers the script's `ctx.http`: the function gets `{ method =, url =, headers =, body = }` and returns "
      .. "`{ status =, headers =, body = }`; nothing: a time-out; nil and a text: no connection.",
  },
  {
    name = "restart", call = "world.restart()", params = {},
    doc = "Kills the operator without a shutdown, and starts another one.",
  },
}

api.test_modules[2] = {
  name = "moonloop.testing", var = "testing",
  {
    name = "world", call = "testing.world(options)",
    params = { { "options?", "moonloop.testing.Options" } },
    returns = { { "world", "moonloop.testing.World" } },
    doc = "Starts a new, empty cluster and ends the one before.",
  },
}

type_of {
  name = "testing.Options", module = "moonloop.testing", given = true,
  { "now?", "string|number", "the time: RFC 3339, or seconds since 1970. Default 2026-01-01T00:00:00Z" },
  { "scripts?", "string|string[]", "paths of scripts or folders. Default: the script beside the test" },
  {
    "crds?", "string|string[]", "paths of CustomResourceDefinitions. Default: the folder `crds/` beside the test's "
      .. "folder, or in it",
  },
  {
    "pods?", '"run"|"succeed"|"fail"|fun(pod: moonloop.Object, container: table): { after: number, code: integer }?',
    'what pods do once they run: `"run"` (default: until `finish_pod`), `"succeed"`, `"fail"`, or a function of pod '
      .. "and container that returns `{ after = seconds, code = exit code }`",
  },
  { "seed?", "integer", "for everything random: uids, generated names, jitter, the script's draws. Default 1" },
}

type_of {
  name = "testing.PodRule", module = "moonloop.testing", given = true,
  { "matching?", "string", 'a label selector: `"app=a,tier!=b"`. Default: all pods' },
  { "name?", "string", "of the one pod" },
  {
    "ready_after?", "number|false", "seconds from the start of a container until it is ready; `false`: never. Until "
      .. "then its readiness probe fails; if it has none, it starts only then",
  },
  { "exit_code?", "integer", "the containers end, with this code. 0 when only `exit_after` is given" },
  { "exit_after?", "number", "seconds until they end. Default 0" },
  { "times?", "integer", "for so many starts of containers. Default: for all" },
}

type_of {
  name = "testing.Waiting", module = "moonloop.testing",
  { "controller", "string" },
  { "kind", "string", "of the object" },
  { "name", "string", "of the object" },
  { "namespace?", "string", "of the object" },
  {
    "state", '"fails"|"slowed"|"paused"|"cache"|"due"', 'of `"fails"` the last run failed; `"due"` asked to be called '
      .. 'again; `"cache"` waits until the cache shows what the run wrote',
  },
  { "why", "string", "the same in words" },
  { "at?", "number", "when it runs again, in seconds since 1970. Nil: nothing is planned" },
  { "failures", "integer", "in a row" },
  { "error?", "string", "of the last run" },
}

type_of {
  name = "testing.Event", module = "moonloop.testing",
  { "type", '"Normal"|"Warning"' },
  { "reason", "string" },
  { "note", "string" },
  { "kind", "string", "of the object" },
  { "name", "string", "of the object" },
  { "namespace", "string", "of the Event: that of the object, or default" },
  { "related", "moonloop.EventObject?", "the related object" },
  { "by", "string", "the controller that reports it" },
}

type_of {
  name = "testing.Request", module = "moonloop.testing",
  { "verb", "string", '"create", "patch", …' },
  { "path", "string" },
  { "code", "integer" },
}

type_of {
  name = "testing.Fault", module = "moonloop.testing",
  values = {
    "conflict", "forbidden", "internal_error", "unavailable", "too_many_requests", "lost_request", "lost_reply",
    "timeout", "stale_cache",
  },
}

type_of {
  name = "testing.Where", module = "moonloop.testing", given = true,
  { "verb?", '"create"|"update"|"patch"|"delete"|"get"|"list"' },
  { "kind?", "moonloop.Kind" },
  { "times?", "integer", "default 1" },
}

return api
