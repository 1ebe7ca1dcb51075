#include "net/http_error.h"

#include <ctype.h>
#include <stdio.h>

/* NULL where the URL is none. */
static char *peer_of(const char *url)
{
    char *host = NULL, *port = NULL, *peer = NULL;
    CURLU *parts = curl_url();
    /* libcurl's URLs know no socks5, but for a name in front of an address. */
    if (parts && curl_url_set(parts, CURLUPART_URL, url, CURLU_NON_SUPPORT_SCHEME) == CURLUE_OK &&
        curl_url_get(parts, CURLUPART_HOST, &host, 0) == CURLUE_OK) {
        curl_url_get(parts, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT);
        peer = port ? ml_asprintf("%s:%s", host, port) : ml_strdup(host);
    }
    curl_free(host);
    curl_free(port);
    curl_url_cleanup(parts);
    return peer;
}

char *ml_http_url_peer(const char *url)
{
    char *peer = peer_of(url);
    return peer ? peer : ml_strdup(url);
}

char *ml_http_proxy_peer(const char *url)
{
    ML_AUTO_FREE char *peer = peer_of(url);
    return ml_asprintf("the proxy%s%s", peer ? " " : "", peer ? peer : "");
}

/* Causes read on in the middle of a sentence: "connection refused". */
static void lower_first(char *text)
{
    if (isupper((unsigned char)text[0]) && islower((unsigned char)text[1]))
        text[0] = (char)tolower((unsigned char)text[0]);
}

/* The bare cause: libcurl's own words around it say less than our context. */
static void describe(const struct ml_http_failure *failure, char *out, size_t size)
{
    static const char *const noise[] = {"SSL certificate problem: ", "SSL: ", "OpenSSL "};
    const char *text = failure->detail[0] ? failure->detail : curl_easy_strerror(failure->code);
    for (size_t i = 0; i < ML_COUNT(noise); i++) {
        size_t len = strlen(noise[i]);
        if (strncmp(text, noise[i], len) == 0)
            text += len;
    }
    snprintf(out, size, "%s", text);
    lower_first(out);
}

static int set_connect(struct ml_err *err, const struct ml_http_failure *failure, const char *peer)
{
    char cause[CURL_ERROR_SIZE];
    describe(failure, cause, sizeof cause);
    if (failure->os_errno)
        snprintf(cause, sizeof cause, "%s", strerror((int)failure->os_errno));
    lower_first(cause);
    return ml_err_set(err, ML_ENETWORK, "connect to %s: %s", peer, cause);
}

static int set_verify(struct ml_err *err, const struct ml_http_failure *failure, const char *peer)
{
    char cause[CURL_ERROR_SIZE];
    const char *hint = " (check certificate-authority in the kubeconfig)";
    describe(failure, cause, sizeof cause);
    if (strstr(cause, "subject name"))
        hint = " (check server and tls-server-name in the kubeconfig)";
    else if (strstr(cause, "expired") || strstr(cause, "not yet valid"))
        hint = "";
    return ml_err_set(err, ML_ETLS, "TLS to %s: certificate verify failed: %s%s", peer, cause,
                      hint);
}

/* A handshake, or with TLS 1.3 the first read after it, ends either because the peer sent an
 * alert or because the connection broke; libcurl has one code for both. */
static int set_stream(struct ml_err *err, const struct ml_http_failure *failure, const char *peer)
{
    char cause[CURL_ERROR_SIZE];
    describe(failure, cause, sizeof cause);
    bool handshake = failure->code == CURLE_SSL_CONNECT_ERROR;
    bool broken = strstr(cause, "SSL_ERROR_SYSCALL") || strstr(cause, "reset by peer") ||
                  strstr(cause, "unexpected eof");
    bool alert = strstr(cause, "alert");
    if (alert && (strstr(cause, "certificate") || strstr(cause, "unknown ca")))
        return ml_err_set(err, ML_ETLS,
                          "TLS to %s: %s (check client-certificate and client-key in the "
                          "kubeconfig)",
                          peer, cause);
    if (strstr(cause, "wrong version number"))
        return ml_err_set(err, ML_ETLS, "TLS to %s: it speaks no TLS (http instead of https?)",
                          peer);
    if (handshake || alert)
        return ml_err_set(err, broken ? ML_ENETWORK : ML_ETLS, "TLS to %s: %s", peer, cause);
    return ml_err_set(err, ML_ENETWORK, "connection to %s broke: %s", peer, cause);
}

static int set_by_code(struct ml_err *err, const struct ml_http_failure *failure, const char *peer)
{
    char cause[CURL_ERROR_SIZE];
    describe(failure, cause, sizeof cause);
    switch ((int)failure->code) { /* libcurl has a hundred codes; a request meets these */
    case CURLE_WEIRD_SERVER_REPLY:
        return ml_err_set(err, ML_ENETWORK, "%s speaks no HTTP: %s", peer, cause);
    case CURLE_UNSUPPORTED_PROTOCOL:
        /* Also what libcurl calls an answer that does not begin like HTTP. */
        if (strstr(cause, "HTTP/0.9"))
            return ml_err_set(err, ML_ENETWORK, "%s speaks no HTTP", peer);
        return ml_err_set(err, ML_EINVALID, "URL %s: %s", failure->url, cause);
    case CURLE_URL_MALFORMAT:
        return ml_err_set(err, ML_EINVALID, "URL %s: %s", failure->url, cause);
    case CURLE_COULDNT_RESOLVE_HOST:
        return ml_err_set(err, ML_ENETWORK, "connect to %s: no such host", peer);
    case CURLE_COULDNT_RESOLVE_PROXY: /* libcurl's words can have its password in them */
        return ml_err_set(err, ML_ENETWORK, "connect to %s: %s", peer,
                          strstr(cause, "syntax") ? "its URL is not valid" : "no such host");
    case CURLE_COULDNT_CONNECT:
    case CURLE_PROXY:
        return set_connect(err, failure, peer);
    case CURLE_OPERATION_TIMEDOUT: /* the kernel's; our deadlines never get here */
        return ml_err_set(err, ML_ENETWORK, "connection to %s broke: %s", peer, cause);
    case CURLE_PEER_FAILED_VERIFICATION:
        return set_verify(err, failure, peer);
    case CURLE_SSL_CACERT_BADFILE:
        return ml_err_set(err, ML_ETLS,
                          "TLS to %s: unusable CA certificates: %s (check certificate-authority "
                          "in the kubeconfig)",
                          peer, cause);
    case CURLE_SSL_CERTPROBLEM:
        return ml_err_set(err, ML_ETLS,
                          "TLS to %s: unusable client certificate: %s (check client-certificate "
                          "and client-key in the kubeconfig)",
                          peer, cause);
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_INVALIDCERTSTATUS:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_USE_SSL_FAILED:
        return ml_err_set(err, ML_ETLS, "TLS to %s: %s", peer, cause);
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
        return set_stream(err, failure, peer);
    case CURLE_GOT_NOTHING:
        return ml_err_set(err, ML_ENETWORK, "connection to %s broke: closed without an answer",
                          peer);
    case CURLE_PARTIAL_FILE:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
        return ml_err_set(err, ML_ENETWORK, "answer of %s was cut: %s", peer, cause);
    case CURLE_OUT_OF_MEMORY:
    case CURLE_FAILED_INIT:
        return ml_err_set(err, ML_EINTERNAL, "request to %s: %s", peer, cause);
    default:
        return ml_err_set(err, ML_ENETWORK, "request to %s: %s", peer, cause);
    }
}

int ml_http_error_set(struct ml_err *err, const struct ml_http_failure *failure)
{
    return set_by_code(err, failure, failure->peer);
}
