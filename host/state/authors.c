/* The authors of the last versions (authors.h). writer.c notes, controller_work.c asks. */
#include "state/authors.h"

#include "kube/object.h"

#define NAMES_MAX 1000 /* 100 controllers at a time; then all is forgotten */

void ml_authors_fini(struct ml_authors *authors)
{
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

void ml_authors_note(struct ml_authors *authors, const struct ml_kind *kind, uint64_t rv,
                     const char *controller)
{
    if (!authors || rv == ML_RV_OPAQUE)
        return;
    const char *name = name_of(authors, controller);
    authors->last[rv % ML_AUTHORS_MAX] = (struct ml_author){kind, rv, name};
}

const char *ml_authors_of(const struct ml_authors *authors, const struct ml_kind *kind, uint64_t rv)
{
    if (!authors || rv == ML_RV_OPAQUE)
        return NULL;
    const struct ml_author *author = &authors->last[rv % ML_AUTHORS_MAX];
    return author->name && author->rv == rv && author->kind == kind ? author->name : NULL;
}
