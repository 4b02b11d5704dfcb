// `sluice plan` and `sluice doctor`: the library's reports.
#include <stdlib.h>

#include "app/app.h"

static int print_report(const struct settings *settings,
                        enum sluice_status (*report)(const struct sluice_config *, char **))
{
    char *text;
    enum sluice_status status = report(&settings->config, &text);
    if (!status)
        fputs(text, stdout);
    free(text);
    return exit_code_of(status);
}

int plan_command(struct settings *settings)
{
    return print_report(settings, sluice_plan);
}

int doctor_command(struct settings *settings)
{
    int code = print_report(settings, sluice_doctor);
    if (!code)
        sandbox_print(stdout);
    return code;
}
