// Names, arguments and chains as they may be shown: without their secrets.
#include <string.h>

#include "base/secrets.h"
#include "pipeline/ffmpeg/url.h"
#include "sluice/sluice.h"

void sluice_public_name(const char *name, char *to, size_t size)
{
    url_without_secrets(name, to, size);
}

void sluice_blank_secrets(char *argument)
{
    size_t key = strcspn(argument, "=");
    secrets_blank(argument, SECRETS_IN_NAME);
    if (argument[key] && secrets_has_name(argument, key) && !strstr(argument, "://"))
        memset(argument + key + 1, '*', strlen(argument + key + 1));
}

char *sluice_public_chain(const char *text)
{
    return secrets_dup(text, SECRETS_IN_CHAIN);
}
