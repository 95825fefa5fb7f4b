/* See bind.h. Pure. */
#include "bind.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { TOOL_ARGUMENTS = 16 };

static int find_argument(const struct agent_tool *tool, const char *name, size_t *ret_index,
                         struct occ_error *err)
{
    const char *names[TOOL_ARGUMENTS + 1] = {NULL};
    for (size_t i = 0; tool->arguments[i].name && i < TOOL_ARGUMENTS; i++) {
        names[i] = tool->arguments[i].name;
        *ret_index = i;
        if (strcmp(names[i], name) == 0)
            return 0;
    }
    return cli_fail_unknown("argument", "", name, strlen(name), names, err);
}

static int bind_integer(const struct agent_argument *argument, const struct mcp_value *value, int64_t *ret,
                        struct occ_error *err)
{
    char *end = NULL;
    long long number = value->type == MCP_NUMBER ? strtoll(value->text, &end, 10) : 0;
    if (value->type != MCP_NUMBER || *end || number < argument->min || number > argument->max)
        return occ_fail(err, OCC_E_INVALID, "%s: an integer from %" PRId64 " to %" PRId64 " is expected",
                        argument->name, argument->min, argument->max);
    *ret = number;
    return 0;
}

static int bind_text(const struct agent_argument *argument, const struct mcp_value *value, const char **ret,
                     struct occ_error *err)
{
    if (value->type != MCP_STRING || value->length == 0 || value->length > AGENT_TEXT_MAX ||
        strlen(value->text) != value->length)
        return occ_fail(err, OCC_E_INVALID, "%s: a text of 1 to %d bytes is expected", argument->name,
                        AGENT_TEXT_MAX);
    *ret = value->text;
    return 0;
}

static int bind_value(const struct agent_argument *argument, const struct mcp_value *value,
                      struct agent_args *args, struct occ_error *err)
{
    void *member = (char *)args + argument->offset;
    if (argument->kind == AGENT_INTEGER)
        return bind_integer(argument, value, member, err);
    if (argument->kind == AGENT_TEXT)
        return bind_text(argument, value, member, err);
    if (value->type != MCP_BOOLEAN)
        return occ_fail(err, OCC_E_INVALID, "%s: true or false is expected", argument->name);
    *(bool *)member = value->boolean;
    return 0;
}

int mcp_bind(const struct agent_tool *tool, const struct mcp_value *object, struct agent_args *ret_args,
             struct occ_error *err)
{
    uint32_t given = 0;
    agent_defaults(tool, ret_args);
    for (const struct mcp_value *value = object ? object->first : NULL; value; value = value->next) {
        size_t i = 0;
        if (find_argument(tool, value->key, &i, err) != 0)
            return err->code;
        if (given >> i & 1)
            return occ_fail(err, OCC_E_INVALID, "%s is given twice", tool->arguments[i].name);
        given |= UINT32_C(1) << i;
        if (value->type != MCP_NULL && bind_value(&tool->arguments[i], value, ret_args, err) != 0)
            return err->code;
    }
    for (size_t i = 0; tool->arguments[i].name; i++) {
        const struct agent_argument *argument = &tool->arguments[i];
        if (argument->is_required && !*(const char **)((char *)ret_args + argument->offset))
            return occ_fail(err, OCC_E_INVALID, "the argument %s is missing", argument->name);
    }
    return 0;
}

/* ---- schema ---- */

static void put_argument(struct occ_json *json, const struct agent_argument *argument)
{
    static const char *const types[] = {
        [AGENT_TEXT] = "string", [AGENT_INTEGER] = "integer", [AGENT_BOOLEAN] = "boolean"};
    occ_json_object(json, argument->name, true);
    occ_json_string(json, "type", types[argument->kind]);
    occ_json_string(json, "description", argument->help);
    if (argument->kind == AGENT_TEXT) {
        occ_json_unsigned(json, "minLength", 1);
        occ_json_unsigned(json, "maxLength", AGENT_TEXT_MAX);
    }
    if (argument->kind == AGENT_INTEGER) {
        occ_json_integer(json, "minimum", argument->min);
        if (argument->max < INT64_MAX)
            occ_json_integer(json, "maximum", argument->max);
        occ_json_integer(json, "default", argument->otherwise);
    }
    occ_json_close(json);
}

static void put_schema(struct occ_json *json, const struct agent_tool *tool)
{
    occ_json_object(json, "inputSchema", true);
    occ_json_string(json, "type", "object");
    occ_json_object(json, "properties", true);
    for (const struct agent_argument *a = tool->arguments; a->name; a++)
        put_argument(json, a);
    occ_json_close(json);
    occ_json_array(json, "required", true);
    for (const struct agent_argument *a = tool->arguments; a->name; a++)
        if (a->is_required)
            occ_json_string(json, NULL, a->name);
    occ_json_close(json);
    occ_json_bool(json, "additionalProperties", false);
    occ_json_close(json);
}

void mcp_put_tool(struct occ_json *json, const struct agent_tool *tool)
{
    occ_json_object(json, NULL, true);
    occ_json_string(json, "name", tool->name);
    occ_json_string(json, "title", tool->title);
    occ_json_string(json, "description", tool->description);
    put_schema(json, tool);
    occ_json_object(json, "annotations", true);
    occ_json_bool(json, "readOnlyHint", true);
    occ_json_bool(json, "destructiveHint", false);
    occ_json_bool(json, "idempotentHint", true);
    occ_json_bool(json, "openWorldHint", false);
    occ_json_close(json);
    occ_json_close(json);
}
