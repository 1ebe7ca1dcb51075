#include "state_reflector.h"

/* One stream, split in two at every byte, and into single bytes: always the same is told. */
static void test_reflector_stream_cut_at_every_byte_tells_the_same(void **state)
{
    struct reflector_world *self = *state;
    ML_AUTO(ml_buf_fini) struct ml_buf stream = ML_BUF_INIT;
    const struct {
        const char *type, *object;
    } events[] = {
        {"ADDED", pod("c", "uc", 6)},
        {"BOOKMARK", "{\"kind\":\"Pod\",\"metadata\":{\"resourceVersion\":\"7\"}}"},
        {"MODIFIED", "{\"metadata\":{\"name\":\"\\u00e4\xc3\xa4\",\"resourceVersion\":\"8\"}}"},
        {"MODIFIED", pod("a", "ua", 9)},
        {"DELETED", pod("b", "ub", 10)},
    };
    for (size_t i = 0; i < ML_COUNT(events); i++) {
        ML_AUTO_FREE char *line = event_line(events[i].type, events[i].object);
        ml_buf_puts(&stream, line);
        ml_buf_puts(&stream, "\n");
    }
    for (size_t at = 0; at <= stream.len; at++) {
        ML_AUTO_FREE char *items = ml_asprintf("%s,%s", pod("a", "ua", 3), pod("b", "ub", 4));
        reply_list(restart(self), 5, "", items);
        struct fake_call *watch = expect_watch(self, "5");
        fake_head(watch, 200);
        ml_buf_clear(&self->heard);
        assert_true(fake_piece_bytes(watch, (struct ml_str){stream.ptr, at}));
        size_t step = at == 0 ? 1 : stream.len; /* once in single bytes */
        for (size_t rest = at; rest < stream.len; rest += step)
            assert_true(fake_piece_bytes(
                watch, (struct ml_str){stream.ptr + rest, ML_MIN(step, stream.len - rest)}));
        assert_heard(self, "upsert c@6 poisoned(\xc3\xa4\xc3\xa4) upsert a@9 remove b@10");
    }
}

/* A stream that ends at every byte: what was whole counts, and it is resumed behind it. */
static void test_reflector_stream_ended_at_every_byte_resumes_behind_the_last_event(void **state)
{
    struct reflector_world *self = *state;
    ML_AUTO_FREE char *first = event_line("ADDED", pod("c", "uc", 6));
    ML_AUTO_FREE char *second = event_line("ADDED", pod("d", "ud", 7));
    ML_AUTO_FREE char *stream = ml_asprintf("%s%s", first, second);
    for (size_t at = 0; at <= strlen(stream); at++) {
        reply_list(restart(self), 5, "", pod("a", "ua", 4));
        struct fake_call *watch = expect_watch(self, "5");
        fake_head(watch, 200);
        advance(&self->world, 1000);
        fake_piece_bytes(watch, (struct ml_str){stream, at});
        fake_fail(watch, ML_ENETWORK, "cut");
        if (at < strlen(first))
            expect_resumed(self, "a", 4, 7);
        else if (at < strlen(stream))
            expect_resumed(self, "c", 6, 7);
        else
            expect_resumed(self, "d", 7, 7);
    }
}

static void test_reflector_freed_at_any_point_is_silent(void **state)
{
    struct reflector_world *self = *state;
    struct fake_call *list = expect_list(self, "");
    fake_head(list, 200);
    fake_piece(list, "{\"kind\":\"PodList\",\"items\":[{\"metadata\":");
    ml_reflector_free(ml_take(&self->reflector)); /* in a list */
    assert_true(list->canceled);
    world_start(self, "", "");
    struct fake_call *watch = till_watching(self);
    fake_piece(watch, "{\"type\":\"ADD");
    ml_reflector_free(ml_take(&self->reflector)); /* in a watch */
    assert_true(watch->canceled);
    world_start(self, "", "");
    fake_fail(expect_list(self, ""), ML_ENETWORK, "refused");
    ml_reflector_free(ml_take(&self->reflector)); /* in a backoff */
    ml_buf_clear(&self->heard);
    advance(&self->world, 600000);
    fake_expect_none(self->world.server);
    assert_heard(self, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_reflector_stream_cut_at_every_byte_tells_the_same),
        TEST(test_reflector_stream_ended_at_every_byte_resumes_behind_the_last_event),
        TEST(test_reflector_freed_at_any_point_is_silent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
