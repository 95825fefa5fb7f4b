/* See http_connections.h. */
#include "http_connections.h"

#include "clock.h"

static struct occ_connection_ages ages_of(struct occ_http_connections *c)
{
    return (struct occ_connection_ages){c->entries, c->limits.connections};
}

/* libmicrohttpd's callback signature. */
static void on_connection(void *context, struct MHD_Connection *connection, void **place,
                          enum MHD_ConnectionNotificationCode code)
{
    struct occ_http_connections *c = context;
    struct occ_connection_age *entry = *place;
    if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
        if (entry)
            entry->fd = -1;
        return;
    }
    const union MHD_ConnectionInfo *info = c->get_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    if (info)
        *place = occ_connection_ages_add(ages_of(c), info->connect_fd, occ_monotonic_ns());
}

/* libmicrohttpd's callback signature. */
static void on_completed(void *context, struct MHD_Connection *connection, void **state,
                         enum MHD_RequestTerminationCode why)
{
    struct occ_http_connections *c = context;
    const union MHD_ConnectionInfo *info = c->get_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct occ_connection_age *entry = info ? info->socket_context : NULL;
    (void)why;
    if (entry)
        entry->since_ns = occ_monotonic_ns();
    if (c->limits.release)
        c->limits.release(*state);
    *state = NULL;
}

void occ_http_connections_init(struct occ_http_connections *c, const struct occ_http_limits *limits,
                               __typeof__(MHD_get_connection_info) *get_info,
                               struct MHD_OptionItem options[OCC_HTTP_OPTIONS])
{
    const struct MHD_OptionItem items[OCC_HTTP_OPTIONS] = {
        {MHD_OPTION_CONNECTION_LIMIT, limits->connections, NULL},
        {MHD_OPTION_PER_IP_CONNECTION_LIMIT, limits->per_address, NULL},
        {MHD_OPTION_CONNECTION_TIMEOUT, limits->silence_s, NULL},
        {MHD_OPTION_CONNECTION_MEMORY_LIMIT, (intptr_t)limits->memory_bytes, NULL},
        {MHD_OPTION_NOTIFY_CONNECTION, (intptr_t)on_connection, c},
        {MHD_OPTION_NOTIFY_COMPLETED, (intptr_t)on_completed, c},
        {MHD_OPTION_END, 0, NULL}};
    c->limits = *limits;
    c->get_info = get_info;
    occ_connection_ages_clear((struct occ_connection_ages){c->entries, OCC_HTTP_CONNECTIONS_MAX});
    for (int i = 0; i < OCC_HTTP_OPTIONS; i++)
        options[i] = items[i];
}

uint64_t occ_http_connections_end(struct occ_http_connections *c, int64_t limit_ns)
{
    return occ_connection_ages_end(ages_of(c), limit_ns, occ_monotonic_ns());
}
