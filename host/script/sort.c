#include "script/sort.h"

struct sorting {
    lua_State *L;
    char *items;
    size_t size;
    int (*compare)(const void *, const void *);
};

ML_RAISES
static bool is_before(const struct sorting *sorting, const void *a, const void *b)
{
    script_cpu_check(sorting->L);
    return sorting->compare(a, b) < 0;
}

static char *item_at(const struct sorting *sorting, size_t place)
{
    return sorting->items + place * sorting->size;
}

/* Lets what is in `item` sink from the hole at `at` to its place in the heap of `count` items, the
 * largest of which is the first. */
ML_RAISES
static void sink(const struct sorting *sorting, const void *item, size_t at, size_t count)
{
    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count &&
            is_before(sorting, item_at(sorting, child), item_at(sorting, child + 1)))
            child++;
        if (!is_before(sorting, item, item_at(sorting, child)))
            break;
        memcpy(item_at(sorting, at), item_at(sorting, child), sorting->size);
    }
    memcpy(item_at(sorting, at), item, sorting->size);
}

/* What a script hands over is often in order already, or short. */
ML_RAISES
static bool is_sorted(const struct sorting *sorting, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (is_before(sorting, item_at(sorting, i), item_at(sorting, i - 1)))
            return false;
    return true;
}

ML_RAISES
void script_sort(lua_State *L, void *items, size_t count, size_t size,
                 int (*compare)(const void *, const void *))
{
    const struct sorting sorting = {L, items, size, compare};
    char item[SCRIPT_SORT_ITEM_MAX];
    ml_assert(size <= sizeof(item));
    if (is_sorted(&sorting, count))
        return;
    for (size_t at = count / 2; at-- > 0;) {
        memcpy(item, item_at(&sorting, at), size);
        sink(&sorting, item, at, count);
    }
    for (size_t last = count - 1; last > 0; last--) {
        memcpy(item, item_at(&sorting, last), size);
        memcpy(item_at(&sorting, last), items, size);
        sink(&sorting, item, 0, last);
    }
}
