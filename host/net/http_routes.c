/* Pages by their path, on the HTTP server. */
#include "net/http_routes.h"

#define ROUTES_HEADER_BYTES_MAX ((size_t)16 * 1024)
#define ROUTES_BODY_BYTES_MAX   ((size_t)64 * 1024) /* probes and metrics have none */

struct route {
    const char *path;
    ml_http_make_page *make;
    void *context;
};

struct ml_http_routes {
    struct ml_http_server *server;
    struct route routes[ML_HTTP_ROUTES_MAX];
    size_t count;
};

/* The longest route that covers `path`, or NULL. */
static const struct route *find_route(const struct ml_http_routes *routes, const char *path)
{
    const struct route *best = NULL;
    for (size_t i = 0; i < routes->count; i++) {
        const struct route *route = &routes->routes[i];
        size_t len = strlen(route->path);
        bool covers = strncmp(path, route->path, len) == 0 &&
                      (path[len] == '\0' || (len > 0 && route->path[len - 1] == '/'));
        if (covers && (!best || len > strlen(best->path)))
            best = route;
    }
    return best;
}

static void page_set_text(struct ml_http_page *page, int status, const char *text)
{
    page->status = status;
    page->content_type = "text/plain; charset=utf-8";
    ml_buf_fini(&page->reply);
    ml_buf_init(&page->reply, 0); /* whatever maximum the maker had set */
    ml_buf_puts(&page->reply, text);
}

static void routes_make_page(const struct ml_http_routes *routes, struct ml_http_page *page)
{
    const struct route *route = page->path ? find_route(routes, page->path) : NULL;
    if (!page->path) {
        page_set_text(page, 400, "bad path\n");
    } else if (!route) {
        page_set_text(page, 404, "not found\n");
    } else if (strcmp(page->method, "GET") != 0 && strcmp(page->method, "HEAD") != 0) {
        page_set_text(page, 405, "method not allowed\n");
    } else {
        route->make(route->context, page);
        if (page->reply.failed)
            page_set_text(page, 500, "answer too large\n");
    }
}

static void routes_handle(void *context, struct ml_http_exchange *exchange)
{
    static const struct ml_http_header allow = {"Allow", "GET, HEAD"};
    ML_AUTO_FREE char *path = ml_http_decode(exchange->path);
    struct ml_http_page page = {
        .method = exchange->method,
        .path = path,
        .query = exchange->query,
        .body = exchange->body,
        .status = 200,
        .content_type = "text/plain; charset=utf-8",
    };
    routes_make_page(context, &page);
    ml_http_answer(exchange, &(struct ml_http_answer){.status = page.status,
                                                      .content_type = page.content_type,
                                                      .headers = &allow,
                                                      .header_count = page.status == 405,
                                                      .body = ml_buf_str(&page.reply)});
    ml_buf_fini(&page.reply);
}

int ml_http_routes_new(struct ml_loop *loop, const char *address, struct ml_http_routes **out,
                       struct ml_err *err)
{
    struct ml_http_routes *routes = ml_new(struct ml_http_routes);
    int r = ml_http_server_new(
        &(struct ml_http_server_opts){.loop = loop,
                                      .address = address,
                                      .handle = routes_handle,
                                      .context = routes,
                                      .limits = {.header_bytes_max = ROUTES_HEADER_BYTES_MAX,
                                                 .body_bytes_max = ROUTES_BODY_BYTES_MAX}},
        &routes->server, err);
    if (r < 0) {
        free(routes);
        return r;
    }
    *out = routes;
    return 0;
}

void ml_http_routes_free(struct ml_http_routes *routes)
{
    if (!routes)
        return;
    ml_http_server_free(routes->server);
    free(routes);
}

const struct ml_http_server *ml_http_routes_server(const struct ml_http_routes *routes)
{
    return routes->server;
}

void ml_http_routes_add(struct ml_http_routes *routes, const char *path, ml_http_make_page *make,
                        void *context)
{
    ml_assert(routes->count < ML_COUNT(routes->routes));
    routes->routes[routes->count++] = (struct route){path, make, context};
}
