// JSON that is put together: without memory there is none, and never one that lacks something.
#pragma once

#include <jansson.h>

// Add a member, or an element. Where there is no memory, which a value of NULL tells, too, the object
// or array is freed and becomes NULL, as it stays when more is added: what is whole in the end lacks
// nothing.
void object_add(json_t **object, const char *name, json_t *value);
void array_add(json_t **array, json_t *value);
