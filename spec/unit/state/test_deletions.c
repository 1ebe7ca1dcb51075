#include "state_world.h"

#include "codec/json.h"
#include "state/deletions.h"

#include <sys/mman.h>
#include <unistd.h>

static const struct ml_kind sites = {"e.com/v1", "e.com", "v1", "Site", "sites", true, true};
static const struct ml_kind services = {"v1", "", "v1", "Service", "services", true, true};

struct deletions_world {
    struct world world;
    struct ml_log log;
    int log_fd;
    struct ml_recorder *recorder;
    struct ml_deletions *deletions;
    struct ml_buf events; /* "site-1: the note\n" of each */
};

static void on_event(void *context, struct fake_call *call)
{
    struct deletions_world *self = context;
    struct ml_str body = ml_str_of(call->body);
    if (strcmp(call->method, "POST") != 0) { /* once more */
        fake_reply(call, 200, "{}");
        return;
    }
    ML_AUTO_FREE char *name = ml_json_find_string(body, "regarding", "name", NULL);
    ML_AUTO_FREE char *reason = ml_json_find_string(body, "reason", NULL);
    ML_AUTO_FREE char *note = ml_json_find_string(body, "note", NULL);
    assert_string_equal(reason, "SuccessfulDelete");
    ml_buf_printf(&self->events, "%s: %s\n", name, note);
    fake_reply(call, 201, "{}");
}

static int setup(void **state)
{
    struct deletions_world *self = ml_new(struct deletions_world);
    world_init(&self->world);
    self->log_fd = memfd_create("log", 0);
    ml_log_init(&self->log, &self->world.clock.clock, self->log_fd, ML_LOG_TEXT, ML_LOG_INFO);
    self->recorder = ml_recorder_new(&(struct ml_recorder_opts){
        .client = self->world.client,
        .loop = self->world.loop,
        .metrics = self->world.metrics,
        .controller = "moonloop",
        .instance = "host-1",
    });
    self->deletions = ml_deletions_new(self->world.loop, &self->log, self->recorder);
    fake_set_handler(self->world.server, on_event, self);
    *state = self;
    return 0;
}

static int teardown(void **state)
{
    struct deletions_world *self = *state;
    ml_deletions_free(self->deletions);
    ml_recorder_free(self->recorder);
    world_fini(&self->world);
    ml_buf_fini(&self->events);
    close(self->log_fd);
    free(self);
    return 0;
}

static struct ml_object *site(const char *name)
{
    struct ml_err err;
    struct ml_object *object = NULL;
    ML_AUTO_FREE char *text = ml_asprintf(
        "{\"apiVersion\":\"e.com/v1\",\"kind\":\"Site\",\"metadata\":{\"name\":\"%s\","
        "\"namespace\":\"default\",\"uid\":\"u-%s\",\"resourceVersion\":\"5\"}}",
        name, name);
    struct ml_dict *dict = ml_dict_new();
    assert_int_equal(ml_object_new(dict, "", "", ml_str_of(text), &object, &err), 0);
    ml_dict_unref(dict);
    return object;
}

static void delete_one(struct deletions_world *self, const char *owner, const struct ml_kind *kind,
                       const char *name)
{
    struct ml_object *object = site(owner);
    const struct ml_deletion deletion = {
        .kind = kind,
        .ns = ML_STR("default"),
        .name = ml_str_of(name),
        .why = "no longer returned by site.lua:88",
        .controller = "site",
        .revision = "1a2b3c4d",
        .owner_kind = &sites,
        .owner = object,
    };
    ml_deletions_note(self->deletions, &deletion);
    ml_object_unref(object);
}

static void settle(struct deletions_world *self)
{
    for (int i = 0; i < 400; i++)
        ml_loop_poll(self->world.loop);
}

static size_t count_events(struct deletions_world *self)
{
    size_t count = 0;
    for (size_t i = 0; i < self->events.len; i++)
        count += self->events.ptr[i] == '\n';
    return count;
}

static size_t logged(const struct deletions_world *self, const char *part)
{
    return unit_count(self->log_fd, part);
}

static void test_deletion_is_told_in_the_log_and_on_its_owner(void **state)
{
    struct deletions_world *self = *state;
    delete_one(self, "s00", &services, "s00");
    settle(self);
    assert_string_equal(ml_buf_cstr(&self->events),
                        "s00: Service default/s00: no longer returned by site.lua:88 (revision "
                        "1a2b3c4d)\n");
    assert_int_equal(logged(self, "deleted an object"), 1);
    assert_int_equal(logged(self, "deleted=\"Service default/s00\""), 1);
    assert_int_equal(logged(self, "why=\"no longer returned by site.lua:88\""), 1);
    assert_int_equal(logged(self, "revision=\"1a2b3c4d\""), 1);
    assert_int_equal(logged(self, " name=\"s00\""), 1);
}

/* 30 owners lose four each. */
static void test_deletions_of_one_second_are_summed_up_beyond_ten(void **state)
{
    struct deletions_world *self = *state;
    for (int i = 0; i < 30; i++) {
        ML_AUTO_FREE char *name = ml_asprintf("s%02d", i);
        delete_one(self, name, &services, name);
        for (int k = 0; k < 3; k++) {
            ML_AUTO_FREE char *child = ml_asprintf("%s-%d", name, k);
            delete_one(self, name, &pods, child);
        }
    }
    settle(self);
    assert_int_equal(count_events(self), 10);
    assert_int_equal(logged(self, "deleted an object"), 10);
    assert_int_equal(logged(self, "deleted more"), 0);
    advance(&self->world, 1001);
    settle(self);
    assert_int_equal(logged(self, "deleted more objects in the same second"), 1);
    assert_int_equal(logged(self, "objects=110"), 1);
    assert_int_equal(logged(self, "kinds=\"83 Pod, 27 Service\""), 1);
    /* s00 and s01 were told alone, s02 in part */
    assert_int_equal(count_events(self), 10 + 28);
    assert_non_null(strstr(ml_buf_cstr(&self->events),
                           "s02: 2 Pod; the first: Pod default/s02-1: no longer returned by "
                           "site.lua:88 (revision 1a2b3c4d)\n"));
    assert_non_null(strstr(ml_buf_cstr(&self->events),
                           "s29: 1 Service, 3 Pod; the first: Service default/s29: no longer"));
    /* the next second begins anew */
    delete_one(self, "s30", &pods, "s30");
    settle(self);
    assert_int_equal(logged(self, "deleted an object"), 11);
}

static void test_deletions_of_one_object_are_no_sum(void **state)
{
    struct deletions_world *self = *state;
    for (int i = 0; i < 11; i++)
        delete_one(self, "s", &pods, "p");
    advance(&self->world, 1001);
    settle(self);
    assert_non_null(strstr(ml_buf_cstr(&self->events), "s: Pod default/p: no longer"));
    assert_null(strstr(ml_buf_cstr(&self->events), "the first"));
    assert_int_equal(logged(self, "objects=1 "), 1);
}

/* Memory is bounded whatever a script deletes. */
static void test_deletions_for_very_many_owners_have_an_event_for_some(void **state)
{
    struct deletions_world *self = *state;
    for (int i = 0; i < 1000; i++) {
        ML_AUTO_FREE char *name = ml_asprintf("s%03d", i);
        delete_one(self, name, &pods, name);
    }
    advance(&self->world, 1001);
    settle(self);
    assert_int_equal(count_events(self), 10 + ML_DELETIONS_OWNERS);
    assert_int_equal(logged(self, "objects=990"), 1);
}

static void test_deletions_of_many_kinds_are_counted(void **state)
{
    struct deletions_world *self = *state;
    static struct ml_kind kinds[12];
    static char names[12][4];
    for (int i = 0; i < 10; i++)
        delete_one(self, "s", &pods, "p");
    for (size_t i = 0; i < ML_COUNT(kinds); i++) {
        snprintf(names[i], sizeof names[i], "K%zu", i);
        kinds[i] = pods;
        kinds[i].kind = names[i];
        delete_one(self, "s", &kinds[i], "x");
    }
    ml_deletions_flush(self->deletions);
    assert_int_equal(logged(self, "kinds=\"1 K0, 1 K1, 1 K2, 1 K3, 1 K4, 1 K5, 1 K6, 1 K7, 4 "
                                  "other\""),
                     1);
    settle(self);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(test_deletion_is_told_in_the_log_and_on_its_owner),
        WITH(test_deletions_of_one_second_are_summed_up_beyond_ten),
        WITH(test_deletions_of_one_object_are_no_sum),
        WITH(test_deletions_for_very_many_owners_have_an_event_for_some),
        WITH(test_deletions_of_many_kinds_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
