/* F23 for replicas that share the keys: members that join, leave, die, sleep, cannot renew, on
 * clocks that run 20 % fast and slow and a network that loses and delays, at each step of a
 * hand-over and by chance. Judged by the server's log alone: who writes an object after another one
 * did so because that one had said before, in its Lease, that it acts on it no more, or had been
 * silent for long. */
#include "counting_maps.h"

#include "codec/json.h"
#include "seeds.h"
#include "state/shard_group.h"
#include "tried.h"

#define OBJECTS   6
#define LIVES_MAX 256
/* The lease duration, on a clock that runs 20 % fast. */
#define SILENT_NS (INT64_C(12500) * ML_NS_PER_MS)

/* ---- what the log says ---- */

/* The statements of a replica in its Lease, in one of its lives. */
struct life {
    bool has_said, has_left;
    uint64_t id;
    struct shard_set view;
    int64_t said_ns;
};

struct history {
    struct life lives[REPLICAS_MAX][LIVES_MAX];
    struct {
        bool written;
        size_t replica;
        int start;
        int64_t n;
    } objects[OBJECTS + 1];
};

static void fail_at(const struct replicas *all, size_t index, const char *why)
{
    const struct replicas_request *request = &all->log[index];
    fail_msg("%s: at %.3f s %c%d %s %s -> %d %.200s", why,
             (double)request->at_ns / (double)ML_NS_PER_S, (int)('a' + request->replica),
             request->start, request->method, request->path, request->status, request->body);
}

static void note_lease(struct history *history, const struct replicas_request *request)
{
    ML_AUTO_FREE char *name = request_name(request, "leases");
    ML_AUTO_FREE char *view = ml_json_find_string(ml_str_of(request->body), "metadata",
                                                  "annotations", SHARD_ANNOTATION, NULL);
    ML_AUTO_FREE char *holder = ml_json_find_string(ml_str_of(request->body), "spec",
                                                    "holderIdentity", NULL);
    struct life *life = &history->lives[request->replica][request->start];
    if (strcmp(request->method, "DELETE") == 0)
        return;
    assert_true(shard_id_parse(ml_str_of(name + strlen("moonloop-")), &life->id));
    assert_true(shard_set_parse(ml_str_of(view), &life->view));
    life->has_said = true;
    life->has_left = holder == NULL;
    life->said_ns = request->at_ns;
}

static bool claims(const struct life *life, int object)
{
    char text[32];
    snprintf(text, sizeof text, "default/map-%d", object);
    uint64_t key = rendezvous_key(ML_STR("counter"), ml_str_of(text));
    return life->has_said && !life->has_left &&
           rendezvous_owner(key, life->view.ids, life->view.count) == life->id;
}

static void check_write(const struct replicas *all, struct history *history, size_t index)
{
    const struct replicas_request *request = &all->log[index];
    int object = counting_map(request);
    const struct life *writer = &history->lives[request->replica][request->start];
    int64_t value = -1;
    ML_AUTO_FREE char *text = ml_json_find_string(ml_str_of(request->body), "data", "n", NULL);
    if (!text || !ml_str_to_i64(ml_str_of(text), &value) || value != history->objects[object].n + 1)
        fail_at(all, index, "a value was left out, or written twice");
    if (!claims(writer, object))
        fail_at(all, index, "it wrote what it had not said to be its own");
    size_t replica = history->objects[object].replica;
    int start = history->objects[object].start;
    bool other = history->objects[object].written &&
                 (replica != request->replica || start != request->start);
    const struct life *before = &history->lives[replica][start];
    if (other && claims(before, object) && request->at_ns - before->said_ns < SILENT_NS)
        fail_at(all, index, "the one before had not given it away");
    history->objects[object].written = true;
    history->objects[object].replica = request->replica;
    history->objects[object].start = request->start;
    history->objects[object].n = value;
}

static void check(const struct replicas *all)
{
    ML_AUTO_FREE struct history *history = ml_new(struct history);
    for (size_t i = 0; i < all->log_len; i++) {
        const struct replicas_request *request = &all->log[i];
        ml_assert(request->start < LIVES_MAX);
        if (!request_wrote(request))
            continue;
        if (request_is_lease(request))
            note_lease(history, request);
        else if (counting_work(request))
            check_write(all, history, i);
    }
}

/* All objects are worked on, by three. */
static void assert_shared(struct replicas *all)
{
    size_t owners[OBJECTS + 1] = {0}, shares[REPLICAS_MAX] = {0};
    int64_t from_ms = replicas_now_ms(all);
    replicas_run(all, 3000);
    for (size_t i = 0; i < all->log_len; i++) {
        const struct replicas_request *request = &all->log[i];
        if (!counting_work(request) || request->at_ns < from_ms * ML_NS_PER_MS)
            continue;
        size_t *owner = &owners[counting_map(request)];
        if (*owner && *owner != request->replica + 1)
            fail_at(all, i, "two work on it");
        shares[request->replica] += *owner == 0;
        *owner = request->replica + 1;
    }
    for (size_t i = 1; i <= OBJECTS; i++)
        assert_true(owners[i] > 0);
    assert_true((shares[0] > 0) + (shares[1] > 0) + (shares[2] > 0) >= 2); /* chance: six keys */
}

/* ---- at each step ---- */

enum blow { KILLED, SLEEPS, TERMINATED, SILENT, LOSES_ANSWERS, BLOWS };

static void strike(struct replica *victim, enum blow blow)
{
    if (victim->state != REPLICA_RUNS)
        return;
    switch (blow) {
    case KILLED:
        replica_kill(victim);
        break;
    case SLEEPS:
        replica_sleep(victim);
        break;
    case TERMINATED:
        replica_term(victim);
        break;
    case SILENT:
        wire_mood(victim->leases)->silent = true;
        break;
    case LOSES_ANSWERS:
        wire_mood(victim->leases)->lose_back_percent = 100;
        break;
    case BLOWS:
        break;
    }
}

/* Two are members and a third joins; some milliseconds later something befalls one of them. */
static void try_step(int step, enum blow blow, size_t victim)
{
    struct replicas *all = counting_world(OBJECTS, (uint64_t)step + 1);
    replica_start(all, 0, 800);
    replica_start(all, 1, 1200);
    replicas_run(all, 4000);
    replica_start(all, 2, 1000);
    replicas_run(all, step * 10);
    strike(&all->replicas[victim], blow);
    replicas_run(all, 20000);
    if (all->replicas[victim].state == REPLICA_STOPPED)
        replica_wake(&all->replicas[victim]);
    replicas_run(all, 5000);
    check(all);
    if (all->replicas[victim].state == REPLICA_ABSENT) {
        replica_start(all, victim, 1000);
        /* Whose answers were lost went on renewing without knowing: what it held waits until its
         * last Lease, of 15 s, has expired. */
        replicas_run(all, blow == LOSES_ANSWERS ? 20000 : 3000);
        assert_shared(all);
        check(all);
    }
    replicas_free(all);
}

static void test_blows_at_each_step_of_a_hand_over(void **state)
{
    size_t tries = 0;
    (void)state;
    for (int step = 1; step <= 10; step++) {
        for (size_t victim = 0; victim < 3; victim += 2) {
            enum blow blow = (enum blow)((step + (int)victim) % BLOWS);
            try_step(step, blow, victim);
            tries++;
        }
    }
    faults_tried("F23", tries);
}

/* ---- by chance ---- */

static void upset_network(struct replica *victim, struct ml_random *random)
{
    struct wire_mood *leases = wire_mood(victim->leases);
    struct wire_mood *work = wire_mood(victim->work);
    switch (ml_random_between(random, 0, 4)) {
    case 0:
        leases->silent = !leases->silent;
        break;
    case 1:
        leases->lose_there_percent = (int)ml_random_between(random, 0, 60);
        leases->lose_back_percent = (int)ml_random_between(random, 0, 60);
        break;
    case 2:
        work->lose_there_percent = work->lose_back_percent = (int)ml_random_between(random, 0, 30);
        work->there_max_ns = ml_random_between(random, 1, 3000) * ML_NS_PER_MS;
        break;
    default:
        leases->there_max_ns = ml_random_between(random, 1, 6000) * ML_NS_PER_MS;
        leases->back_max_ns = ml_random_between(random, 1, 6000) * ML_NS_PER_MS;
        leases->there_min_ns = leases->back_min_ns = 0;
        break;
    }
}

static void upset(struct replicas *all, struct ml_random *random)
{
    struct replica *victim = &all->replicas[ml_random_between(random, 0, 3)];
    if (victim->state == REPLICA_ABSENT) {
        replica_start(all, victim->index, (int)ml_random_between(random, 800, 1201));
        return;
    }
    if (victim->state == REPLICA_STOPPED) {
        replica_wake(victim);
        return;
    }
    switch (ml_random_between(random, 0, 8)) {
    case 0:
        replica_kill(victim);
        break;
    case 1:
        replica_term(victim);
        break;
    case 2:
    case 3:
        replica_sleep(victim);
        break;
    default:
        upset_network(victim, random);
        break;
    }
}

static void try_seed(uint64_t seed)
{
    struct replicas *all = counting_world(OBJECTS, seed);
    struct ml_random random;
    ml_random_init(&random, seed);
    for (size_t i = 0; i < 3; i++)
        replica_start(all, i, (int)ml_random_between(&random, 800, 1201));
    for (int i = 0; i < 40; i++) {
        replicas_run(all, ml_random_between(&random, 0, i % 3 ? 500 : 12000));
        upset(all, &random);
    }
    check(all);
    for (size_t i = 0; i < 3; i++) {
        replica_kill(&all->replicas[i]);
        replica_start(all, i, 1000);
    }
    replicas_run(all, 20000);
    assert_shared(all);
    check(all);
    replicas_free(all);
}

static void test_by_chance(void **state)
{
    (void)state;
    faults_tried("F23", faults_each_seed("F23", 4, try_seed));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blows_at_each_step_of_a_hand_over),
        cmocka_unit_test(test_by_chance),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
