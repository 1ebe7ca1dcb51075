/* The authors of the last writes (authors.h). writer.c notes, controller_fight.c asks. */
#include "state/authors.h"

#include "kube/object.h"

#define NAMES_MAX 1000 /* 100 controllers at a time; then all is forgotten */

void ml_authors_fini(struct ml_authors *authors)
{
    for (size_t i = 0; i < ML_AUTHORS_MAX; i++) {
        free(authors->writes[i].key);
        free(authors->deletions[i].key);
    }
    ml_map_each (&authors->names, cursor, name)
        free(name);
    ml_map_fini(&authors->names);
    *authors = (struct ml_authors){.names = {0}};
}

static const char *name_of(struct ml_authors *authors, const char *controller)
{
    char *name = ml_map_get(&authors->names, ml_str_of(controller));
    if (name)
        return name;
    if (authors->names.len == NAMES_MAX)
        ml_authors_fini(authors);
    name = ml_strdup(controller);
    ml_map_put(&authors->names, ml_str_of(name), name);
    return name;
}

static void note_author(struct ml_author *place, const struct ml_kind *kind, uint64_t id,
                        const char *controller, struct ml_str key)
{
    free(place->key);
    *place = (struct ml_author){kind, id, controller, ml_str_dup(key)};
}

void ml_authors_note(struct ml_authors *authors, const struct ml_kind *kind, uint64_t rv,
                     const char *controller, struct ml_str key)
{
    if (!authors || rv == ML_RV_OPAQUE)
        return;
    const char *name = name_of(authors, controller);
    note_author(&authors->writes[rv % ML_AUTHORS_MAX], kind, rv, name, key);
}

void ml_authors_note_deletion(struct ml_authors *authors, struct ml_str uid, const char *controller,
                              struct ml_str key)
{
    uint64_t id = ml_hash(uid);
    if (!authors)
        return;
    const char *name = name_of(authors, controller);
    note_author(&authors->deletions[id % ML_AUTHORS_MAX], NULL, id, name, key);
}

static const struct ml_author *find_author(const struct ml_author *authors,
                                           const struct ml_kind *kind, uint64_t id)
{
    const struct ml_author *author = &authors[id % ML_AUTHORS_MAX];
    return author->controller && author->id == id && author->kind == kind ? author : NULL;
}

const struct ml_author *ml_authors_of(const struct ml_authors *authors, const struct ml_kind *kind,
                                      uint64_t rv)
{
    return authors && rv != ML_RV_OPAQUE ? find_author(authors->writes, kind, rv) : NULL;
}

const struct ml_author *ml_authors_of_deletion(const struct ml_authors *authors, struct ml_str uid)
{
    return authors ? find_author(authors->deletions, NULL, ml_hash(uid)) : NULL;
}
