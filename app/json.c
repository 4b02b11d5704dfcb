#include "app/json.h"

#include <assert.h>
#include <stdbool.h>

static void keep(json_t **json, bool added)
{
    if (added)
        return;
    json_decref(*json);
    *json = NULL;
}

void object_add(json_t **object, const char *name, json_t *value)
{
    assert(name);
    if (*object)
        keep(object, !json_object_set_new(*object, name, value));
    else
        json_decref(value);
}

void array_add(json_t **array, json_t *value)
{
    if (*array)
        keep(array, !json_array_append_new(*array, value));
    else
        json_decref(value);
}
