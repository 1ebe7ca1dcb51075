/* The reads of a run, packed and compared with changes: by hand, and by random programs on random
 * objects. */
#include <stdio.h>

#include "unit.h"

#include "codec/json_members.h"
#include "script/reads.h"

enum { AT, POD, SECRET };

struct world {
    struct ml_script script;
    struct ml_informer *informers[3]; /* only compared */
    struct ml_dict *dict;
    struct ml_object *own;
    struct script_reads *reads;
};

static struct ml_object *make(struct world *self, const char *name, int rv, const char *rest)
{
    ML_AUTO_FREE char *json = ml_asprintf("{\"apiVersion\":\"v1\",\"kind\":\"X\",\"metadata\":{"
                                          "\"name\":\"%s\",\"namespace\":\"d\",\"uid\":\"u-%s\","
                                          "\"resourceVersion\":\"%d\"}%s}",
                                          name, name, rv, rest);
    struct ml_object *object = NULL;
    struct ml_err err = ML_ERR_INIT;
    if (ml_object_new(self->dict, "v1", "X", ml_str_of(json), &object, &err) < 0)
        fail_msg("%s: %s", err.message, json);
    return object;
}

static void begin(struct world *self, const char *own)
{
    script_reads_free(self->reads);
    ml_object_unref(self->own);
    self->own = make(self, own, 1, "");
    self->reads = script_reads_new(&self->script, self->own);
}

static int setup(void **state)
{
    static char addresses[2];
    struct world *self = ml_new(struct world);
    self->script.memory.max = (size_t)1024 * 1024;
    self->informers[AT] = (struct ml_informer *)&addresses[0];
    self->informers[POD] = (struct ml_informer *)&addresses[1];
    self->script.binding.informers = self->informers;
    self->script.kinds[POD].use = ML_USE_OWNS;
    self->dict = ml_dict_new();
    begin(self, "a");
    *state = self;
    return 0;
}

static int teardown(void **state)
{
    struct world *self = *state;
    script_reads_free(self->reads);
    assert_int_equal(self->script.memory.used, 0);
    ml_object_unref(self->own);
    ml_dict_unref(self->dict);
    free(self);
    return 0;
}

static read_node field(struct world *self, read_node node, const char *name)
{
    return reads_field(self->reads, node, ml_str_of(name));
}

/* A pod of the name, of the reconciled object's namespace. */
static read_node pod(struct world *self, const char *name)
{
    ML_AUTO_FREE char *key = ml_asprintf("d/%s", name);
    return reads_object(self->reads, POD, ml_str_of(key), NULL);
}

/* Is the set touched when the pod a-pod goes from one state to the other? NULL: it is not there. */
static bool touched_by(struct world *self, size_t kind, const char *name, const char *old,
                       const char *new, char *out_field, size_t size)
{
    struct ml_read_set *set = script_reads_pack(self->reads);
    struct ml_object *before = old ? make(self, name, 7, old) : NULL;
    struct ml_object *after = new ? make(self, name, 8, new) : NULL;
    ML_AUTO(ml_buf_fini) struct ml_buf field = ML_BUF_INIT;
    assert_non_null(set);
    const struct ml_read_change change = {
        .kind = kind, .old = before, .new = after, .own_key = ML_STR("d/a"), .self = kind == AT};
    bool touched = ml_read_set_touched(set, &change, &field);
    assert_int_equal(touched, ml_read_set_touched(set, &change, NULL));
    snprintf(out_field, size, ML_STR_FMT, ML_STR_ARG(ml_buf_str(&field)));
    ml_object_unref(before);
    ml_object_unref(after);
    ml_read_set_unref(set);
    return touched;
}

static void touches(struct world *self, const char *old, const char *new, const char *want)
{
    char field[64];
    if (!touched_by(self, POD, "a-pod", old, new, field, sizeof field))
        fail_msg("not touched: %s -> %s", old, new);
    assert_string_equal(field, want);
}

static void passes(struct world *self, const char *old, const char *new)
{
    char field[64];
    if (touched_by(self, POD, "a-pod", old, new, field, sizeof field))
        fail_msg("touched at '%s': %s -> %s", field, old, new);
}

/* Records the reads of cnat with a pod that runs. */
static void read_as_cnat(struct world *self, const char *own)
{
    char name[32];
    begin(self, own);
    read_node object = reads_self(self->reads);
    field(self, field(self, object, "status"), "phase");
    field(self, field(self, object, "spec"), "schedule");
    field(self, field(self, object, "spec"), "command");
    field(self, field(self, object, "metadata"), "name");
    snprintf(name, sizeof name, "%s-pod", own);
    read_node child = pod(self, name);
    reads_owner(self->reads, child);
    field(self, field(self, child, "status"), "phase");
    reads_returns_status(self->reads);
}

static void test_reads_of_two_objects_are_the_same_few_bytes(void **state)
{
    struct world *self = *state;
    read_as_cnat(self, "a");
    struct ml_read_set *a = script_reads_pack(self->reads);
    read_as_cnat(self, "an-other");
    struct ml_read_set *b = script_reads_pack(self->reads);
    assert_true(ml_str_eq(ml_read_set_bytes(a), ml_read_set_bytes(b)));
    assert_true(ml_read_set_bytes(a).len <= 64);
    ML_AUTO(ml_buf_fini) struct ml_buf key = ML_BUF_INIT;
    size_t cursor = 0, kind = 9;
    assert_true(ml_read_set_next_object(b, ML_STR("d/an-other"), &cursor, &kind, &key));
    assert_str_eq(ml_buf_str(&key), "d/an-other-pod");
    assert_int_equal(kind, POD);
    assert_false(ml_read_set_next_object(b, ML_STR("d/an-other"), &cursor, &kind, &key));
    ml_read_set_unref(a);
    ml_read_set_unref(b);
}

static void test_reads_pass_what_was_not_read(void **state)
{
    struct world *self = *state;
    read_as_cnat(self, "a");
    passes(self, ",\"status\":{\"phase\":\"R\",\"x\":1}", ",\"status\":{\"phase\":\"R\",\"x\":2}");
    passes(self, ",\"spec\":{\"n\":1}", ",\"spec\":{\"n\":2}");
    char named[64];
    assert_false(touched_by(self, POD, "b-pod", NULL, "", named, sizeof named));
    assert_false(touched_by(self, SECRET, "a-pod", NULL, "", named, sizeof named));
}

static void test_reads_are_touched_by_what_was_read(void **state)
{
    struct world *self = *state;
    read_as_cnat(self, "a");
    touches(self, ",\"status\":{\"phase\":\"R\"}", ",\"status\":{\"phase\":\"S\"}", "status.phase");
    touches(self, ",\"status\":{}", ",\"status\":{\"phase\":\"S\"}", "status.phase");
    touches(self, ",\"status\":{\"phase\":\"R\"}", ",\"status\":{\"phase\":{}}", "status.phase");
    touches(self, "", ",\"status\":{}", "status");
    touches(self, NULL, "", "");
    touches(self, "", NULL, "");
}

static void test_reads_of_an_absent_object_are_touched_when_it_comes(void **state)
{
    struct world *self = *state;
    pod(self, "a-pod");
    passes(self, "", ",\"status\":{\"phase\":\"S\"}");
    touches(self, NULL, "", "");
}

static void test_reads_of_an_owner_are_touched_by_another(void **state)
{
    struct world *self = *state;
    struct ml_err err = ML_ERR_INIT;
    struct ml_object *objects[2];
    for (int i = 0; i < 2; i++) {
        ML_AUTO_FREE char *json = ml_asprintf(
            "{\"metadata\":{\"name\":\"a-pod\",\"namespace\":\"d\",\"uid\":\"u\","
            "\"resourceVersion\":\"%d\",\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":\"X\","
            "\"name\":\"a\",\"uid\":\"o%d\",\"controller\":true}]}}",
            i + 1, i);
        assert_int_equal(ml_object_new(self->dict, "v1", "Pod", ml_str_of(json), &objects[i], &err),
                         0);
    }
    const struct ml_read_change change = {
        .kind = POD, .old = objects[0], .new = objects[1], .own_key = ML_STR("d/a")};
    for (int with_owner = 0; with_owner < 2; with_owner++) {
        read_node child = pod(self, "a-pod");
        if (with_owner)
            reads_owner(self->reads, child);
        struct ml_read_set *set = script_reads_pack(self->reads);
        assert_int_equal(ml_read_set_touched(set, &change, NULL), with_owner);
        ml_read_set_unref(set);
    }
    begin(self, "a");
    reads_list(self->reads, POD, ML_STR("d"), true);
    struct ml_read_set *set = script_reads_pack(self->reads);
    assert_true(ml_read_set_touched(set, &change, NULL));
    ml_read_set_unref(set);
    ml_object_unref(objects[0]);
    ml_object_unref(objects[1]);
}

static void test_reads_of_a_list_are_touched_by_members_and_their_fields(void **state)
{
    struct world *self = *state;
    char named[64];
    read_node members = reads_list(self->reads, POD, ML_STR("d"), true);
    field(self, field(self, members, "status"), "phase");
    touches(self, NULL, "", "");
    touches(self, "", NULL, "");
    touches(self, ",\"status\":{\"phase\":\"R\"}", ",\"status\":{\"phase\":\"S\"}", "status.phase");
    passes(self, ",\"status\":{\"ip\":\"R\"}", ",\"status\":{\"ip\":\"S\"}");
    begin(self, "a");
    reads_list(self->reads, POD, ML_STR("other"), true);
    assert_false(touched_by(self, POD, "x", NULL, "", named, sizeof named));
    begin(self, "a");
    reads_list(self->reads, POD, ML_STR(""), true);
    assert_true(touched_by(self, POD, "x", NULL, "", named, sizeof named));
}

static void test_reads_of_keys_see_names_order_and_scalars(void **state)
{
    struct world *self = *state;
    reads_keys(self->reads, field(self, pod(self, "a-pod"), "data"));
    passes(self, ",\"data\":{\"a\":1,\"b\":{\"x\":1}}", ",\"data\":{\"a\":1,\"b\":{\"x\":2}}");
    touches(self, ",\"data\":{\"a\":1}", ",\"data\":{\"a\":2}", "data");
    touches(self, ",\"data\":{\"a\":1,\"b\":1}", ",\"data\":{\"b\":1,\"a\":1}", "data");
    touches(self, ",\"data\":{\"a\":1}", ",\"data\":{\"a\":1,\"b\":1}", "data");
    touches(self, ",\"data\":[1,{}]", ",\"data\":[1,{},{}]", "data");
    touches(self, ",\"data\":[1,2]", ",\"data\":[2,1]", "data");
    passes(self, ",\"data\":[1,{\"x\":1}]", ",\"data\":[1,{\"x\":2}]");
}

static void test_reads_of_elements_see_length_scalars_and_their_fields(void **state)
{
    struct world *self = *state;
    read_node list = field(self, pod(self, "a-pod"), "data");
    field(self, reads_element(self->reads, list), "t");
    passes(self, ",\"data\":[{\"t\":1,\"x\":1}]", ",\"data\":[{\"t\":1,\"x\":2}]");
    touches(self, ",\"data\":[{\"t\":1},{\"t\":1}]", ",\"data\":[{\"t\":1},{\"t\":2}]", "data.t");
    touches(self, ",\"data\":[{\"t\":1}]", ",\"data\":[]", "data");
    touches(self, ",\"data\":[{},1]", ",\"data\":[{},2]", "data");
    touches(self, ",\"data\":[{}]", ",\"data\":{\"t\":1}", "data");
}

static void test_reads_of_the_whole_are_touched_by_anything(void **state)
{
    struct world *self = *state;
    read_node spec = field(self, pod(self, "a-pod"), "spec");
    field(self, spec, "x");
    reads_whole(self->reads, spec);
    assert_int_equal(field(self, spec, "y"), 0);
    touches(self, ",\"spec\":{\"a\":{\"b\":[1]}}", ",\"spec\":{\"a\":{\"b\":[2]}}", "spec");
    passes(self, ",\"data\":1", ",\"data\":2");
    reads_whole(self->reads, pod(self, "a-pod"));
    touches(self, "", "", ""); /* its resourceVersion is another */
}

static void test_reads_of_the_own_status_and_of_what_is_returned(void **state)
{
    struct world *self = *state;
    char named[64];
    field(self, field(self, reads_self(self->reads), "status"), "x");
    assert_false(touched_by(self, AT, "a", ",\"status\":{\"y\":1}", ",\"status\":{\"y\":2}", named,
                            sizeof named));
    assert_true(touched_by(self, AT, "a", ",\"status\":{\"x\":1}", ",\"status\":{\"x\":2}", named,
                           sizeof named));
    reads_returns_status(self->reads);
    assert_true(touched_by(self, AT, "a", ",\"status\":{\"y\":1}", ",\"status\":{\"y\":2}", named,
                           sizeof named));
    assert_string_equal(named, "status");
}

static void test_reads_give_up_beyond_their_limits(void **state)
{
    struct world *self = *state;
    char name[32];
    for (int i = 0; i < 200; i++) {
        snprintf(name, sizeof name, "a-rather-long-name-%d", i);
        field(self, pod(self, "a-pod"), name);
    }
    assert_null(script_reads_pack(self->reads));
    assert_string_equal(script_reads_gave_up(self->reads), "its read set is too large");
    begin(self, "a");
    for (int i = 0; i < 600; i++) {
        snprintf(name, sizeof name, "%d", i);
        field(self, pod(self, "a-pod"), name);
    }
    assert_string_equal(script_reads_gave_up(self->reads), "it reads too many fields");
    assert_int_equal(reads_self(self->reads), 0);
    assert_in_range(self->script.memory.used, 1, 256); /* the name of the pod */
    begin(self, "a");
    field(self, reads_object(self->reads, SECRET, ML_STR("d/s"), NULL), "x");
    assert_string_equal(script_reads_gave_up(self->reads), "it asks the server itself");
    assert_null(script_reads_pack(self->reads));
    assert_int_equal(reads_field(NULL, 0, ML_STR("x")), 0);
}

/* The names that a run looked for are known also if it gave up. */
static void test_reads_note_what_was_looked_for(void **state)
{
    struct world *self = *state;
    char name[32];
    size_t cursor = 0, kind;
    uint64_t version;
    struct ml_str key;
    begin(self, "a");
    reads_give_up(self->reads, "a reason");
    reads_object(self->reads, AT, ML_STR("d/a"), NULL); /* the object itself */
    reads_object(self->reads, AT, ML_STR("d/b"), NULL);
    reads_object(self->reads, SECRET, ML_STR("d/b"), NULL); /* it is not watched */
    for (int i = 0; i < 2 * ML_READ_NAMES_MAX; i++) {
        snprintf(name, sizeof name, "d/pod-%d", i);
        reads_object(self->reads, POD, ml_str_of(name), NULL);
        reads_object(self->reads, POD, ml_str_of(name), NULL);
    }
    struct ml_read_names names = script_reads_take_names(self->reads);
    assert_int_equal(names.count, ML_READ_NAMES_MAX);
    assert_int_equal(names.whole_kinds, 1 << POD);
    assert_true(ml_read_names_next(&names, &cursor, &kind, &key, &version));
    assert_int_equal(kind, AT);
    assert_true(ml_str_is(key, "d/b"));
    assert_int_equal(version, ml_read_version(AT, key, NULL));
    for (int i = 1; i < ML_READ_NAMES_MAX; i++) {
        snprintf(name, sizeof name, "d/pod-%d", i - 1);
        assert_true(ml_read_names_next(&names, &cursor, &kind, &key, &version));
        assert_int_equal(kind, POD);
        assert_true(ml_str_is(key, name));
    }
    assert_false(ml_read_names_next(&names, &cursor, &kind, &key, &version));
    ml_read_names_fini(&names);
}

static void test_reads_take_names_of_any_length(void **state)
{
    struct world *self = *state;
    for (size_t len = 100; len < 260; len += 13) {
        begin(self, "a");
        ML_AUTO_FREE char *name = ml_alloc(len + 1);
        memset(name, 'n', len);
        name[len] = '\0';
        field(self, pod(self, "a-pod"), name);
        ML_AUTO_FREE char *json = ml_asprintf(",\"%s\":1", name);
        touches(self, "", json, name + (len > 63 ? len - 63 : 0));
    }
}

/* ---- random programs ---- */

struct dice {
    uint64_t state;
};

static unsigned roll(struct dice *dice, unsigned sides)
{
    dice->state = dice->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(dice->state >> 33) % sides;
}

static const char *const names[] = {"a", "b", "status", "phase", "e"};

static void write_value(struct dice *dice, unsigned depth, struct ml_buf *out)
{
    unsigned sides = depth < 4 ? 7 : 4, kind = roll(dice, sides);
    unsigned count = roll(dice, 4);
    if (kind < 4) {
        const char *const scalars[] = {"1", "\"x\"", "null", "true"};
        ml_buf_puts(out, scalars[kind]);
        return;
    }
    bool is_object = kind < 6;
    ml_buf_putc(out, is_object ? '{' : '[');
    unsigned first = roll(dice, ML_COUNT(names));
    for (unsigned i = 0; i < count; i++) {
        if (i > 0)
            ml_buf_putc(out, ',');
        if (is_object)
            ml_buf_printf(out, "\"%s\":", names[(first + i) % ML_COUNT(names)]);
        write_value(dice, depth + 1, out);
    }
    ml_buf_putc(out, is_object ? '}' : ']');
}

/* Writes the value again, now and then with another one in a place. */
static void write_mutated(struct dice *dice, struct ml_str raw, unsigned rarely, struct ml_buf *out)
{
    ML_AUTO(ml_json_members_fini) struct ml_json_members members = {0};
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    struct ml_err err;
    ml_json_reader_init(&reader, raw, 0);
    if (roll(dice, rarely) == 0) {
        write_value(dice, 3, out);
    } else if (raw.ptr[0] == '{' && ml_json_members_read(&members, raw, 0, &err)) {
        ml_buf_putc(out, '{');
        unsigned turn = members.len > 0 && roll(dice, rarely) == 0;
        for (size_t i = 0; i < members.len; i++) {
            const struct ml_json_member *member = &members.items[(i + turn) % members.len];
            ml_buf_printf(out, "%s\"" ML_STR_FMT "\":", i > 0 ? "," : "", ML_STR_ARG(member->key));
            write_mutated(dice, member->value, rarely, out);
        }
        ml_buf_putc(out, '}');
    } else if (raw.ptr[0] == '[') {
        ml_buf_putc(out, '[');
        ml_json_next(&reader);
        bool comma = false;
        for (struct ml_str element; (element = ml_json_skip(&reader)).len > 0; comma = true) {
            if (comma)
                ml_buf_putc(out, ',');
            write_mutated(dice, element, rarely, out);
        }
        ml_buf_putc(out, ']');
    } else {
        ml_buf_append_str(out, raw);
    }
}

/* A program goes down an object as a script does, by the values that it sees there. It adds these
 * to `seen`, and tells its reads to the recorder, unless that is NULL. */
struct program {
    struct dice dice;
    struct script_reads *reads;
    struct ml_buf *seen;
};

static bool is_table(struct ml_str raw)
{
    return raw.len > 0 && (raw.ptr[0] == '{' || raw.ptr[0] == '[');
}

static void see(struct program *program, struct ml_str raw)
{
    if (raw.len == 0)
        ml_buf_puts(program->seen, "nil ");
    else if (is_table(raw))
        ml_buf_printf(program->seen, "%c ", raw.ptr[0]);
    else
        ml_buf_printf(program->seen, ML_STR_FMT " ", ML_STR_ARG(raw));
}

static struct ml_str element_of(struct ml_str array, unsigned index)
{
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    struct ml_str element = {NULL, 0};
    ml_json_reader_init(&reader, array, 0);
    if (ml_json_next(&reader) != ML_JSON_ARRAY)
        return element;
    for (unsigned i = 0; i <= index; i++)
        element = ml_json_skip(&reader);
    return element;
}

static void see_level(struct program *program, struct ml_str table)
{
    ML_AUTO(ml_json_members_fini) struct ml_json_members members = {0};
    struct ml_err err;
    if (table.ptr[0] == '[') {
        struct ml_str element;
        for (unsigned i = 0; (element = element_of(table, i)).len > 0; i++)
            see(program, element);
        return;
    }
    assert_true(ml_json_members_read(&members, table, 0, &err));
    for (size_t i = 0; i < members.len; i++) {
        ml_buf_printf(program->seen, ML_STR_FMT "=", ML_STR_ARG(members.items[i].key));
        see(program, members.items[i].value);
    }
}

static void go_down(struct program *program, read_node node, struct ml_str table);

static void look_at(struct program *program, read_node node, struct ml_str raw)
{
    see(program, raw);
    if (is_table(raw) && roll(&program->dice, 4) > 0)
        go_down(program, node, raw);
}

static void go_down(struct program *program, read_node node, struct ml_str table)
{
    for (unsigned steps = 1 + roll(&program->dice, 3); steps > 0; steps--) {
        unsigned act = roll(&program->dice, 16);
        struct ml_str raw = {NULL, 0};
        if (act == 0) {
            reads_whole(program->reads, node);
            ml_buf_append_str(program->seen, table);
        } else if (act < 3) {
            reads_keys(program->reads, node);
            see_level(program, table);
        } else if (act < 7) {
            unsigned index = roll(&program->dice, 3);
            raw = element_of(table, index);
            look_at(program, reads_element(program->reads, node), raw);
        } else {
            const char *name = names[roll(&program->dice, ML_COUNT(names))];
            if (table.ptr[0] == '{')
                ml_json_find(table, &raw, name, NULL);
            look_at(program, reads_field(program->reads, node, ml_str_of(name)), raw);
        }
    }
}

static void run_program(uint64_t seed, struct script_reads *reads, read_node node,
                        const struct ml_object *object, struct ml_buf *seen)
{
    ML_AUTO(ml_buf_fini) struct ml_buf json = ML_BUF_INIT;
    struct program program = {{seed}, reads, seen};
    struct ml_str data = {NULL, 0};
    ml_object_json(object, &json);
    ml_json_find(ml_buf_str(&json), &data, "data", NULL);
    look_at(&program, reads_field(reads, node, ML_STR("data")), data);
}

/* One object, one change of it, one program. True: the change was let pass. */
static bool try_program(struct world *self, uint64_t seed)
{
    struct dice dice = {seed};
    ML_AUTO(ml_buf_fini) struct ml_buf before = ML_BUF_INIT, after = ML_BUF_INIT;
    ML_AUTO(ml_buf_fini) struct ml_buf saw = ML_BUF_INIT, sees = ML_BUF_INIT;
    ml_buf_puts(&before, ",\"data\":");
    ml_buf_puts(&after, ",\"data\":");
    write_value(&dice, 0, &before);
    struct ml_str value = {before.ptr + strlen(",\"data\":"), before.len - strlen(",\"data\":")};
    write_mutated(&dice, value, 8, &after);
    struct ml_object *old = make(self, "a-pod", 1, ml_buf_cstr(&before));
    struct ml_object *new = make(self, "a-pod", 2, ml_buf_cstr(&after));
    begin(self, "a");
    uint64_t program = dice.state;
    run_program(program, self->reads, pod(self, "a-pod"), old, &saw);
    run_program(program, NULL, 0, new, &sees);
    struct ml_read_set *set = script_reads_pack(self->reads);
    const struct ml_read_change change = {
        .kind = POD, .old = old, .new = new, .own_key = ML_STR("d/a")};
    bool touched = ml_read_set_touched(set, &change, NULL);
    if (!touched && !ml_str_eq(ml_buf_str(&saw), ml_buf_str(&sees)))
        fail_msg("seed %llu: let pass\n%s\n%s\nthough it saw %s\nand then %s",
                 (unsigned long long)seed, ml_buf_cstr(&before), ml_buf_cstr(&after),
                 ml_buf_cstr(&saw), ml_buf_cstr(&sees));
    bool passed = !touched && !ml_str_eq(ml_buf_str(&before), ml_buf_str(&after));
    ml_read_set_unref(set);
    ml_object_unref(old);
    ml_object_unref(new);
    return passed;
}

static void test_reads_never_let_pass_what_a_program_would_see(void **state)
{
    unsigned passed = 0;
    for (uint64_t seed = 1; seed <= 20000; seed++)
        passed += try_program(*state, seed);
    assert_in_range(passed, 1500, 20000); /* else they would be of no use */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_reads_of_two_objects_are_the_same_few_bytes, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_reads_pass_what_was_not_read, setup, teardown),
        cmocka_unit_test_setup_teardown(test_reads_are_touched_by_what_was_read, setup, teardown),
        cmocka_unit_test_setup_teardown(test_reads_of_an_absent_object_are_touched_when_it_comes,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_reads_of_an_owner_are_touched_by_another, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(
            test_reads_of_a_list_are_touched_by_members_and_their_fields, setup, teardown),
        cmocka_unit_test_setup_teardown(test_reads_of_keys_see_names_order_and_scalars, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_reads_of_elements_see_length_scalars_and_their_fields,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_reads_of_the_whole_are_touched_by_anything, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_reads_of_the_own_status_and_of_what_is_returned, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_reads_give_up_beyond_their_limits, setup, teardown),
        cmocka_unit_test_setup_teardown(test_reads_note_what_was_looked_for, setup, teardown),
        cmocka_unit_test_setup_teardown(test_reads_take_names_of_any_length, setup, teardown),
        cmocka_unit_test_setup_teardown(test_reads_never_let_pass_what_a_program_would_see, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
