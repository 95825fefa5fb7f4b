/* Arguments of a call, checked by the tool's table; and the table as a JSON Schema. Pure. */
#pragma once

#include "cli/agents/tools.h"
#include "message.h"

/* Sets the defaults, then the members of `object` (NULL: none); texts belong to the message. OCC_E_INVALID:
 * an unknown, missing or wrong argument; the message names it. */
int mcp_bind(const struct agent_tool *tool, const struct mcp_value *object, struct agent_args *ret_args,
             struct occ_error *err);

/* Writes the tool's definition as an object in the open array. */
void mcp_put_tool(struct occ_json *json, const struct agent_tool *tool);
